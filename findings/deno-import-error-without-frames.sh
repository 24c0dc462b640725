#!/usr/bin/env bash
# Deno 2.9.6 (npm package deno): import() gives an error that a module throws another `code`, ERR_MODULE_NOT_FOUND, when
# the error has no stack frames. Seen on Linux x64:
#
#   Node.js, 10 frames: ERR_APP    Deno, 10 frames: ERR_APP
#   Node.js, 1 frame:   ERR_APP    Deno, 1 frame:   ERR_APP
#   Node.js, 0 frames:  ERR_APP    Deno, 0 frames:  ERR_MODULE_NOT_FOUND
#
# The good guess: `code` is the program's own property, and Error.stackTraceLimit decides what is printed of an error and
# nothing else; so whoever sets it to 0, to end with one line and no stack, changes nothing for those who catch. But Deno
# takes an error without frames for one of its own, of a module that could not be loaded. The message stays, so a program
# that asks for `code` looks for a file that is there. One frame is enough.
#
# Needs Node.js and the npm registry; exits with 1 when what is printed changes.
set -euo pipefail
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"
npm init -y > init.log
npm install --silent --no-audit --no-fund deno@2.9.6 > install.log 2>&1 || { cat install.log; exit 1; }

cat > thrower.mjs << 'JS'
import process from 'node:process';
const { stackTraceLimit } = Error;
Error.stackTraceLimit = Number(process.env.FRAMES);
const error = Object.assign(new Error('not here'), { code: 'ERR_APP' });
Error.stackTraceLimit = stackTraceLimit;
throw error;
JS
cat > catcher.mjs << 'JS'
import process from 'node:process';
const error = await import('./thrower.mjs').catch((caught) => caught);
console.log(`${process.env.FRAMES} frames: ${error.code}, ${error.message}`);
JS

seen=$(for frames in 10 1 0; do
  printf 'node '; FRAMES=$frames node catcher.mjs
  printf 'deno '; FRAMES=$frames npx --no-install deno run --allow-env catcher.mjs
done)
echo "$seen"
diff <(echo "$seen") - << 'EXPECTED'
node 10 frames: ERR_APP, not here
deno 10 frames: ERR_APP, not here
node 1 frames: ERR_APP, not here
deno 1 frames: ERR_APP, not here
node 0 frames: ERR_APP, not here
deno 0 frames: ERR_MODULE_NOT_FOUND, not here
EXPECTED
