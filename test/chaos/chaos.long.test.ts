/**
 * The short form of a run under faults; `node dist/test/chaos/main.js --seconds 600` is the long one. Leases are long:
 * a server that a busy machine keeps from running for a whole lease loses its shards, and nothing that the nemesis did
 * permits that.
 */
import test from 'ava';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lyingDisk } from '../support/lying-disk.js';
import { chosenSeed } from '../support/random.js';
import { CALLS } from './calls.js';
import { FORMS } from './keys.js';
import { replayOf } from './replay.js';
import { run } from './run.js';

test.serial(
  'every call of the SDK keeps its promises while servers are killed, paused, restarted and cut off',
  async (t) => {
    // Up to four times its seconds on a machine that does little in them, and a minute each for the start, the servers'
    // return and the last answers.
    t.timeout(600_000);
    const seed = chosenSeed();
    t.log(`seed ${seed}; the same faults for longer: node dist/test/chaos/main.js --seconds 120 --seed ${seed}`);
    const faults: string[] = [];
    const report = await run({
      seed,
      seconds: 25,
      servers: 5,
      clients: 4,
      transport: 'both',
      tls: false,
      operationsPerSecond: 400,
      ownerLeaseMs: 3000,
      operationsMin: 2000,
      say: (text) => faults.push(text),
    });
    t.log(
      `${report.operations} operations on ${report.keys} keys, ${report.epochs} changes of hands, ${report.seededStaleReads} seeded stale reads refused`,
    );
    t.deepEqual(report.failures, [], faults.join('\n'));
    t.true(report.seededStaleReads > 0);
    const made = Object.keys(report.calls);
    const forms = CALLS.flatMap(({ name, plain }) => (plain ? FORMS : ['']).map((form) => `${name} ${form}`.trim()));
    t.deepEqual(
      forms.filter((one) => !made.some((call) => one.split(' ').every((word) => call.split(' ').includes(word)))),
      [],
      'calls that no client was answered',
    );
  },
);

test.serial('nothing that was acknowledged or READ is lost while servers with copies are killed', async (t) => {
  t.timeout(600_000);
  const seed = chosenSeed();
  const faults: string[] = [];
  const options = {
    seed,
    seconds: 25,
    servers: 3,
    clients: 4,
    transport: 'both',
    tls: false,
    operationsPerSecond: 300,
    ownerLeaseMs: 3000,
    copies: { replicas: 2, minInSync: 1 },
    only: ['kill', 'pause', 'kill-owner-and-leader', 'stop-backup-kill-owner', 'kill-joiner'],
  } as const;
  t.log(`seed ${seed}; the same faults again: ${replayOf(options)}`);
  const report = await run({ ...options, operationsMin: 1000, killsMin: 3, say: (text) => faults.push(text) });
  t.log(`${report.operations} operations, ${report.kills} kills, ${report.indeterminate} indeterminate`);
  t.deepEqual(report.failures, [], faults.join('\n'));
  t.is(report.permittedLosses, 0);
});

const DURABLE = {
  servers: 3,
  clients: 4,
  transport: 'both',
  tls: false,
  operationsPerSecond: 300,
  ownerLeaseMs: 1000,
  copies: { replicas: 2, minInSync: 1, durable: true },
} as const;

test.serial('no durable value is lost while servers are killed, one and all at once', async (t) => {
  t.timeout(600_000);
  const seed = chosenSeed();
  const faults: string[] = [];
  const options = { ...DURABLE, seed, seconds: 25, only: ['kill', 'kill-all', 'kill-returning', 'pause'] } as const;
  t.log(`seed ${seed}; the same faults again: ${replayOf(options)}`);
  const report = await run({ ...options, operationsMin: 500, killsMin: 2, say: (text) => faults.push(text) });
  t.log(`${report.operations} operations, ${report.kills} kills, ${report.underLoad} of all at once under load`);
  t.deepEqual(report.failures, [], faults.join('\n'));
  t.is(report.permittedLosses, 0);
});

test.serial(
  'no durable value that was answered early is lost while one server after the other is killed',
  async (t) => {
    t.timeout(600_000);
    const seed = chosenSeed();
    const faults: string[] = [];
    const copies = { ...DURABLE.copies, syncMs: 50 };
    const only = ['kill', 'pause', 'kill-backup-then-owner', 'kill-joiner', 'drain'] as const;
    const options = { ...DURABLE, ownerLeaseMs: 3000, copies, seed, seconds: 25, only } as const;
    t.log(`seed ${seed}; the same faults again: ${replayOf(options)}`);
    const report = await run({ ...options, operationsMin: 500, killsMin: 2, say: (text) => faults.push(text) });
    t.log(`${report.operations} operations, ${report.kills} kills`);
    t.deepEqual(report.failures, [], faults.join('\n'));
    t.is(report.permittedLosses, 0);
  },
);

test.serial('a disk that keeps back what it has confirmed is found out when all servers are killed', async (t) => {
  t.timeout(600_000);
  const directory = mkdtempSync(join(tmpdir(), 'farkv-lying-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const options = { ...DURABLE, seed: 1, seconds: 15, only: ['kill-all'] } as const;
  const env = lyingDisk(directory, 'write');
  const report = await run({ ...options, env, operationsMin: 0, killsMin: 4, say: () => undefined });
  t.teardown(() => rmSync(report.directory, { recursive: true, force: true }));
  t.log(report.failures[0]);
  t.true(report.failures.some((one) => one.includes('is not linearizable')));
});
