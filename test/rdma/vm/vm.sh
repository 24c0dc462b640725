#!/usr/bin/env bash
# vm.sh [-t SECONDS] [-m MiB] [-c CPUS] [-o DIR] [-s std|none] [-v] 'COMMAND'
#   Runs COMMAND with bash, as root, in a virtual machine whose kernel has soft-RoCE and soft-iWARP. The machine's "/" is
#   this one's, read-only under a tmpfs overlay; the command runs in the caller's directory with the caller's environment; its
#   output is streamed and its exit code is this script's (124: out of time; 125: the machinery failed).
#   -o DIR  a folder the guest may write to, at the same path (everything else it writes is lost)
#   -s      which RDMA devices guest.sh sets up (default std)      -v  the guest's console on standard error
#   FARKV_VM_CACHE   where the kernel is kept (about 400 MB; default ~/.cache/farkv-vm)
#   FARKV_VM_CLOCK   the guest kernel's parameters for its clock; default: the TSC where this kernel itself runs on it, its frequency given,
#                    else 'clocksource=hpet tsc=unstable'
#   FARKV_VM_QEMU    more arguments for QEMU: a second network card, say
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${FARKV_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/farkv-vm}
limit=300 memory=2048 cpus=2 writable='' devices=std verbose=''
while getopts t:m:c:o:s:v f; do
  case $f in
    t) limit=$OPTARG ;; m) memory=$OPTARG ;; c) cpus=$OPTARG ;; o) writable=$(realpath "$OPTARG") ;;
    s) devices=$OPTARG ;; v) verbose=1 ;; *) exit 125 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || { sed -n 2,12p "$0" >&2; exit 125; }

# The guest's TSC counts as this processor's does. Left to find out how fast, its kernel is mistaken when this machine is busy just then; but here
# it is known: twice the TSC's MHz is what a kernel calls bogomips, and with nonstop_tsc it is the same on all processors at all times.
tsc_clock() {
  local khz
  [ "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2> /dev/null)" = tsc ] && grep -qm1 '^flags.* nonstop_tsc' /proc/cpuinfo || return 1
  khz=$(awk -F: '/^bogomips/ { printf "%d", $2 * 500; exit }' /proc/cpuinfo)
  [ "${khz:-0}" -gt 100000 ] && echo "clocksource=tsc tsc=reliable tsc_early_khz=$khz"
}
clock=${FARKV_VM_CLOCK:-$(tsc_clock || echo clocksource=hpet tsc=unstable)}

mkdir -p "$cache"
(flock 9; "$here/prepare.sh" "$cache/image" > "$cache/prepare.log" 2>&1) 9> "$cache/lock" ||
  { echo "vm.sh: preparation failed:" >&2; tail -20 "$cache/prepare.log" >&2; exit 125; }
version=$(cat "$cache/image/version")

job=$(mktemp -d "$cache/job.XXXXXX")
qemu_pid='' reader_pids=''
cleanup() {
  [ -z "$qemu_pid" ] || { kill -TERM "$qemu_pid" && wait "$qemu_pid"; } 2>/dev/null || :
  for p in $reader_pids; do kill "$p" 2>/dev/null && wait "$p" 2>/dev/null || :; done
  rm -rf "$job"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

mkdir "$job/guest"
mkfifo "$job/out" "$job/err"
cp "$here/guest.sh" "$job/guest/guest.sh"
printf '%s\n' "$1" > "$job/guest/command"
pwd > "$job/guest/cwd"
export -p | grep -v -E 'declare -x (PWD|OLDPWD|SHLVL|_)\b' > "$job/guest/env"
printf 'modules=%q devices=%q writable=%q\n' "$cache/image/kernel/lib/modules" "$devices" "$writable" > "$job/guest/settings"

cat "$job/out" & k1=$!
cat "$job/err" >&2 & k2=$!
reader_pids="$k1 $k2"
exec 7> "$job/out" 8> "$job/err"   # the readers end when QEMU is gone, whatever it opened
extra=()
[ -z "$writable" ] || extra=(-fsdev "local,id=fo,path=$writable,security_model=none,multidevs=remap" -device virtio-9p-pci,fsdev=fo,mount_tag=out)
[ -z "${FARKV_VM_QEMU:-}" ] || read -ra more <<< "$FARKV_VM_QEMU"
timeout -k 2 "$limit" qemu-system-x86_64 -accel tcg,thread=multi,tb-size=512 -cpu max -smp "$cpus" \
  -M q35,i8042=off,smbus=off,sata=off -m "$memory" -nodefaults -no-user-config -display none -no-reboot \
  -kernel "$cache/image/vmlinux" -initrd "$cache/image/initrd" \
  -append "console=ttyS0 panic=-1 quiet mitigations=off nowatchdog no_timer_check $clock random.trust_cpu=on" \
  -chardev "file,id=con,path=$job/console" -serial chardev:con -monitor none -device virtio-rng-pci \
  -fsdev local,id=fh,path=/,security_model=none,readonly=on,multidevs=remap -device virtio-9p-pci,fsdev=fh,mount_tag=host \
  -fsdev "local,id=fj,path=$job/guest,security_model=none" -device virtio-9p-pci,fsdev=fj,mount_tag=job \
  -device virtio-serial-pci \
  -chardev "file,id=o,path=$job/out" -device virtserialport,chardev=o,name=o \
  -chardev "file,id=e,path=$job/err" -device virtserialport,chardev=e,name=e \
  "${extra[@]}" "${more[@]+"${more[@]}"}" < /dev/null > "$job/qemu" 2>&1 7>&- 8>&- &
qemu_pid=$!
q=0
wait $qemu_pid || q=$?
qemu_pid=
exec 7>&- 8>&-
wait $k1 $k2 || :
reader_pids=
[ -z "$verbose" ] || { cat "$job/console"; cat "$job/guest/dmesg" 2>/dev/null || :; } >&2
if [ -f "$job/guest/rc" ]; then exit "$(cat "$job/guest/rc")"; fi
[ "$q" != 124 ] || { echo "vm.sh: out of time ($limit s)" >&2; exit 124; }
{ echo "vm.sh: the guest failed (qemu exit code $q)"; cat "$job/qemu"; tail -30 "$job/console"; } >&2
exit 125
