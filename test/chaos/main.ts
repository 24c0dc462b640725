/**
 * `node dist/test/chaos/main.js --seconds 600 --seed N`: five servers and six clients as processes, under kill -9,
 * orderly restarts, pauses of one server, of a majority and of all, and cuts of the network both ways and one way,
 * while the clients make every call of the SDK; then every history is checked for linearizability, every value for
 * whose it is, and every loss for its cause. Prints what was done and found; exit code 1 when something is wrong, with
 * the command that makes the same faults again.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { levelOf } from './copy-faults.js';
import { loadEvidence } from './evidence.js';
import { judge } from './judge.js';
import { spreadOf } from './outages.js';
import { replayOf } from './replay.js';
import { ELECTION_MS, run, type ClientTransports } from './run.js';
import { KINDS, kindsAt, type Fault, type Level } from './schedule.js';
import { wrongUsage } from '../support/wrong-usage.js';

const atLeast =
  (name: string, low: number) =>
  (value: number): number => {
    if (!Number.isInteger(value) || value < low) throw new Error(`--${name}: a whole number from ${low} on`);
    return value;
  };
const kinds = (text: string): Fault['kind'][] =>
  text.split(',').map((word) => {
    const kind = KINDS.find((one) => one === word);
    if (kind === undefined) throw new Error(`--faults: there is no kind "${word}"`);
    return kind;
  });
const values = await yargs(hideBin(process.argv))
  .scriptName('node dist/test/chaos/main.js')
  .usage(
    '$0 [options]\n\nServers and clients as processes, faults, and histories that must be linearizable. As root hosts are cut off too',
  )
  .option('seconds', {
    type: 'number',
    default: 60,
    coerce: atLeast('seconds', 1),
    describe: 'How long faults are made',
  })
  .option('seed', { type: 'number', coerce: atLeast('seed', 0), describe: 'Of the faults. Default: at random' })
  .option('servers', { type: 'number', default: 5, coerce: atLeast('servers', 1), describe: 'Server processes' })
  .option('clients', { type: 'number', default: 6, coerce: atLeast('clients', 1), describe: 'Client processes' })
  .option('transport', {
    choices: ['shm', 'tcp', 'both', 'verbs'] as const,
    default: 'both',
    describe:
      'How clients reach servers; both: half of them each. verbs: over the device that FARKV_RDMA_DEVICE names, servers too',
  })
  .option('tls', {
    type: 'boolean',
    default: false,
    describe: 'Control and data ports have TLS; hosts are not cut off then',
  })
  .option('faults', {
    type: 'string',
    describe: `Only these kinds, with commas between them: ${KINDS.join(', ')}. Default: all`,
    coerce: kinds,
  })
  .option('level', {
    choices: ['cache', 'replicated', 'durable'] as const,
    default: 'cache',
    describe:
      'replicated: shards have copies, servers are disturbed one after the other, and nothing may be lost. durable: on disks too, all servers are killed at once, and nothing excuses a loss',
  })
  .option('replicas', { type: 'number', default: 2, coerce: atLeast('replicas', 2), describe: 'Copies, unless cache' })
  .option('min-in-sync', {
    type: 'number',
    default: 1,
    coerce: atLeast('min-in-sync', 1),
    describe: 'Copies that changes need, unless cache',
  })
  .option('sync', {
    type: 'number',
    coerce: atLeast('sync', 10),
    describe:
      'durable: changes are answered about so many milliseconds before disks have them; servers are disturbed one after the other, and nothing may be lost',
  })
  .option('owner-lease-ms', {
    type: 'number',
    default: 1500,
    coerce: atLeast('owner-lease-ms', 100),
    describe: 'How long a server must be silent to lose its shards. A busy machine needs longer ones',
  })
  .option('election-ms', {
    type: 'number',
    default: ELECTION_MS,
    coerce: atLeast('election-ms', 100),
    describe: 'How long servers hear no leader before they elect one',
  })
  .option('rate', {
    type: 'number',
    default: 600,
    coerce: atLeast('rate', 1),
    describe: 'Calls a second, over all clients',
  })
  .option('at-least', {
    type: 'number',
    coerce: atLeast('at-least', 0),
    describe: 'Fewer operations are a failure. Default: 100,000 in 600 s',
  })
  .option('kills', {
    type: 'number',
    coerce: atLeast('kills', 1),
    describe:
      'The faults end with so many processes of servers ended (durable: so many kills of all at once, under load), and take up to four times the seconds. Fewer are a failure',
  })
  .option('again', {
    type: 'string',
    describe: 'The directory that a run left: its histories are judged again, and nothing is run',
  })
  .option('quiet', { type: 'boolean', default: false, describe: 'Print the report only' })
  .fail(wrongUsage)
  .wrap(130)
  .strict()
  .parse();

/** So many failures are printed whole, of the others the first line. */
const SHOWN = 8;
if (values.again !== undefined) {
  const { violations, ...verdicts } = await judge(loadEvidence(values.again));
  process.stdout.write(`${JSON.stringify({ ...verdicts, violations: violations.length }, undefined, 2)}\n`);
  process.stderr.write(violations.map((one) => `${one}\n\n`).join(''));
  process.exit(violations.length === 0 ? 0 : 1);
}
const { seconds } = values;
const seed = values.seed ?? Math.floor(Math.random() * 2 ** 31);
const began = performance.now();
const say = (text: string): void => {
  if (!values.quiet)
    process.stderr.write(`${((performance.now() - began) / 1000).toFixed(1).padStart(7)} s  ${text}\n`);
};
const level = values.level as Level;
const { replicas, minInSync } = values;
const syncMs = values.sync;
if (syncMs !== undefined && level !== 'durable') throw new Error('--sync: is for --level durable');
const copies =
  level === 'cache'
    ? undefined
    : { replicas, minInSync, durable: level === 'durable', ...(syncMs === undefined ? {} : { syncMs }) };
