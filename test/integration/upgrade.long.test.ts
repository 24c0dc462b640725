/** Servers of two versions of the metadata's format: the cluster goes from one to the other, a server at a time, while it is used; there is no way back. */
import test from 'ava';
import { setImmediate } from 'node:timers/promises';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { FORMAT_COPIES } from '../../core/metadata/format.js';
import { Cluster, farkv, ServerProcess } from '../support/cluster.js';
import { certainly, keysOf, raised } from '../support/owners.js';
import { statusOf, statusWhen, whole } from '../support/status.js';

/** A version of farkv that knows formats up to this one. */
const knowing = (format: number): string[] => ['--metadata-format', String(format)];
const FIRST = knowing(1);

/** The same server, as a later version of farkv. */
function later(s: ServerProcess): ServerProcess {
  return new ServerProcess(s.id, s.address, s.dataDir, s.args.filter((arg, i) => arg !== FIRST[0] && s.args[i - 1] !== FIRST[0]), {});
}

/** Writes and reads without end. A server that is replaced loses its memory: that is a miss, and never another value than the last one. */
class Load {
  rounds = 0;
  hits = 0;
  readonly failed: Promise<unknown>;
  #on = true;

  constructor(kv: Client<BufferValue, Buffer>) {
    this.failed = Promise.all([0, 1, 2, 3].map((lane) => this.#lane(kv, lane))).then(() => undefined, (error: unknown) => error);
  }

  async #lane(kv: Client<BufferValue, Buffer>, lane: number): Promise<void> {
    for (let i = 0; this.#on; i++) {
      const key = `lane-${lane}-${i % 30}`;
      await certainly(() => kv.put(key, `${i}`));
      const read = await kv.get(key);
      if (read !== undefined && String(read) !== `${i}`) throw new Error(`${key} is ${String(read)}, not ${i}`);
      this.hits += read === undefined ? 0 : 1;
      this.rounds += 1;
      await setImmediate();
    }
  }

  /** Waits until so much more was done, or something failed. */
  async goesOn(rounds: number): Promise<void> {
    const from = this.rounds;
    while (this.rounds < from + rounds && (await Promise.race([this.failed, setImmediate(false)])) === false);
  }

  async end(): Promise<unknown> {
    this.#on = false;
    return await this.failed;
  }
}

test.serial('three servers are upgraded one after the other, and the format is raised when all of them know it', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 3, args: ['--lease-ms', '300', ...FIRST] });
  const kv = await connect({ servers: cluster.addresses, unavailableAfterMs: 120_000, timeoutMs: 120_000 });
  t.teardown(() => kv.close());
  const early = [...cluster.servers];
  const addresses = cluster.addresses.join(',');
  for (const [i, old] of early.entries()) {
    t.is((await statusOf(old.address)).formatVersion, 1);
    const refused = await farkv(['drain', 's1', '--connect', addresses]);
    t.regex(refused.stderr, /the metadata is at format 1 until every server/);
    await old.stop();
    const upgraded = later(old);
    cluster.servers[i] = upgraded;
    await upgraded.start();
    for (let k = 0; k < 20; k++) {
      await kv.put(`k${k}`, `${i}`);
      t.is(String(await kv.get(`k${k}`)), `${i}`);
    }
  }
  await raised(cluster);
  t.is(String(await kv.get('k1')), '2');
  t.is((await farkv(['drain', 's1', '--connect', addresses])).code, 0);

  // The earlier version no longer understands what is written.
  await cluster.server(2).stop();
  early[2]!.launch();
  t.is((await early[2]!.exit).code, 1);
  t.regex(early[2]!.stderr, /the metadata has (an entry|a snapshot) of a later version of farkv \(format 2.*this version knows format 1: upgrade this server/);
  await cluster.server(2).start();
  await statusWhen(cluster.server(2).address, whole);
});

test.serial('three servers go from format 2 to 4 under load, one after the other; then a shard moves with its values, and the earlier version refuses what was written', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 6, args: ['--lease-ms', '300', ...knowing(2)] });
  const addresses = cluster.addresses.join(',');
  const format = async (): Promise<number> => (await statusOf(cluster.server(0).address)).formatVersion;
  await statusWhen(cluster.server(0).address, (s) => s.formatVersion >= 2);
  const kv = await connect({ servers: cluster.addresses, unavailableAfterMs: 120_000, timeoutMs: 120_000 });
  t.teardown(() => kv.close());
  const move = async (key: string, to: ServerProcess): Promise<void> => {
    const { code, stdout, stderr } = await farkv(['shard', 'move', String(kv.shardOf(key)), to.id, '--wait', '5m', '--timeout', '2m', '--connect', addresses]);
    t.is(code, 0, stdout + stderr);
    await statusWhen(to.address, (s) => s.shards[kv.shardOf(key)]?.owner === to.id);
  };
  const load = new Load(kv);
  await load.goesOn(100);

  const early = [...cluster.servers];
  for (const [i, old] of early.entries()) {
    t.is(await format(), 2, 'a version that knows no later format is among them');
    await old.stop();
    const upgraded = later(old);
    cluster.servers[i] = upgraded;
    await upgraded.start();
    await load.goesOn(100);
    if (i > 0) continue;
    // Two versions side by side: between them a shard moves as format 2 has it, and comes up empty.
    const [key = ''] = await keysOf(kv, cluster, 1, 1);
    await certainly(() => kv.put(key, 'value'));
    await move(key, upgraded);
    t.is(await kv.get(key), undefined);
  }
  await raised(cluster);
  t.is(await format(), FORMAT_COPIES);

  const kept = await keysOf(kv, cluster, 0, 200);
  const versions = new Map<string, bigint>();
  for (const key of kept) {
    await certainly(() => kv.put(key, `kept ${key}`));
    versions.set(key, (await kv.getEntry(key))!.version);
  }
  for (const shard of new Set(kept.map((key) => kv.shardOf(key)))) await move(kept.find((key) => kv.shardOf(key) === shard)!, cluster.server(1));
  for (const key of kept) {
    const read = await kv.getEntry(key);
    t.is(String(read?.value), `kept ${key}`);
    t.is(read?.version, versions.get(key));
  }
  await load.goesOn(100);
  t.is(await load.end(), undefined);
  t.true(load.hits > load.rounds / 2, `${load.hits} of ${load.rounds} reads found something`);

  // Back to the earlier version: it says what it met and what to do, and is none of the cluster's troubles.
  await cluster.server(2).stop();
  early[2]!.launch();
  t.is((await early[2]!.exit).code, 1);
  t.regex(early[2]!.stderr, /the metadata has (an entry|a snapshot) of a later version of farkv \(format 4.*this version knows format 2: upgrade this server/);
  t.is(String(await kv.get(kept[0]!)), `kept ${kept[0]}`);
  await cluster.server(2).start();
  await statusWhen(cluster.server(2).address, whole);
});
