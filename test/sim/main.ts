/**
 * `npm run sim -- --seed N --steps M`: replays a seed.
 * `npm run sim -- --seconds S [--steps M] [--from N]`: fresh seeds, one after the other, for so long; prints a report
 * as JSON. Exit codes: 0 nothing was violated, 1 something was (the message has the command that replays it), 2 wrong
 * usage.
 */
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { APPLICATION_NAMES, simulate, SimulationFailure, type Outcome } from './simulate.js';
import { wrongUsage } from '../support/wrong-usage.js';

const values = await yargs(hideBin(process.argv))
  .scriptName('npm run sim --')
  .usage(
    '$0 [options]\n\nThe real Raft and metadata over simulated disks, networks and clocks, with faults; invariants are checked after every step',
  )
  .option('seed', { type: 'number', conflicts: ['seeds', 'seconds', 'from'], describe: 'Replay this one' })
  .option('seconds', { type: 'number', describe: 'Fresh seeds for so long. Default: 10, or no limit with --seeds' })
  .option('seeds', { type: 'number', describe: 'At most so many seeds' })
  .option('from', { type: 'number', describe: 'The first of the seeds, which count up. Default: at random' })
  .option('steps', {
    type: 'number',
    default: 100_000,
    describe: 'Steps of each seed: delivered messages, ended I/Os, crashes, clock jumps',
  })
  .option('application', {
    choices: APPLICATION_NAMES,
    default: 'hashes' as const,
    describe:
      'What the members run: a chain of hashes, the state machine of the metadata, that with shards owned under leases and moved with their contents, or with copies of them; or copies of shards, over a log that is a list',
  })
  .check((given) => {
    for (const [name, low] of [
      ['seed', 0],
      ['seeds', 1],
      ['from', 0],
      ['steps', 1],
    ] as const) {
      const value = given[name];
      if (value !== undefined && !(Number.isInteger(value) && value >= low && value < 2 ** 32))
        throw new Error(`--${name}: a whole number from ${low} to ${2 ** 32 - 1}`);
    }
    if (given.seconds !== undefined && !(given.seconds > 0)) throw new Error('--seconds: more than 0');
    return true;
  })
  .fail(wrongUsage)
  .wrap(130)
  .strict()
  .parse();

function* seeds(): Generator<number> {
  if (values.seed !== undefined) {
    yield values.seed;
    return;
  }
  const first = values.from ?? Math.floor(Math.random() * 2 ** 31);
  const count = values.seeds ?? Infinity;
  const end = performance.now() + 1000 * (values.seconds ?? (values.seeds === undefined ? 10 : Infinity));
  for (let i = 0; i < count && performance.now() < end; i++) yield first + i;
}

function add(total: Record<string, number>, outcome: Outcome): void {
  for (const [name, count] of Object.entries({
    ...outcome.counters,
    ...outcome.owners,
    ...outcome.copies,
    committed: outcome.committed,
    leaders: outcome.leaders,
  })) {
    total[name] = (total[name] ?? 0) + count;
  }
}

const total: Record<string, number> = {};
let steps = 0;
let runs = 0;
const began = process.cpuUsage();
try {
  for (const seed of seeds()) {
    const outcome = simulate(seed, values.steps, values.application);
    add(total, outcome);
    steps += outcome.steps;
    runs++;
  }
  const { user, system } = process.cpuUsage(began);
  const cpuSeconds = (user + system) / 1e6;
  console.log(
    JSON.stringify(
      {
        runs,
        steps,
        cpuSeconds: Number(cpuSeconds.toFixed(1)),
        stepsPerCpuSecond: Math.round(steps / cpuSeconds),
        ...total,
      },
      undefined,
      2,
    ),
  );
} catch (error) {
  if (!(error instanceof SimulationFailure)) throw error;
  console.error(error.message);
  if (error.cause instanceof Error) console.error(error.cause.stack);
  process.exitCode = 1;
}
