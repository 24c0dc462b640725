#!/usr/bin/env bash
# guest.sh: what run.sh runs in the virtual machine. Every part runs, also after one has failed; the exit code says whether all passed.
# What measures nothing runs over both devices side by side; what compares times or processor time runs alone.
set -o pipefail
status=0

part() {
  local name=$1 begun=$SECONDS
  shift
  echo "== $name"
  if "$@"; then echo "   $((SECONDS - begun)) s"; else echo "FAILED: $name ($((SECONDS - begun)) s)"; status=1; fi
}

# both COMMAND...: with soft-RoCE's device as its last argument and, at the same time, soft-iWARP's; each line says over which it was.
both() {
  local failed=0
  "$@" rxe 2>&1 | sed -u 's/^/rxe  /' & local rxe=$!
  "$@" siw 2>&1 | sed -u 's/^/siw  /' & local siw=$!
  wait $rxe || failed=1
  wait $siw || failed=1
  return $failed
}

contract() {
  case $1 in
    rxe) FARKV_TEST_TIMES=1 FARKV_VERBS_ADDRESS=10.9.0.1 FARKV_VERBS_NOBODY=10.9.0.77 build/native/test/fabric/fabric_verbs ;;
    # soft-iWARP does not tell what a peer refused.
    siw) FARKV_TEST_TIMES=1 FARKV_VERBS_ADDRESS=10.8.0.1 FARKV_VERBS_NOBODY=10.8.0.77 FARKV_VERBS_SILENT=1 build/native/test/fabric/fabric_verbs ;;
  esac
}
together() { FARKV_RDMA_DEVICE=${1}0 node dist/test/rdma/suite/main.js together; }
# soft-RoCE does its work in the system call that posts, and wakes ksoftirqd for nothing, which takes the processor from whoever posted: so it is
# made to wait its turn (docs/performance-notes.md, "RDMA").
alone() {
  local code=0
  [ "$1" = siw ] || renice -n 19 -p $(pgrep -d ' ' ksoftirqd) > /dev/null
  FARKV_RDMA_DEVICE=${1}0 node dist/test/rdma/suite/main.js alone || code=$?
  [ "$1" = siw ] || renice -n 0 -p $(pgrep -d ' ' ksoftirqd) > /dev/null
  return $code
}
wire() {
  local first=1
  [ "$1" = rxe ] || first=3
  bash test/rdma/vm/two-ends.sh "$1" $first && FARKV_RDMA_WIRE=$first node dist/test/rdma/suite/faults-main.js
}
removal() { node dist/test/rdma/suite/removal-main.js "${1}0"; }

# Queue pairs, memory regions and the rest that no process holds any more; soft-RoCE keeps one of each kind for its own.
# A device that was made anew has another number before its name.
resources() { { rdma resource show rxe0; rdma resource show siw0; } | sed 's/^[0-9]*: //'; }

before=$(resources)
part 'fabric contract' both contract
part 'servers and SDK: workloads and deaths' both together
for kind in rxe siw; do
  part "servers and SDK over $kind: costs and times" alone $kind
done
part 'faults of the wire' both wire
part 'devices that are taken away' both removal
after=$(resources)
echo "== resources of the devices, before and after"
echo "$before"
echo "$after"
if [ "$before" != "$after" ]; then
  echo 'FAILED: queue pairs, regions or others were left behind'
  status=1
fi
echo "$SECONDS s in all, without the boot"
exit $status
