/**
 * What becomes of the metadata when its leader's process ends, with real processes. Nobody would miss a leader for
 * ELECTION_MS here, so whatever does not wait that long was not found by an election time-out.
 */
import test from 'ava';
import { Cluster, farkv } from '../support/cluster.js';
import { statusOf, statusWhen } from '../support/status.js';

const ELECTION_MS = 30_000;
const NEVER_MISSED = ['--election-ms', String(ELECTION_MS)];

async function leaderOf(cluster: Cluster): Promise<number> {
  const { leader } = await statusWhen(cluster.server(0).address, (s) => s.leader !== undefined);
  return cluster.servers.findIndex((s) => s.id === leader);
}

test.serial('a leader that is killed is replaced at once', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 3, args: NEVER_MISSED });
  const old = await leaderOf(cluster);
  const other = cluster.server((old + 1) % 3);
  const killed = performance.now();
  await cluster.server(old).kill();
  const id = cluster.server(old).id;
  await statusWhen(other.address, (s) => s.leader !== undefined && s.leader !== id);
  // What was heard last of the leader may be a few seconds older than its end.
  t.true(performance.now() - killed < ELECTION_MS / 2);
  const set = await farkv(['replication', 'set', '--level', 'cache', '--connect', other.address]);
  t.is(set.code, 0, set.stderr);
});

test.serial('a leader that stops in order hands over before it ends, to one that has its log', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 3, args: NEVER_MISSED });
  const old = await leaderOf(cluster);
  const leaving = cluster.server(old);
  t.deepEqual(await leaving.stop(), { code: 0, signal: null });
  const known = [...leaving.stderr.matchAll(/(s\d) leads the metadata group/g)].map((match) => match[1]);
  t.true(known.length > 1 && known.at(-1) !== leaving.id, `it follows the next one before it ends: ${known.join()}`);
  const next = await statusOf(cluster.server((old + 1) % 3).address);
  t.not(next.leader, leaving.id);
});
