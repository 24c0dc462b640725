/**
 * `npm run sim -- --seed N --steps M`: replays a seed.
 * `npm run sim -- --seconds S [--steps M] [--from N]`: fresh seeds, one after the other, for so long; prints a report as JSON.
 * `--application metadata`: the members run the metadata's state machine in place of a chain of hashes; `owners`: and own shards under leases.
 */
import { parseArgs } from 'node:util';
import { APPLICATIONS, simulate, SimulationFailure, type ApplicationName, type Outcome } from './simulate.js';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    from: { type: 'string' },
    steps: { type: 'string', default: '100000' },
    seconds: { type: 'string' },
    application: { type: 'string', default: 'hashes' },
  },
});

const application = values.application as ApplicationName;
if (!(application in APPLICATIONS))
  throw new Error(`there is no application ${application}, but ${Object.keys(APPLICATIONS).join(' and ')}`);

function* seeds(): Generator<number> {
  if (values.seed !== undefined) {
    yield Number(values.seed);
    return;
  }
  const first = Number(values.from ?? Math.floor(Math.random() * 2 ** 31));
  const count = Number(values.seeds ?? Infinity);
  const end = performance.now() + 1000 * Number(values.seconds ?? (values.seeds === undefined ? 10 : Infinity));
  for (let i = 0; i < count && performance.now() < end; i++) yield first + i;
}

function add(total: Record<string, number>, outcome: Outcome): void {
  for (const [name, count] of Object.entries({ ...outcome.counters, ...outcome.owners, committed: outcome.committed, leaders: outcome.leaders })) {
    total[name] = (total[name] ?? 0) + count;
  }
}

const total: Record<string, number> = {};
let steps = 0;
let runs = 0;
const began = process.cpuUsage();
try {
  for (const seed of seeds()) {
    const outcome = simulate(seed, Number(values.steps), application);
    add(total, outcome);
    steps += outcome.steps;
    runs++;
  }
  const { user, system } = process.cpuUsage(began);
  const cpuSeconds = (user + system) / 1e6;
  console.log(
    JSON.stringify(
      { runs, steps, cpuSeconds: Number(cpuSeconds.toFixed(1)), stepsPerCpuSecond: Math.round(steps / cpuSeconds), ...total },
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
