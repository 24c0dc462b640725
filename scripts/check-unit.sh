#!/usr/bin/env bash
# Runs the Debian package's service under a real systemd, with all that the unit forbids it: bash scripts/check-unit.sh [PACKAGE.deb], as root on
# Debian. A minimal Debian with systemd boots as a container does, in the virtual machine of test/rdma, since this machine may have neither
# systemd nor cgroups to give away. It starts, is asked, reloads, restarts, is killed, comes back by itself, and stops.
set -euo pipefail
name=check-unit
. "$(dirname "$0")/own-root.sh"

enter_with_deb "$@"
make_debian adduser,libstdc++6,systemd
cp "$1" "$root/tmp/farkv.deb"
mount -t proc proc "$root/proc"
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive dpkg -i /tmp/farkv.deb > "$top/dpkg.log" 2>&1 || { cat "$top/dpkg.log"; fail 'dpkg -i'; }
umount "$root/proc"
rm "$root/tmp/farkv.deb"

# A boot that does no more than this.
cat > "$root/etc/systemd/system/check.target" << 'UNIT'
[Unit]
Requires=basic.target check.service
After=basic.target
UNIT
cat > "$root/etc/systemd/system/check.service" << 'UNIT'
[Service]
Type=oneshot
ExecStart=/bin/bash /check.sh
ExecStopPost=/usr/bin/systemctl exit --no-block
TimeoutStartSec=infinity
StandardOutput=file:/said
StandardError=inherit
UNIT
ln -sf check.target "$root/etc/systemd/system/default.target"
cat > "$root/check.sh" << 'CHECK'
set -e
trap 'echo "failed at line $LINENO"; systemctl status --no-pager --full farkv; journalctl --no-pager -u farkv | tail -40' ERR
ip link set lo up 2> /dev/null || true
of() { systemctl show --property "$1" --value farkv; }
value() { [ "$(farkv get greeting)" = hello ]; }
systemctl start farkv
echo "started: $(of StatusText)"
first=$(of MainPID)
farkv put greeting hello > /dev/null
value
[ "$(stat -c %U "/proc/$first")" = farkv ]
grep -q '^CapEff:\s*0*$' "/proc/$first/status"
grep -q '^Seccomp:\s*2$' "/proc/$first/status"
grep -q '^Max locked memory *unlimited *unlimited' "/proc/$first/limits"
echo 'the server has no capability, a filter of system calls, and may lock memory'
systemctl reload farkv
value
[ "$(of MainPID)" = "$first" ]
journalctl --no-pager -u farkv | grep -q 'SIGHUP: files of tokens and certificates are read again by themselves'
echo 'a reload ends nothing'
systemctl restart farkv
value
second=$(of MainPID)
[ "$second" != "$first" ]
echo 'its values are there after a restart'
kill -KILL "$second"
until [ "$(of MainPID)" != "$second" ] && [ "$(of ActiveState)" = active ]; do sleep 0.5; done
value
[ "$(of NRestarts)" = 1 ]
echo 'killed, it was started again, with its values'
systemctl stop farkv
[ "$(of Result)" = success ]
echo 'stopped in order'
CHECK
tar -C "$root" -cf "$top/root.tar" .

cat > "$top/guest.sh" << GUEST
set -e
mkdir -p /booted
mount -t tmpfs -o size=2g,mode=755 tmpfs /booted
tar -C /booted -xf $top/root.tar
GUEST
cat >> "$top/guest.sh" << 'GUEST'
boot() {
  cd /booted
  mount -t proc proc proc
  mount -t sysfs sysfs sys
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  mount --rbind /dev dev
  mkdir -p old
  pivot_root . old
  exec env -i container=check /lib/systemd/systemd --system --log-target=null < /dev/null > /dev/null 2>&1
}
export -f boot
unshare --mount --pid --fork --uts --propagation private bash -ec boot || true
cat /booted/said
GUEST
test/rdma/vm/vm.sh -m 4096 -t 600 "bash $top/guest.sh" > "$top/said" 2>&1 || { cat "$top/said"; fail 'the virtual machine'; }
while read -r line; do say "$line"; done < "$top/said"
grep -q '^stopped in order$' "$top/said" || fail 'the service under systemd'
