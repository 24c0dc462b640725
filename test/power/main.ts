/**
 * `node dist/test/power/main.js --cuts 20 --servers 1 --seed N`: servers of durable values in a virtual machine, whose
 * power is cut under load, again and again, or while they recover. After each cut the machine starts with the same disks,
 * and every value that was acknowledged or READ must be there. Prints what was done and found; exit code 1 when something
 * is lost, with the command that does the same again.
 *
 * `--without-sync`: servers run without the sync of their log. Then something must be lost: else the exit code is 1.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { lyingDisk } from '../support/lying-disk.js';
import { Random } from '../support/random.js';
import { wrongUsage } from '../support/wrong-usage.js';
import { PowerDisk } from './disk.js';
import { Known, type Line } from './known.js';
import { Machine } from './machine.js';

const values = await yargs(hideBin(process.argv))
  .scriptName('npm run test:power --')
  .usage(
    '$0 [options]\n\nCuts the power of a virtual machine with servers of durable values, and looks for what is lost',
  )
  .option('cuts', { type: 'number', default: 20, describe: 'How often the power is cut' })
  .option('servers', { type: 'number', default: 1, describe: 'In the one machine, each with a disk of its own' })
  .option('seed', { type: 'number', describe: 'Of the moments and the load. Default: at random' })
  .option('without-sync', {
    type: 'boolean',
    default: false,
    describe: 'The log is not synced: some cut must lose something',
  })
  .fail(wrongUsage)
  .wrap(130)
  .strict()
  .parse();

/** Cut while the machine recovers: one of so many. */
const EARLY = 5;
const EARLY_MS = 10_000;
const LOAD_MS = 4000;
/** Fewer are no load. */
const ACKNOWLEDGED_MIN = 20;

const { cuts, withoutSync } = values;
const seed = values.seed ?? Math.floor(Math.random() * 2 ** 31);
const random = new Random(seed);
const replay = `npm run test:power -- --cuts ${cuts} --servers ${values.servers}${withoutSync ? ' --without-sync' : ''} --seed ${seed}`;
const began = performance.now();
const say = (text: string): void =>
  void process.stderr.write(`${((performance.now() - began) / 1000).toFixed(1).padStart(7)} s  ${text}\n`);
say(`seed ${seed}; the same again: ${replay}`);

const directory = mkdtempSync(join(tmpdir(), 'farkv-power-'));
const known = new Known();
const count = { cuts: 0, early: 0 };
const failures: string[] = [];
let running: Machine | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    running?.end();
    rmSync(directory, { recursive: true, force: true });
    process.exit(130);
  });

/** From one start of the machine to the cut. The last one is only looked at. */
async function live(disks: readonly PowerDisk[], start: number, env: Readonly<Record<string, string>>): Promise<void> {
  const last = start > cuts;
  const early = !last && start > 1 && !withoutSync && random.below(EARLY) === 0;
  const waitMs = random.below(early ? EARLY_MS : LOAD_MS);
  const before = known.acknowledged;
  let reached = (): void => undefined;
  const due = new Promise<void>((resolve) => (reached = resolve));
  const until = last ? 'checked' : early ? 'mounted' : 'ack';
  const heard = (line: Line): void => {
    known.learn(line);
    if (line.t === 'ready' || line.t === 'checked') say(`  ${line.t}`);
    if (line.t === until && (line.t !== 'ack' || known.acknowledged - before >= ACKNOWLEDGED_MIN)) reached();
  };
  const labels = disks.map(({ label }) => label);
  const machine = new Machine(directory, disks, { labels, start, seed, env }, heard);
  running = machine;
  const gone = machine.gone();
  await Promise.race([due, gone]);
  if (!last) await Promise.race([sleep(waitMs), gone]);
  machine.cut();
  await gone;
  if (machine.said.includes('ERR_')) say(machine.said.slice(-2000));
  if (last) return;
  count.cuts++;
  if (early) count.early++;
  say(`cut ${count.cuts}${early ? ', early' : ''}: ${known.acknowledged - before} acknowledged since the start`);
}

try {
  const disks = Array.from({ length: values.servers }, (_, i) => new PowerDisk(directory, i + 1));
  for (let start = 1; start <= cuts + 1 && known.losses.length === 0; start++) {
    say(`start ${start}`);
    await live(disks, start, withoutSync ? lyingDisk(directory, 'sync') : {});
  }
} catch (error) {
  failures.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
} finally {
  rmSync(directory, { recursive: true, force: true });
}
const { acknowledged, read, checked, losses } = known;
process.stdout.write(
  `${JSON.stringify({ seed, servers: values.servers, withoutSync, ...count, acknowledged, read, checked, losses: losses.length }, undefined, 2)}\n`,
);
if (withoutSync && losses.length === 0)
  failures.push('the log was not synced, and nothing was lost: this test is blind');
const SHOWN = 8;
for (const loss of losses.slice(0, SHOWN)) process.stderr.write(`${withoutSync ? 'as it must be: ' : ''}${loss}\n`);
for (const failure of failures) process.stderr.write(`${failure}\n`);
if (failures.length > 0 || (!withoutSync && losses.length > 0)) {
  process.stderr.write(`replay: ${replay}\n`);
  process.exitCode = 1;
}