const only = values.faults;
for (const kind of only ?? [])
  if (!kindsAt(levelOf(copies)).includes(kind))
    throw new Error(
      `--faults: there is no ${kind} where the level is ${level}${syncMs === undefined ? '' : ' with --sync'}`,
    );
const options = {
  seed,
  seconds,
  servers: values.servers,
  clients: values.clients,
  transport: values.transport as ClientTransports,
  tls: values.tls,
  operationsPerSecond: values.rate,
  ownerLeaseMs: values.ownerLeaseMs,
  electionMs: values.electionMs,
  copies,
  only,
};
const replay = replayOf(options);
say(`seed ${seed}; the same faults again: ${replay}`);

// Servers and clients end with their standard input, namespaces as network.ts says.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const { kills } = values;
const report = await run({
  ...options,
  operationsMin: values.atLeast ?? Math.round((100_000 * seconds) / 600),
  ...(kills === undefined ? {} : { killsMin: kills, killsMax: kills }),
  say,
});
const { failures, directory, outages, ...figures } = report;
const waits =
  outages === undefined
    ? {}
    : {
        outages: Object.fromEntries(
          Object.entries(outages).map(([what, ms]: [string, readonly number[]]) => [what, spreadOf(ms)]),
        ),
      };
process.stdout.write(
  `${JSON.stringify({ seed, seconds, ...figures, ...waits, failures: failures.length }, undefined, 2)}\n`,
);
if (failures.length > 0) {
  const rest = failures.slice(SHOWN).map((one) => one.split('\n', 1)[0]);
  const more = rest.length > 0 ? `\n\nand ${rest.length} more:\n${rest.join('\n')}` : '';
  process.stderr.write(
    `${failures.slice(0, SHOWN).join('\n\n')}${more}\n\n${failures.length} failures. Histories, logs and all failures: ${directory}\nreplay: ${replay}\n`,
  );
  writeFileSync(join(directory, 'failures.txt'), `${failures.join('\n\n')}\n`);
  process.exitCode = 1;
}
