#!/usr/bin/env bash
# npm run test:rdma: the tests that need an RDMA device, over soft-RoCE and soft-iWARP in a virtual machine (see README.md here).
set -euo pipefail
cd "$(dirname "$0")/../.."
make -s -C native ../build/native/test/fabric_verbs
test/rdma/vm/vm.sh -t "${FARKV_VM_SECONDS:-900}" '
  status=0
  for address in 10.9.0.1 10.8.0.1; do
    echo "== $(rdma link show | grep -c ACTIVE) devices; over $address"
    FARKV_VERBS_ADDRESS=$address build/native/test/fabric_verbs || status=1
  done
  rdma resource
  exit $status'
