#!/usr/bin/env bash
# Builds the Debian package: bash scripts/make-deb.sh [FOLDER] [x64|arm64] writes FOLDER/farkv_VERSION_amd64.deb (arm64: ..._arm64.deb) and prints
# its path. Default: build, and this machine's processor. For another one it needs a cross compiler, which it names.
# It has its own Node.js, so it installs on any Debian or Ubuntu with glibc 2.28; needs dpkg-deb.
set -euo pipefail
cd "$(dirname "$0")/.."
to=${1:-build}
arch=${2:-$(node -p process.arch)}
mkdir -p "$to"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

bash scripts/make-tree.sh "$root" "$arch"
version=$(node -p 'require("./package.json").version')
declare -A debian=([x64]=amd64 [arm64]=arm64)
architecture=${debian[$arch]}
install -D -m 644 deploy/systemd/farkv.service "$root/lib/systemd/system/farkv.service"
install -D -m 644 deploy/deb/farkv.yaml "$root/etc/farkv/farkv.yaml"
install -D -m 644 deploy/deb/default "$root/etc/default/farkv"
install -D -m 644 deploy/deb/lintian-overrides "$root/usr/share/lintian/overrides/farkv"
gzip -9n "$root"/usr/share/man/man1/*.1

doc=$root/usr/share/doc/farkv
mkdir -p "$doc"
gzip -9nc CHANGELOG.md > "$doc/CHANGELOG.md.gz"
date=$(date -uR -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}")
maintainer="${DEBFULLNAME:-the farkv authors} <${DEBEMAIL:-farkv@noreply.example.org}>"
gzip -9nc << CHANGES > "$doc/changelog.gz"
farkv ($version) unstable; urgency=medium

  * CHANGELOG.md.gz beside this file has what is new.

 -- $maintainer  $date
CHANGES
{
  cat deploy/deb/copyright
  echo 'License: Expat'
  sed -n '/^Permission/,$p' LICENSE | sed 's/^$/./; s/^/ /'
} > "$doc/copyright"
gzip -9nc "$(node scripts/binary-node.mjs "$arch")/LICENSE" > "$doc/node.LICENSE.gz"
chmod 644 "$doc"/*
# Errors and --help name them.
install -m 644 README.md "$doc"
install -D -m 644 -t "$doc/docs" docs/*.md

# The newest version of the C library that a program or an addon asks for.
glibc=$(find "$root/usr/lib" \( -name node -o -name '*.node' \) -type f -exec readelf --wide --dyn-syms {} + | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -1)
mkdir "$root/DEBIAN"
cat > "$root/DEBIAN/control" <<CONTROL
Package: farkv
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Section: database
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: adduser, libc6 (>= $glibc), libgcc-s1, libstdc++6
Recommends: ibverbs-providers, libibverbs1, librdmacm1
Description: distributed key-value store whose GETs are one-sided READs
 Servers keep hash tables in memory that clients read over RDMA, shared
 memory or TCP; Raft replicates the metadata. This package has the server
 as a systemd unit, the command line, and the Node.js that runs them.
CONTROL
(cd "$root" && find etc -type f | sed 's|^|/|' | sort > DEBIAN/conffiles && find usr lib -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
for script in postinst prerm postrm; do install -m 755 "deploy/deb/$script" "$root/DEBIAN/$script"; done
chmod 644 "$root"/DEBIAN/{control,conffiles,md5sums}
find "$root" -type d -exec chmod 755 {} +
deb=$to/farkv_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$deb" > /dev/null
echo "$deb"
