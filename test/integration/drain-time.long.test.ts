/**
 * Servers that are told to end and cannot hand their shards over, as real processes: each gives up when --drain-ms is
 * over, names the shards, and says what becomes of their values.
 */
import test, { type ExecutionContext } from 'ava';
import { Cluster, type ServerProcess, succeeds } from '../support/cluster.js';
import { patient } from '../support/sdk-clients.js';
import { copied, statusWhen } from '../support/status.js';

/** Longer than what a server waits by itself, which is two leases and a second. */
const DRAIN_MS = 4000;
const ARGS = ['--drain-ms', String(DRAIN_MS), '--lease-ms', '300'];
/** Only to tell a server that gives up from one that does not. */
const SOON_MS = 60_000;

const UNTAKEN = 'no other server has taken over shards';

/** Ends it while nobody can take its shards over. Gives what it says of shards. */
async function givesUp(t: ExecutionContext, server: ServerProcess): Promise<readonly string[]> {
  const began = performance.now();
  t.deepEqual(await server.stop(), { code: 0, signal: null }, server.stderr);
  const took = performance.now() - began;
  t.true(took >= DRAIN_MS && took < DRAIN_MS + SOON_MS, `it ended after ${took.toFixed(0)} ms\n${server.stderr}`);
  t.log(`it ended ${(took - DRAIN_MS).toFixed(0)} ms after --drain-ms`);
  return Array.from(server.stderr.matchAll(/warn.*?((?:no other server|the owners of).*)/g), ([, said = '']) => said);
}

for (const level of ['replicated', 'durable'] as const)
  test.serial(`${level}: the others stand still; they have all values, and go on with them`, async (t) => {
    const args = [...ARGS, '--owner-lease-ms', '10000'];
    const cluster = await Cluster.start(t, { servers: 3, shards: 6, level, args });
    const [ends, ...others] = cluster.servers as [ServerProcess, ...ServerProcess[]];
    const client = await patient(t, cluster.addresses);
    const keys = Array.from({ length: 60 }, (_, i) => `key-${i}`);
    await client.putMany(keys.map((key) => ({ key, value: Buffer.from(`value of ${key}`) })));
    const { shards } = await statusWhen(ends.address, copied);
    const own = shards.filter(({ owner }) => owner === ends.id).map(({ shard }) => shard);
    const copiesHere = shards.filter(
      ({ owner, copies }) => owner !== ends.id && copies?.copies.some(({ member }) => member === ends.id),
    );
    t.true(own.length > 0 && copiesHere.length > 0);

    for (const other of others) other.signal('SIGSTOP');
    const elsewhere = `${UNTAKEN} ${own.join(', ')}: another server has a copy with all values, and goes on with it when it misses this one`;
    const waitedFor = `the owners of shards ${copiesHere.map(({ shard }) => shard).join(', ')} were not told that the copies here end: they wait until they miss this server`;
    // Copies of durable shards are waited for at each end: they come back with their disk.
    t.deepEqual(await givesUp(t, ends), level === 'durable' ? [elsewhere] : [elsewhere, waitedFor]);

    for (const other of others) other.signal('SIGCONT');
    const after = await client.getMany(keys);
    t.deepEqual(
      after.map(String),
      keys.map((key) => `value of ${key}`),
    );
  });

const MIB = 1 << 20;
/** More than the other server has memory for. */
const VALUES = 80;

for (const [level, means] of [
  ['replicated', 'their values end with this server'],
  ['durable', "their values are on this server's disk, and wait for it"],
] as const)
  test.serial(`${level}: the other server has no room for a copy: ${means}`, async (t) => {
    const made = level === 'durable' ? level : 'cache';
    const cluster = await Cluster.start(t, { shards: 1, memory: '512mb', level: made, args: ARGS });
    const ends = cluster.server(0);
    const client = await patient(t, cluster.addresses);
    for (let i = 0; i < VALUES; i++) await client.put(`key-${i}`, Buffer.alloc(MIB, i));
    const full = await cluster.joiner('s2', ARGS);
    await full.start();
    await succeeds(t, cluster, 'replication', 'set', '--level', level, '--replicas', '2');
    await full.said(/no copy could be made here of what s1 has, for want of memory/);

    t.deepEqual(await givesUp(t, ends), [`${UNTAKEN} 0: no server that stays has a copy in sync: ${means}`]);

    if (level !== 'durable') return;
    await ends.start();
    const last = VALUES - 1;
    t.deepEqual(await client.get(`key-${last}`), Buffer.alloc(MIB, last));
  });
