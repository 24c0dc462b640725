/**
 * `npm run campaign -- --kills 1000`: runs with copies until so many servers were killed at this commit, in this call
 * and those before it; with `--level durable`, until all servers were killed at once so often, under load. Prints the totals; exit code 1 when any run of the commit was wrong.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { wrongUsage } from '../support/wrong-usage.js';
import { Campaign, campaignDirectory, roundOf } from './campaign.js';
import { canMakeNetworks } from './network.js';
import { replayOf } from './replay.js';
import { run } from './run.js';

const values = await yargs(hideBin(process.argv))
  .scriptName('npm run campaign --')
  .usage(
    '$0 [options]\n\nChaos runs with copies, of other arrangements and seeds each time, until so many kills were made',
  )
  .option('kills', {
    type: 'number',
    default: 50,
    describe: 'At this commit in all: processes of servers that are ended; durable: kills of all at once, under load',
  })
  .option('level', {
    choices: ['replicated', 'durable'] as const,
    default: 'replicated',
    describe: 'durable: copies are on disks too, and nothing excuses a loss',
  })
  .option('seconds', { type: 'number', default: 60, describe: 'How long faults are made in each run' })
  .option('at-once', { type: 'number', default: 1, describe: 'Runs beside each other, each with its own servers' })
  .option('minutes', {
    type: 'number',
    default: Infinity,
    describe: 'No run begins later than that; the next call goes on',
  })
  .option('rate', { type: 'number', default: 300, describe: 'Calls a second, over all clients' })
  .option('directory', { type: 'string', default: campaignDirectory(), describe: 'Where totals are kept, by commit' })
  .fail(wrongUsage)
  .wrap(130)
  .strict()
  .parse();

/** What is not committed makes another one of it. */
function commit(): string {
  const git = (...words: readonly string[]): string => execFileSync('git', words, { encoding: 'utf8' }).trim();
  const changes = git('diff', 'HEAD');
  const head = git('rev-parse', 'HEAD');
  return changes === '' ? head : `${head}-${createHash('sha256').update(changes).digest('hex').slice(0, 8)}`;
}

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const at = commit();
const level = values.level as 'replicated' | 'durable';
const campaign = new Campaign(values.directory, at, level);
const began = performance.now();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const goesOn = (): boolean => campaign.kills < values.kills && performance.now() - began < 60_000 * values.minutes;

async function lane(): Promise<void> {
  while (goesOn()) {
    const { seed, arrangement } = campaign.begin();
    const options = {
      ...arrangement,
      seed,
      seconds: values.seconds,
      clients: 4,
      operationsPerSecond: values.rate,
      // Who loses its lease on a busy machine loses no durable value by that.
      ownerLeaseMs: level === 'durable' ? 1000 : 1500,
    };
    const replay = replayOf(options);
    say(replay);
    const report = await run({
      ...options,
      operationsMin: 0,
      killsMax: values.kills - campaign.kills,
      say: () => undefined,
    });
    const { kills, underLoad, operations, failures, directory } = report;
    campaign.add(roundOf(report, seed, replay));
    const all = level === 'durable' ? `, ${underLoad} of all at once under load` : '';
    say(`  seed ${seed}: ${kills} kills${all}, ${operations} operations, ${failures.length} failures`);
    for (const failure of failures.slice(0, 3)) say(`  ${failure.slice(0, 1000)}`);
    if (failures.length > 0) say(`  histories and logs: ${directory}`);
  }
}

await Promise.all(Array.from({ length: values.atOnce }, lane));
const { totals } = campaign;
if (!canMakeNetworks()) say('no host was cut off: that takes root, and network namespaces');
process.stdout.write(`${JSON.stringify({ commit: at, level, ...totals }, undefined, 2)}\n`);
process.exitCode = totals.failures > 0 ? 1 : 0;
