// Compares a size that README.md states with that of what was made, within a tenth:
// node scripts/check-size.mjs TEXT BYTES, where TEXT is in the line of README.md that says it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const [text, bytes] = process.argv.slice(2);
const line = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8')
  .split('\n')
  .find((one) => one.startsWith('|') && one.includes(text));
const said = Number(/([\d.]+) MiB/.exec(line ?? '')?.[1]);
const made = Number(bytes) / 2 ** 20;
if (!(Math.abs(made - said) <= said / 10)) {
  process.stderr.write(`README.md says ${said} MiB of ${text}, and it has ${made.toFixed(1)} MiB\n`);
  process.exitCode = 1;
}
