#!/usr/bin/env bash
# npm run test:power: cuts the power of a virtual machine with servers of durable values (see test/rdma/README.md). Needs root on Debian:
# it installs nbdkit, and what the virtual machine needs. Without arguments: one server, three servers, and servers without the sync of their
# log, which must be found out. With arguments: node dist/test/power/main.js.
set -euo pipefail
cd "$(dirname "$0")/../.."
dpkg-query -W -f '${Status}' nbdkit 2> /dev/null | grep -q 'ok installed' || {
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -y -qq --no-install-recommends install nbdkit > /dev/null
}
node scripts/setup.mjs
[ $# -eq 0 ] || exec node dist/test/power/main.js "$@"
status=0
node dist/test/power/main.js --cuts 20 || status=1
node dist/test/power/main.js --cuts 6 --servers 3 || status=1
node dist/test/power/main.js --cuts 5 --without-sync || status=1
exit $status
