#!/usr/bin/env bash
# npm run test:rdma: the tests that need an RDMA device, over soft-RoCE and soft-iWARP in a virtual machine (see README.md here).
#   --kills N      only servers with copies, N of which are killed over each device
#   --host         on this machine, over the device that FARKV_RDMA_DEVICE names
#   --two-hosts    a server and a client in two virtual machines that a cable joins
#   --mutations    what makes the provider safe, taken out piece by piece
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in
  --help | -h) sed -n '2,6s/^# //p' test/rdma/run.sh; exit ;;
  '' | --host | --two-hosts | --mutations) ;;
  --kills) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo 'test:rdma: --kills takes a number from 1 on' >&2; exit 2; } ;;
  *) echo "test:rdma: unknown option $1; --help says more" >&2; exit 2 ;;
esac
node scripts/setup.mjs
make -s -j2 -C native ../build/native/test/fabric/fabric_verbs
case ${1:-} in
  --host) exec bash test/rdma/host.sh ;;
  --two-hosts) exec bash test/rdma/two-hosts.sh ;;
  --mutations) exec node test/rdma/mutations.mjs "${2:-}" ;;
esac
kills=''
[ "${1:-}" != --kills ] || kills=$2
exec test/rdma/vm/vm.sh -m 4096 -t "${FARKV_VM_SECONDS:-3600}" "bash test/rdma/guest.sh $kills"
