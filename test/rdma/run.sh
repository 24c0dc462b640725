#!/usr/bin/env bash
# npm run test:rdma: the tests that need an RDMA device, over soft-RoCE and soft-iWARP in a virtual machine (see README.md here).
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -f dist/test/rdma/suite/main.js ] && [ -f build/Release/farkv.node ] || node scripts/setup.mjs
make -s -j2 -C native ../build/native/test/fabric_verbs
exec test/rdma/vm/vm.sh -m 3072 -t "${FARKV_VM_SECONDS:-1200}" 'bash test/rdma/guest.sh'
