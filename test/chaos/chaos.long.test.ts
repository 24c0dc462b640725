/**
 * The short form of a run under faults; `node dist/test/chaos/main.js --seconds 600` is the long one. A fault of the machine's own, such as being very
 * busy, is no failure here: servers may then lose shards without being disturbed, which the histories allow.
 */
import test from 'ava';
import { run } from './run.js';

test.serial('GETs, PUTs, DELETEs and compare-and-swaps are linearizable while servers are killed, paused, restarted and cut off', async (t) => {
  // Up to four times its seconds on a machine that does little in them, and a minute each for the start, the servers' return and the last answers.
  t.timeout(600_000);
  const given = process.env.FARKV_SEED;
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
  t.log(`seed ${seed}; the same faults for longer: node dist/test/chaos/main.js --seconds 120 --seed ${seed}`);
  const faults: string[] = [];
  const report = await run({ seed, seconds: 25, servers: 5, clients: 4, transport: 'both', operationsPerSecond: 400, ownerLeaseMs: 3000, operationsMin: 2000, say: (text) => faults.push(text) });
  t.log(`${report.operations} operations on ${report.keys} keys, ${report.epochs} changes of hands, ${report.seededStaleReads} seeded stale reads refused`);
  t.deepEqual(report.failures, [], faults.join('\n'));
  t.true(report.seededStaleReads > 0);
});
