#!/usr/bin/env bash
# npm run test:rdma: the tests that need an RDMA device, over soft-RoCE and soft-iWARP in a virtual machine (see README.md here).
# With --host: on this machine, over the device that FARKV_RDMA_DEVICE names.
set -euo pipefail
cd "$(dirname "$0")/../.."
node scripts/setup.mjs
make -s -j2 -C native ../build/native/test/fabric_verbs
[ "${1:-}" != --host ] || exec bash test/rdma/host.sh
status=0
test/rdma/vm/vm.sh -m 3072 -t "${FARKV_VM_SECONDS:-2400}" 'bash test/rdma/guest.sh' || status=$?
for kind in rxe siw; do
  echo "== faults of the wire over $kind"
  test/rdma/vm/vm.sh -m 3072 -s none -t 400 "modprobe -a ib_uverbs rdma_ucm rdma_rxe siw && bash test/rdma/vm/two-ends.sh $kind &&
    node dist/test/rdma/suite/faults-main.js" || status=$?
done
exit $status
