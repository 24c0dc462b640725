// Writes the manual pages and the completions of bash, zsh and fish, made from what the commands declare:
//   node scripts/make-manual.mjs DIRECTORY
// Run by scripts/make-tree.sh, after setup.mjs.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const [directory] = process.argv.slice(2);
if (directory === undefined) {
  process.stderr.write('usage: node scripts/make-manual.mjs DIRECTORY\n');
  process.exit(2);
}
// Defaults that this machine's environment gives are nobody else's.
for (const name of Object.keys(process.env)) if (name.startsWith('FARKV_')) delete process.env[name];
const { manual } = await import('../dist/server/cli/manual/index.js');
for (const [path, text] of await manual()) {
  mkdirSync(join(directory, path, '..'), { recursive: true });
  writeFileSync(join(directory, path), text);
}
