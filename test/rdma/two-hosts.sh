#!/usr/bin/env bash
# two-hosts.sh: two virtual machines joined by a cable (a QEMU socket): a server in one, a client in the other. Called by run.sh --two-hosts; for each
# of soft-RoCE and soft-iWARP; the exit code says whether all passed. 10.7.0.1 is the server's host, 10.7.0.2 the client's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
seconds=${FARKV_VM_SECONDS:-600}

# host NUMBER KIND COMMAND: one of the two, with a network card and an RDMA device on it.
host() {
  local plug=connect
  [ "$1" = 1 ] && plug=listen
  FARKV_RDMA_DEVICE=rdma0 FARKV_VM_QEMU="-netdev socket,id=cable,$plug=127.0.0.1:$port -device virtio-net-pci,netdev=cable,mac=02:00:00:00:07:0$1" \
    exec "$here/vm/vm.sh" -m 2048 -c 1 -s none -t "$seconds" "
      set -e
      modprobe -a virtio_net ib_uverbs rdma_ucm rdma_rxe siw
      until [ -e /sys/class/net/eth0 ]; do sleep 0.05; done
      ip link set eth0 up
      ip addr add 10.7.0.$1/24 dev eth0
      rdma link add rdma0 type $2 netdev eth0
      until [[ \$(rdma link show rdma0/1) == *'state ACTIVE'* ]]; do sleep 0.05; done
      $3"
}

status=0
for kind in rxe siw; do
  echo "== two hosts over $kind"
  # A free port, until QEMU takes it.
  port=$(node -e 'const s = require("node:net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
  log=$(mktemp)
  begun=$SECONDS
  (host 1 "$kind" "exec node dist/server/cli/main.js server --json --listen 10.7.0.1:7000 --peers s1=10.7.0.1:9000 --id s1 --data-dir /tmp/s1 \
    --transport verbs --rdma-device rdma0 --insecure --shards 2 --election-ms 3000") > "$log" 2>&1 & server=$!
  until [[ $(ss -tln) == *"127.0.0.1:$port "* ]] || ! kill -0 $server 2> /dev/null; do sleep 0.1; done
  if (host 2 "$kind" "node dist/test/rdma/suite/two-hosts.js 10.7.0.1:7000"); then
    echo "ok: a client and a server on two hosts ($((SECONDS - begun)) s)"
  else
    echo "FAILED: two hosts over $kind; the server's host said:"
    cat "$log"
    status=1
  fi
  kill $server 2> /dev/null || :
  wait $server || :
  rm -f "$log"
done
exit $status
