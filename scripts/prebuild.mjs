// Puts addons where an installed package looks for them (native/addon-file.ts), so that `npm install farkv` needs no
// compiler on Linux with x64 and arm64, glibc 2.28 or later and musl. Run by `npm pack` and `npm publish` after
// setup.mjs.
//
//   node scripts/prebuild.mjs          all that this machine has compilers for, and says what is left out; `npm publish`
//                                      leaves nothing out
//   node scripts/prebuild.mjs --arch x64|arm64    the one for that processor with glibc
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { makeAddon, missingFor, root, TARGETS, verbsLeftOut } from './addons.mjs';

function fail(text) {
  process.stderr.write(`prebuild: ${text}\n`);
  process.exit(1);
}

// Users of the package cannot add what was left out here.
if (verbsLeftOut() !== undefined)
  fail(
    'the addon was built without RDMA headers, so the package would lack the verbs transport: apt-get install libibverbs-dev librdmacm-dev, then try again',
  );

const { arch: only } = parseArgs({ options: { arch: { type: 'string' } } }).values;
rmSync(join(root, 'prebuilds'), { recursive: true, force: true });
for (const target of TARGETS) {
  const { arch, library } = target;
  if (only !== undefined && (arch !== only || library !== 'glibc')) continue;
  const missing = missingFor(target);
  const text = `the addon for ${arch} with ${library} needs: ${missing}`;
  if (missing === undefined) {
    try {
      makeAddon(target, join(root, `prebuilds/linux-${arch}/farkv.napi.${library}.node`));
    } catch (error) {
      fail(error.message);
    }
  } else if (only !== undefined || process.env.npm_command === 'publish') fail(text);
  else process.stderr.write(`prebuild: left out: ${text}\n`);
}
