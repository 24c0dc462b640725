// Times the start of the one-file executable beside that of the package with this Node.js, in turn:
// node scripts/check-start.mjs FILE. Fails where the file takes more than 1.5 times as long, by the medians.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';

const ROUNDS = 15;
const TIMES_MAX = 1.5;
const cli = join(import.meta.dirname, '../dist/server/cli/main.js');
const sides = [
  { name: 'the file', command: [process.argv[2], '--version'], ms: [] },
  { name: `the package with Node.js ${process.versions.node}`, command: [process.execPath, cli, '--version'], ms: [] },
];
// The first round reads the files from the disk.
for (let round = 0; round <= ROUNDS; round++) {
  for (const { command, ms } of sides) {
    const begun = performance.now();
    const { status, error } = spawnSync(command[0], command.slice(1));
    if (status !== 0) throw error ?? new Error(`${command.join(' ')} ended with ${status}`);
    if (round > 0) ms.push(performance.now() - begun);
  }
}
for (const { ms } of sides) ms.sort((a, b) => a - b);
const median = ({ ms }) => ms[(ROUNDS - 1) / 2];
const said = sides.map(
  (side) => `${side.name} ${Math.round(median(side))} ms (${Math.round(side.ms[0])} to ${Math.round(side.ms.at(-1))})`,
);
console.log(`--version, median of ${ROUNDS}: ${said.join(', ')}`);
process.exitCode = median(sides[0]) <= TIMES_MAX * median(sides[1]) ? 0 : 1;
