/**
 * Servers of two versions of the metadata's format: the cluster goes from one to the other, a server at a time, while
 * it is used; there is no way back.
 */
import test from 'ava';
import { setImmediate } from 'node:timers/promises';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { FORMAT_NEWEST } from '../../core/metadata/format.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, farkv, ServerProcess } from '../support/cluster.js';
import { certainly, keysOf } from '../support/owners.js';
import { statusOf, statusWhen, whole } from '../support/status.js';

const LATER_FORMAT = FORMAT_NEWEST + 1;

/** The same server, as a later version of farkv. */
function later(s: ServerProcess): ServerProcess {
  const upgraded = new ServerProcess(s.id, s, s.dataDir, s.args, {});
  upgraded.nodeOptions = ['--import', import.meta.resolve('../support/later-version.js')];
  return upgraded;
}

/**
 * Writes and reads without end. A cache's server that is replaced loses its memory: that is a miss, and never another
 * value than the last one. With `keeps` a miss is a failure, and so is every call that fails.
 */
class Load {
  rounds = 0;
  hits = 0;
  readonly failed: Promise<unknown>;
  readonly #keeps: boolean;
  #on = true;

  constructor(kv: Client<BufferValue, Buffer>, keeps = false) {
    this.#keeps = keeps;
    this.failed = Promise.all([0, 1, 2, 3].map((lane) => this.#lane(kv, lane))).then(
      () => undefined,
      (error: unknown) => error,
    );
  }

  async #lane(kv: Client<BufferValue, Buffer>, lane: number): Promise<void> {
    for (let i = 0; this.#on; i++) {
      const key = `lane-${lane}-${i % 30}`;
      const put = (): Promise<void> => kv.put(key, `${i}`);
      await (this.#keeps ? put() : certainly(put));
      const read = await kv.get(key);
      if ((this.#keeps || read !== undefined) && String(read) !== `${i}`)
        throw new Error(`${key} is ${String(read)}, not ${i}`);
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

test.serial(
  'three servers are upgraded under load, one after the other: between both versions a shard moves with its values, the format is raised when all know it, and the earlier version refuses what is written then',
  async (t) => {
    const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 6, args: ['--lease-ms', '300'] });
    const addresses = cluster.addresses.join(',');
    const kv = await connect({ servers: cluster.addresses, unavailableAfterMs: 120_000, timeoutMs: 120_000 });
    t.teardown(() => kv.close());
    /** All shards of these keys move there, with what is in them. */
    const moved = async (keys: readonly string[], to: ServerProcess): Promise<void> => {
      const versions = new Map<string, bigint>();
      for (const key of keys) {
        await certainly(() => kv.put(key, `kept ${key}`));
        versions.set(key, (await kv.getEntry(key))!.version);
      }
      for (const shard of new Set(keys.map((key) => kv.shardOf(key)))) {
        const { code, stdout, stderr } = await farkv([
          'shard',
          'move',
          String(shard),
          to.id,
          '--wait',
          '5m',
          '--timeout',
          '2m',
          '--connect',
          addresses,
        ]);
        t.is(code, 0, stdout + stderr);
        await statusWhen(to.address, (s) => s.shards[shard]?.owner === to.id);
      }
      for (const key of keys) {
        const read = await kv.getEntry(key);
        t.is(String(read?.value), `kept ${key}`);
        t.is(read?.version, versions.get(key));
      }
    };
    const load = new Load(kv);
    await load.goesOn(100);

    const early = [...cluster.servers];
    for (const [i, old] of early.entries()) {
      t.is(
        (await statusOf(cluster.server(0).address)).formatVersion,
        FORMAT_NEWEST,
        'a version that knows no later format is among them',
      );
      await old.stop();
      const upgraded = later(old);
      cluster.servers[i] = upgraded;
      await upgraded.start();
      await load.goesOn(100);
      if (i === 0) await moved(await keysOf(kv, cluster, 1, 20), upgraded);
    }
    await statusWhen(cluster.server(0).address, (s) => s.formatVersion === LATER_FORMAT);

    await moved(await keysOf(kv, cluster, 0, 200), cluster.server(1));
    await load.goesOn(100);
    t.is(await load.end(), undefined);
    t.true(load.hits > load.rounds / 2, `${load.hits} of ${load.rounds} reads found something`);

    // Back to the earlier version: it says what it met and what to do, and is none of the cluster's moveErrors.
    await cluster.server(2).stop();
    early[2]!.launch();
    t.is((await early[2]!.exit).code, 1);
    t.regex(
      early[2]!.stderr,
      new RegExp(
        `the metadata has (an entry|a snapshot) of a later version of farkv \\(format ${LATER_FORMAT}.*this version knows format ${FORMAT_NEWEST}: upgrade this server`,
        'u',
      ),
    );
    await kv.put('after', 'all');
    t.is(String(await kv.get('after')), 'all');
    await cluster.server(2).start();
    await statusWhen(cluster.server(2).address, whole);
  },
);

test.serial('three servers with copies are upgraded under load: no call fails, and no value is lost', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 6, args: ['--lease-ms', '300'] });
  const kv = await connect({ servers: cluster.addresses, unavailableAfterMs: 120_000, timeoutMs: 120_000 });
  t.teardown(() => kv.close());
  const inSync = (s: ClusterStatus): boolean =>
    s.shards.every(({ state, copies }) => state === 'serving' && copies?.inSync === 2) &&
    s.members.every(({ state }) => state === 'up');
  await statusWhen(cluster.server(0).address, inSync);
  const load = new Load(kv, true);
  await load.goesOn(100);
  for (const [i, old] of [...cluster.servers].entries()) {
    await statusWhen(cluster.server((i + 1) % 3).address, inSync);
    await old.stop();
    const upgraded = later(old);
    cluster.servers[i] = upgraded;
    await upgraded.start();
    await load.goesOn(100);
  }
  await statusWhen(cluster.server(0).address, (s) => s.formatVersion === LATER_FORMAT && inSync(s));
  await load.goesOn(100);
  t.is(await load.end(), undefined);
  t.is(load.hits, load.rounds);
});
