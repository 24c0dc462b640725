#!/usr/bin/env bash
# two-ends.sh: inside the guest: two RDMA devices r1 (10.1.0.1 on v1) and r2 (10.1.0.2 on v2) whose packets cross a veth wire
# although both ends live in one network namespace (neither soft driver works in two), so that netem, link down and
# counters act on them. Argument: rxe (default) or siw.
set -euo pipefail
kind=${1:-rxe}
modprobe veth
ip link add v1 type veth peer name v2
ip link set v1 address 02:00:00:00:01:01 mtu 4200
ip link set v2 address 02:00:00:00:01:02 mtu 4200
ip link set v1 up
ip link set v2 up
ip addr add 10.1.0.1/32 dev v1
ip addr add 10.1.0.2/32 dev v2
for d in all v1 v2; do sysctl -qw net.ipv4.conf.$d.accept_local=1 net.ipv4.conf.$d.rp_filter=0; done
# Rules ahead of the local table: what leaves for the other end goes over the wire, what arrives is local.
ip rule add pref 1 iif v1 lookup local
ip rule add pref 1 iif v2 lookup local
ip rule add pref 2 from 10.1.0.1 to 10.1.0.2 lookup 101
ip rule add pref 2 from 10.1.0.2 to 10.1.0.1 lookup 102
ip rule add pref 3 oif v1 to 10.1.0.2 lookup 101
ip rule add pref 3 oif v2 to 10.1.0.1 lookup 102
ip rule add pref 100 lookup local
ip rule del pref 0
ip route add 10.1.0.2 dev v1 src 10.1.0.1 table 101
ip route add 10.1.0.1 dev v2 src 10.1.0.2 table 102
ip neigh add 10.1.0.2 lladdr 02:00:00:00:01:02 dev v1 nud permanent
ip neigh add 10.1.0.1 lladdr 02:00:00:00:01:01 dev v2 nud permanent
rdma link add r1 type "$kind" netdev v1
rdma link add r2 type "$kind" netdev v2
# A GID appears when the address is notified; wait for both, not for a time.
for dev in r1 r2; do
  until [[ $(rdma link show "$dev/1" 2>/dev/null) == *'state ACTIVE'* ]]; do sleep 0.05; done
done
