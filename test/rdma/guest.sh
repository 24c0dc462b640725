#!/usr/bin/env bash
# guest.sh: what run.sh runs in the virtual machine. Every part runs, also after one has failed; the exit code says whether all passed.
status=0
part() {
  local name=$1 begun=$SECONDS
  shift
  echo "== $name"
  if "$@"; then echo "   $((SECONDS - begun)) s"; else echo "FAILED: $name ($((SECONDS - begun)) s)"; status=1; fi
}

# Queue pairs, memory regions and the rest that no process holds any more; soft-RoCE keeps one of each kind for its own.
resources() { rdma resource | sed 's/^[0-9]*: //'; }

before=$(resources)
part 'fabric contract over soft-RoCE' env FARKV_VERBS_ADDRESS=10.9.0.1 FARKV_VERBS_NOBODY=10.9.0.77 build/native/test/fabric_verbs
# soft-iWARP does not tell what a peer refused.
part 'fabric contract over soft-iWARP' env FARKV_VERBS_ADDRESS=10.8.0.1 FARKV_VERBS_NOBODY=10.8.0.77 FARKV_VERBS_SILENT=1 build/native/test/fabric_verbs
for device in rxe0 siw0; do
  part "servers and SDK over $device" env FARKV_RDMA_DEVICE=$device node dist/test/rdma/suite/main.js
done
after=$(resources)
echo "== resources of the devices, before and after"
echo "$before"
echo "$after"
if [ "$before" != "$after" ]; then
  echo 'FAILED: queue pairs, regions or others were left behind'
  status=1
fi
exit $status
