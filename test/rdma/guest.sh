#!/usr/bin/env bash
# guest.sh [KILLS]: what run.sh runs in the virtual machine. Every part runs, also after one has failed; the exit code says whether all passed.
# With KILLS only servers with copies run, of which so many are killed over each device.
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
# A whole run of faults; the histories must be linearizable, and nothing may be lost. Emulation is slow: leases are long, calls are few, and one
# device has the processors at a time. What the run leaves is gone with the machine, so the servers' last lines are printed.
copies() {
  FARKV_RDMA_DEVICE=${1}0 node dist/test/chaos/main.js --level replicated --transport verbs --servers 3 --clients 2 --rate 40 --kills "$kills" \
    --faults kill,pause,kill-owner-and-leader,kill-backup-then-owner,stop-backup-kill-owner,kill-joiner \
    --seconds 225 --at-least 100 --owner-lease-ms 6000 --election-ms 3000 && return
  tail -n 40 "${TMPDIR:-/tmp}"/farkv-chaos-*/s?.log >&2
  rm -rf "${TMPDIR:-/tmp}"/farkv-chaos-*
  return 1
}
wire() {
  local first=1
  [ "$1" = rxe ] || first=3
  bash test/rdma/vm/two-ends.sh "$1" $first && FARKV_RDMA_WIRE=$first node dist/test/rdma/suite/faults-main.js
}
# What the documents show is what is printed.
doctor() {
  sed -n '/^## What `farkv doctor` prints/,/^On a host/p' docs/rdma.md | sed -n '/^```$/,/^```$/{/^```$/!p}' > /tmp/documented
  node dist/server/cli/main.js doctor | diff -u /tmp/documented -
}
routes() { env -u FARKV_RDMA_DEVICE node dist/test/rdma/suite/routes-main.js; }
devices() { env -u FARKV_RDMA_DEVICE node dist/test/rdma/suite/devices-main.js; }
removal() { node dist/test/rdma/suite/removal-main.js "${1}0"; }

# Queue pairs, memory regions and the rest that no process holds any more; soft-RoCE keeps one of each kind for its own.
# A device that was made anew has another number before its name.
resources() { { rdma resource show rxe0; rdma resource show siw0; } | sed 's/^[0-9]*: //'; }

before=$(resources)
kills=${1:-}
if [ -z "$kills" ]; then
  part 'farkv doctor prints what docs/rdma.md shows' doctor
  part 'fabric contract' both contract
  part 'addresses and devices' routes
  part 'servers and SDK: workloads and deaths' both together
  for kind in rxe siw; do
    part "servers and SDK over $kind: costs and times" alone $kind
  done
  part 'faults of the wire' both wire
  part 'devices that are taken away' both removal
  part 'a server with two devices' devices
else
  for kind in rxe siw; do
    part "servers with copies over $kind, $kills of them killed" copies $kind
  done
fi
# The kernel frees what a dead process held, and not at once.
for ((i = 0; i < 200; i++)); do
  after=$(resources)
  [ "$before" != "$after" ] || break
  sleep 0.1
done
echo "== resources of the devices, before and after"
echo "$before"
echo "$after"
if [ "$before" != "$after" ]; then
  echo 'FAILED: queue pairs, regions or others were left behind'
  status=1
fi
echo "$SECONDS s in all, without the boot"
exit $status
