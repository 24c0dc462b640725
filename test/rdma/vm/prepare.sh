#!/usr/bin/env bash
# prepare.sh DIR: makes in DIR what vm.sh boots: Debian's kernel and modules, soft-iWARP built from Debian's kernel source,
# an initial ramdisk. Installs the Debian packages that are missing (root needed for that). Does nothing when DIR is ready.
set -euo pipefail
dir=$1
here=$(cd "$(dirname "$0")" && pwd)
packages=(qemu-system-x86 busybox-static cpio kmod xz-utils make gcc-12 binutils libelf1 python3-minimal libibverbs-dev
  librdmacm-dev rdma-core perftest ibverbs-providers ibverbs-utils rdmacm-utils iproute2)

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ] || [ ! -f "$dir/ready" ]; then apt-get -qq update; fi
if [ ${#missing[@]} -gt 0 ]; then
  DEBIAN_FRONTEND=noninteractive apt-get -y -qq --no-install-recommends install "${missing[@]}"
fi
# The guest's part is small and may change with this repository; the kernel does not.
stamp=$(cat "$here/prepare.sh" "$here/init" | sha256sum | cut -d' ' -f1)
[ "$(cat "$dir/ready" 2>/dev/null)" != "$stamp" ] || exit 0
rm -rf "$dir"
mkdir -p "$dir"/{deb,kernel,headers,siw}

image=$(apt-cache depends linux-image-amd64 | awk '/Depends:/{print $2; exit}')
version=${image#linux-image-}
(cd "$dir/deb" && apt-get -qq download "$image" "linux-headers-$version" "linux-headers-${version%-amd64}-common" \
  linux-kbuild-6.1 linux-source-6.1)
dpkg -x "$dir"/deb/"$image"_*.deb "$dir/kernel"
for p in "$dir"/deb/linux-headers-* "$dir"/deb/linux-kbuild-*; do dpkg -x "$p" "$dir/headers"; done

# Debian's configuration leaves siw out: build that one module.
dpkg-deb --fsys-tarfile "$dir"/deb/linux-source-6.1_*.deb | tar -xO ./usr/src/linux-source-6.1.tar.xz | xz -dc -T0 |
  tar -x -C "$dir/siw" --wildcards --strip-components=5 'linux-source-6.1/drivers/infiniband/sw/siw*'
headers=$dir/headers/usr/src/linux-headers-$version
sed -i "s#/usr/src/#$dir/headers/usr/src/#" "$headers/Makefile"
make -s -j2 -C "$headers" M="$dir/siw" CONFIG_RDMA_SIW=m modules
strip --strip-debug "$dir/siw/siw.ko"
install -D "$dir/siw/siw.ko" "$dir/kernel/lib/modules/$version/updates/siw.ko"
/sbin/depmod -b "$dir/kernel" "$version"

# An uncompressed kernel boots two emulated seconds sooner; without it the packed one does.
python3 - "$dir/kernel/boot/vmlinuz-$version" "$dir/vmlinux" <<'PY' 2>/dev/null || cp "$dir/kernel/boot/vmlinuz-$version" "$dir/vmlinux"
import lzma, re, sys
packed = open(sys.argv[1], 'rb').read()
for m in re.finditer(re.escape(b'\xfd7zXZ\0'), packed):
    try:
        image = lzma.LZMADecompressor().decompress(packed[m.start():])
    except lzma.LZMAError:
        continue
    if image[:4] == b'\x7fELF':
        open(sys.argv[2], 'wb').write(image)
        sys.exit(0)
sys.exit(1)
PY

# The ramdisk: busybox, the modules that reach the root file system, init.
ram=$dir/ram
mkdir -p "$ram"/{bin,sbin,modules,proc,sys,dev,host,rw,root}
cp /bin/busybox "$ram/bin/busybox"
for m in virtio_pci 9pnet_virtio 9p overlay virtio_console; do
  /sbin/modprobe -d "$dir/kernel" -S "$version" --show-depends "$m" | awk '$1 == "insmod" {print $2}'
done | awk '!seen[$0]++' | while read -r m; do
  cp "$m" "$ram/modules/"
  basename "$m" >> "$ram/modules/order"
done
# Modules that the kernel asks for by itself later (crc32, netem, rdma-link-rxe) come from the whole tree.
printf '#!/bin/busybox sh\nexec /bin/busybox chroot /root /sbin/modprobe "$@"\n' > "$ram/sbin/modprobe"
cp "$here/init" "$ram/init"
chmod +x "$ram/init" "$ram/sbin/modprobe"
(cd "$ram" && find . | cpio -o -H newc 2>/dev/null | gzip -1) > "$dir/initrd"
rm -rf "$dir/deb" "$dir/headers" "$ram"
echo "$version" > "$dir/version"
echo "$stamp" > "$dir/ready"
