// Writes msgpackr's code and licence into dist/core/msgpackr.js, so that an installed farkv needs no package msgpackr.
// Run after tsc, by scripts/setup.mjs. A module that tsc alone has written imports the package instead, which a clone has.
//
// The bundle has msgpackr's entry for any platform: the one for Node.js differs in that it looks for msgpackr-extract,
// and has streams.
import { build } from 'esbuild';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const root = join(import.meta.dirname, '..');
const { version } = JSON.parse(readFileSync(join(root, 'node_modules/msgpackr/package.json'), 'utf8'));
const license = readFileSync(join(root, 'node_modules/msgpackr/LICENSE'), 'utf8').trim();

const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['core/msgpackr.ts'],
  outfile: 'dist/core/msgpackr.js',
  bundle: true,
  metafile: true,
  platform: 'neutral',
  format: 'esm',
  target: 'es2023',
  banner: { js: `/*! Made from msgpackr ${version}, whose licence is:\n\n${license}\n*/` },
  logLevel: 'error',
});
const others = Object.keys(metafile.inputs).filter(
  (path) => path !== 'core/msgpackr.ts' && !path.startsWith('node_modules/msgpackr/'),
);
if (others.length > 0) {
  process.stderr.write(`bundle: the bundle of msgpackr has ${others.join(', ')}, whose licences it lacks\n`);
  process.exit(1);
}
