#!/usr/bin/env bash
# host.sh: the same tests on a machine with an RDMA NIC: FARKV_RDMA_DEVICE=mlx5_0 npm run test:rdma:host. Both ends are this machine's.
set -euo pipefail
: "${FARKV_RDMA_DEVICE:?names the device, as farkv doctor lists it}"
address=$(node -e 'import("./dist/native/addon.js").then(({ addon }) => {
  const found = addon.rdmaAddresses().find((a) => a.device === process.env.FARKV_RDMA_DEVICE);
  if (found) console.log(found.address.includes(":") ? `[${found.address}]` : found.address);
})')
[ -n "$address" ] || { echo "no address of this machine leads to $FARKV_RDMA_DEVICE (farkv doctor says more)" >&2; exit 1; }
status=0
FARKV_VERBS_ADDRESS=$address build/native/test/fabric/fabric_verbs || status=1
node dist/test/rdma/suite/main.js || status=1
exit $status
