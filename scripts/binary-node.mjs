// The Node.js of one-file executables, of the Debian package and of the container: a release, as the npm package `node` brings it for each processor,
// pinned by the hash of its program. It is kept in build/node, which may be deleted at any time.
// `node scripts/binary-node.mjs x64|arm64` prints the folder of the one for that processor.
//
// The version must have SEA's `execArgvExtension` (24.6 or later): without it, NODE_OPTIONS runs foreign code inside of
// farkv. It must run with glibc 2.28, which scripts/check-binary.sh looks at.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './addons.mjs';

export const NODE_VERSION = '24.21.0';
const SHA256 = {
  x64: '7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c',
  arm64: '0f8949d1028f6d61506b2d5bc57e7e6fe893d7b1997509b7847294fc9c616584',
};

const programIn = (folder) => join(folder, 'bin/node');

/** The folder of a Node.js for this processor: bin/node, LICENSE, include/node. */
export function nodeFor(arch) {
  const kept = join(root, `build/node/${NODE_VERSION}-${arch}`);
  if (existsSync(programIn(kept))) return kept;
  mkdirSync(join(root, 'build/node'), { recursive: true });
  const work = mkdtempSync(join(root, 'build/node/new-'));
  try {
    const spec = `node-linux-${arch}@${NODE_VERSION}`;
    const name = run('npm', ['pack', '--silent', '--pack-destination', work, spec]).trim().split('\n').at(-1);
    run('tar', ['xzf', join(work, name), '-C', work]);
    const folder = join(work, 'package');
    const hash = createHash('sha256')
      .update(readFileSync(programIn(folder)))
      .digest('hex');
    if (hash !== SHA256[arch]) throw new Error(`${spec} has a program with another hash than the pinned one: ${hash}`);
    rmSync(kept, { recursive: true, force: true });
    renameSync(folder, kept);
    return kept;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

if (import.meta.filename === process.argv[1]) process.stdout.write(`${nodeFor(process.argv[2])}\n`);
