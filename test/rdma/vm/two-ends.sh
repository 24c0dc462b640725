#!/usr/bin/env bash
# two-ends.sh: inside the guest: two RDMA devices r1 (10.1.0.1 on v1) and r2 (10.1.0.2 on v2) whose packets cross a veth wire
# although both ends live in one network namespace (neither soft driver works in two), so that netem, link down and
# counters act on them. Arguments: rxe (default) or siw; the number of the first end (default 1), at most 8: 3 makes r3 and r4 on
# v3 and v4, 10.3.0.1 and 10.3.0.2.
set -euo pipefail
kind=${1:-rxe} a=${2:-1}
b=$((a + 1))
modprobe veth
ip link add v$a type veth peer name v$b
ip link set v$a address 02:00:00:00:01:0$a mtu 4200
ip link set v$b address 02:00:00:00:01:0$b mtu 4200
ip link set v$a up
ip link set v$b up
ip addr add 10.$a.0.1/32 dev v$a
ip addr add 10.$a.0.2/32 dev v$b
for d in all v$a v$b; do sysctl -qw net.ipv4.conf.$d.accept_local=1 net.ipv4.conf.$d.rp_filter=0; done
# Rules ahead of the local table: what leaves for the other end goes over the wire, what arrives is local.
ip rule add pref 1 iif v$a lookup local
ip rule add pref 1 iif v$b lookup local
ip rule add pref 2 from 10.$a.0.1 to 10.$a.0.2 lookup 10$a
ip rule add pref 2 from 10.$a.0.2 to 10.$a.0.1 lookup 10$b
ip rule add pref 3 oif v$a to 10.$a.0.2 lookup 10$a
ip rule add pref 3 oif v$b to 10.$a.0.1 lookup 10$b
# The first pair moves the rule of the local table behind these; two pairs may be made at the same time.
(
  flock 9
  if [ -n "$(ip rule show pref 0)" ]; then
    ip rule add pref 100 lookup local
    ip rule del pref 0
  fi
) 9>/run/two-ends.lock
ip route add 10.$a.0.2 dev v$a src 10.$a.0.1 table 10$a
ip route add 10.$a.0.1 dev v$b src 10.$a.0.2 table 10$b
ip neigh add 10.$a.0.2 lladdr 02:00:00:00:01:0$b dev v$a nud permanent
ip neigh add 10.$a.0.1 lladdr 02:00:00:00:01:0$a dev v$b nud permanent
rdma link add r$a type "$kind" netdev v$a
rdma link add r$b type "$kind" netdev v$b
# A GID appears when the address is notified; wait for both, not for a time.
for dev in r$a r$b; do
  until [[ $(rdma link show "$dev/1" 2>/dev/null) == *'state ACTIVE'* ]]; do sleep 0.05; done
done
