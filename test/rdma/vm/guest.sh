# guest.sh: inside the guest, as root: RDMA devices, then the command, then power off. Sourced settings: /run/vm/settings.
#   rxe0  soft-RoCE  10.9.0.1, 10.9.0.2, fd00:9::1 on dummy0        siw0  soft-iWARP  10.8.0.1 on dummy1
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
. /run/vm/settings
mount -o bind "$modules" /lib/modules
ulimit -l unlimited
ulimit -n 65536
ip link set lo up
if [ "$devices" = std ]; then
  modprobe -a ib_uverbs rdma_ucm rdma_rxe siw dummy
  ip link add dummy0 type dummy 2>/dev/null
  ip link set dummy0 address 02:00:00:00:00:01 mtu 4200 up
  ip addr add 10.9.0.1/24 dev dummy0
  ip addr add 10.9.0.2/24 dev dummy0
  ip addr add fd00:9::1/64 dev dummy0 nodad
  rdma link add rxe0 type rxe netdev dummy0
  # siw on lo cannot be reached by rdma_cm (ENODEV in 6.1): a second dummy.
  ip link add dummy1 type dummy
  ip link set dummy1 address 02:00:00:00:00:02 mtu 9000 up
  ip addr add 10.8.0.1/24 dev dummy1
  rdma link add siw0 type siw netdev dummy1
fi
[ -z "$writable" ] || mount -t 9p -o rw,trans=virtio,version=9p2000.L,msize=512000,cache=none out "$writable"
# No udev here: the two output ports are found by name, as soon as the driver has made them.
while :; do
  for n in /sys/class/virtio-ports/*; do
    case $(cat "$n/name" 2>/dev/null) in o) out=/dev/${n##*/} ;; e) err=/dev/${n##*/} ;; esac
  done
  [ -z "${out:-}" ] || [ -z "${err:-}" ] || break
  sleep 0.05
done
mkfifo /run/o /run/e
cat /run/o > "$out" & a=$!
cat /run/e > "$err" & b=$!
(
  . /run/vm/env
  export PATH=$PATH:/usr/sbin:/sbin
  cd "$(cat /run/vm/cwd)" 2>/dev/null || cd /
  exec bash /run/vm/command
) < /dev/null > /run/o 2> /run/e
rc=$?
[ "$rc" = 0 ] || dmesg | tail -30 > /run/vm/dmesg
# A child that the command left behind keeps a pipe open: two seconds at most.
(sleep 2; kill $a $b 2>/dev/null) &
wait $a $b
echo $rc > /run/vm/rc.part
mv /run/vm/rc.part /run/vm/rc
echo o > /proc/sysrq-trigger
sleep 5
