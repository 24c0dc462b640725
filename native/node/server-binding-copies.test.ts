/** The class DataPlane: shards with copies in other data planes of this process, by the calls that a server makes. */
import test, { type ExecutionContext } from 'ava';
import type { CopyEvent, CopyStats, ShardLayout } from '../data-plane.js';
import { addon } from '../addon.js';
import { DEVICELESS } from '../../test/support/deviceless.js';
import { Driver, Plane, SHARDS, type PlaneOptions } from '../../test/support/native-pair.js';

const shards = Array.from({ length: SHARDS }, (_, shard) => shard);

/** As `stats` writes the id of a copy. */
const nameOf = (id: bigint): string => id.toString(16).padStart(16, '0');

/** A data plane as a server has it: which layouts its shards have now, and what was noticed of copies. */
class Server {
  readonly layouts: ShardLayout[];
  readonly #events: (readonly [shard: number, id: bigint, what: CopyEvent])[] = [];
  readonly #waiting: (() => void)[] = [];

  constructor(readonly plane: Plane) {
    this.layouts = [...plane.layouts];
    plane.native.onCopy = (...event) => {
      this.#events.push(event);
      for (const wake of this.#waiting.splice(0)) wake();
    };
  }

  static async start(o: PlaneOptions): Promise<Server> {
    return new Server(await Plane.start(o));
  }

  /** Of the copy of a shard here: the incarnation that the table was opened with. */
  id(shard: number): bigint {
    return this.plane.layouts[shard]!.incarnation;
  }

  get addresses() {
    const { provider, address } = this.plane;
    return [{ provider, address }];
  }

  /** Resolves when this was noticed, and takes it. */
  async noticed(shard: number, id: bigint, what: CopyEvent): Promise<void> {
    for (;;) {
      const at = this.#events.findIndex((e) => e[0] === shard && e[1] === id && e[2] === what);
      if (at >= 0) {
        this.#events.splice(at, 1);
        return;
      }
      const alive = setInterval(() => undefined, 60_000); // a running data plane alone does not keep the process
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
      clearInterval(alive);
    }
  }

  async copy(owner: Server, shard: number, base = false, copy = this.id(shard)): Promise<CopyStats> {
    const { epoch, incarnation } = owner.layouts[shard]!;
    const { addresses } = owner;
    const serverIncarnation = owner.plane.incarnation;
    const { native } = this.plane;
    await native.copyShard({ shard, epoch, incarnation, serverIncarnation, copy, base, addresses });
    const stats = await native.followCopy(shard);
    await native.stopCopy(shard);
    return stats;
  }

  /** From nothing to a copy in sync beside those of `others`. */
  async join(owner: Server, shard: number, others: readonly Server[], config: number): Promise<number> {
    await this.copy(owner, shard);
    await owner.noticed(shard, this.id(shard), 'joined');
    const { lsn } = await owner.plane.native.requireCopy(shard, this.id(shard));
    await owner.configure(shard, [...others, this], config);
    return lsn;
  }

  configure(shard: number, copies: readonly Server[], config: number, minInSync = 1): Promise<void> {
    const { epoch } = this.layouts[shard]!;
    const inSync = copies.map((s) => s.id(shard));
    return this.plane.native.configureCopies({ shard, epoch, config, minInSync, inSync, eligible: [], joining: [] });
  }

  async lead(shard: number, copies: readonly Server[], epoch: number): Promise<void> {
    const inSync = copies.map((s) => s.id(shard));
    const incarnation = this.id(shard) + (BigInt(epoch) << 32n);
    const { native } = this.plane;
    this.layouts[shard] = await native.leadCopy({
      shard,
      epoch,
      config: 100 * epoch,
      minInSync: 1,
      inSync,
      eligible: [],
      joining: [],
      incarnation,
      handed: false,
    });
    for (const s of copies) await s.plane.native.followOwner({ shard, addresses: this.addresses });
    await native.serveShard(shard);
  }

  teach(client: Driver): void {
    client.native.setOwners([{ owner: 1, serverIncarnation: this.plane.incarnation, addresses: this.addresses }]);
    client.native.setRoutes(this.layouts.map((layout) => ({ ...layout, owner: 1 })));
  }

  async stats(shard: number) {
    return (await this.plane.native.stats()).shards.find((s) => s.shard === shard)?.copy;
  }
}

const owner = { incarnation: 1n };
const second = { incarnation: 2n, epoch: 1, closed: true };
const third = { incarnation: 3n, epoch: 1, closed: true };

/** Changes keys until it is told to stop; what was answered last stands in `value`. */
class Work {
  readonly value = new Map<string, string>();
  #stopped = false;
  readonly #done: Promise<void>[];

  constructor(t: ExecutionContext, client: Driver, name: string) {
    this.#done = Array.from({ length: 8 }, (_, i) => this.#run(t, client, `${name}-${i}`));
  }

  async #run(t: ExecutionContext, client: Driver, name: string): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const key = `${name}-${i % 40}`;
      const { status } = await client.put(key, String(i), 60_000);
      t.is(status, 'OK');
      this.value.set(key, String(i));
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#done);
  }
}

async function expectAll(t: ExecutionContext, client: Driver, work: Work): Promise<void> {
  for (const [key, value] of work.value) t.is((await client.get(key, 60_000)).value.toString(), value, key);
}

for (const over of [
  { name: 'shm', provider: 'shm' },
  { name: 'tcp', provider: 'tcp' },
  { name: 'tcp with TLS', provider: 'tcp', address: 'tls:127.0.0.1:0' },
] as const) {
  test(`nothing that was answered is lost over two failovers: ${over.name}`, async (t) => {
    const a = await Server.start({ ...over, ...owner });
    const b = await Server.start({ ...over, ...second });
    const c = await Server.start({ ...over, ...third });
    const client = new Driver();
    a.teach(client);
    const work = new Work(t, client, 'key');
    for (const shard of shards) await b.join(a, shard, [], 1);
    for (const shard of shards) await c.join(a, shard, [b], 2);
    t.like(await a.stats(0), { role: 'owner', id: nameOf(0n), config: 2 });
    t.deepEqual(
      (await a.stats(0))?.peers.map(({ id, standing, linked }) => [id, standing, linked]),
      [b, c].map((s) => [nameOf(s.id(0)), 'in-sync', over.provider]),
    );
    t.like(await b.stats(0), { role: 'backup', id: nameOf(b.id(0)), epoch: 1, follows: true, peers: [] });
    // Under way at the failover: each is one write, whoever answers.
    const counter = await client.put('counter', '0');
    let version = counter.version;
    const counted = (async () => {
      for (let i = 1; i <= 300; i++) {
        const { status, version: next } = await client.compareAndSwap('counter', version, String(i));
        t.is(status, 'OK');
        version = next;
      }
    })();
    await a.plane.close();
    await Promise.all(shards.map((shard) => b.lead(shard, [c], 2)));
    b.teach(client);
    await counted;
    t.is((await client.get('counter')).value.toString(), '300');
    await b.plane.close();
    await Promise.all(shards.map((shard) => c.lead(shard, [], 3)));
    c.teach(client);
    await work.stop();
    await expectAll(t, client, work);
    t.true((await client.put('counter', 'end')).version >> 44n === 3n);
    client.close();
    await c.plane.close();
  });
}

for (const provider of DEVICELESS) {
  test(`large values from before, during and after a join are at the next owner: ${provider}`, async (t) => {
    const o = { provider, memoryBytes: 128 << 20 };
    const a = await Server.start({ ...o, ...owner });
    const b = await Server.start({ ...o, ...second });
    const client = new Driver();
    a.teach(client);
    const values = new Map<string, Buffer>();
    const putAll = async (when: string): Promise<void> => {
      for (const bytes of [64 << 10, 1 << 20, 20 << 20])
        for (const name of [`${when}-${bytes}`, `always-${bytes}`]) {
          const value = Buffer.alloc(bytes, `${name} ${when} `);
          t.is((await client.put(name, value, 60_000)).status, 'OK', name);
          values.set(name, value);
        }
    };
    await putAll('before');
    const during = putAll('during');
    for (const shard of shards) await b.join(a, shard, [], 1);
    await during;
    await putAll('after');
    await a.plane.close();
    await Promise.all(shards.map((shard) => b.lead(shard, [], 2)));
    b.teach(client);
    const found = Buffer.alloc(20 << 20);
    for (const [name, value] of values) {
      const { value: at } = await client.get(name, 60_000, found);
      t.true(at.equals(value), name);
    }
    client.close();
    await b.plane.close();
  });
}

test('changes that find too few copies have a code of their own and no effect', async (t) => {
  const a = await Server.start(owner);
  const client = new Driver();
  a.teach(client);
  t.is((await client.put('key', 'one')).status, 'OK');
  for (const shard of shards) await a.configure(shard, [], 1, 2);
  t.is((await client.put('key', 'two')).status, 'ERR_TOO_FEW_COPIES');
  t.is((await client.get('key')).value.toString(), 'one');
  const b = await Server.start(second);
  await Promise.all(
    shards.map(async (shard) => {
      await b.copy(a, shard);
      await a.noticed(shard, b.id(shard), 'joined');
      await a.plane.native.requireCopy(shard, b.id(shard));
      await a.configure(shard, [b], 2, 2);
    }),
  );
  t.is((await client.put('key', 'two')).status, 'OK');
  client.close();
  await Promise.all([a.plane.close(), b.plane.close()]);
});

test('a copy that is none any more is the base of the next one, which tells how much it has copied', async (t) => {
  const a = await Server.start(owner);
  const b = await Server.start(second);
  const client = new Driver();
  a.teach(client);
  const keys = Array.from({ length: 200 }, (_, i) => `key-${i}`);
  const putAll = (names: readonly string[], value: string) =>
    Promise.all(names.map(async (key) => t.is((await client.put(key, value, 60_000)).status, 'OK')));
  await putAll(keys, 'before');
  for (const shard of shards) await b.join(a, shard, [], 1);
  for (const shard of shards) await a.configure(shard, [], 2);
  await putAll(keys.slice(0, 20), 'after');
  const sum = { entries: 0, kept: 0 };
  for (const shard of shards) {
    const id = b.id(shard) + 1000n;
    await b.plane.native.keepBase(shard, id);
    t.is((await b.stats(shard))?.role, undefined);
    const { entries, kept } = await b.copy(a, shard, true, id);
    sum.entries += entries;
    sum.kept += kept;
    t.like(await b.stats(shard), { role: 'backup', id: nameOf(id) });
  }
  t.deepEqual(sum, { entries: 20, kept: 180 });
  await t.throwsAsync(a.plane.native.keepBase(0, 5n), { code: 'ERR_BUSY' });
  t.throws(() => a.plane.native.keepBase(SHARDS, 5n), { code: 'ERR_CONFIG' });
  client.close();
  await Promise.all([a.plane.close(), b.plane.close()]);
});

test('a copy that is gone is late, and what waits for it goes on without it', async (t) => {
  const a = await Server.start({ ...owner, backupSlowMs: 50 });
  const b = await Server.start(second);
  const client = new Driver();
  a.teach(client);
  for (const shard of shards) await b.join(a, shard, [], 1);
  const ids = shards.map((shard) => b.id(shard));
  await b.plane.close();
  await Promise.all(shards.map((shard) => a.noticed(shard, ids[shard]!, 'late')));
  const put = client.put('key', 'value', 60_000);
  await t.throwsAsync(a.plane.native.dropCopy(0, ids[0]!), { code: 'ERR_BUSY' });
  for (const shard of shards) await a.configure(shard, [], 2);
  t.is((await put).status, 'OK');
  t.is((await a.stats(0))?.peers.length ?? 0, 0);
  client.close();
  await a.plane.close();
});

test('what waits for copies ends with the shard, and with the data plane', async (t) => {
  const a = await Server.start(owner);
  const b = await Server.start({ ...second, replicaLeaseMs: 100_000 }); // so it does not serve in this test's time
  for (const shard of [0, 1]) {
    await b.join(a, shard, [], 1);
    await b.plane.native.leadCopy({
      shard,
      epoch: 2,
      config: 2,
      minInSync: 1,
      inSync: [],
      eligible: [],
      joining: [],
      incarnation: 9n,
      handed: false,
    });
  }
  const served = [0, 1].map((shard) => b.plane.native.serveShard(shard).catch((e: unknown) => e));
  await b.plane.native.closeShard(0);
  t.like(await served[0], { code: 'ERR_ABORTED' });
  await b.plane.close();
  t.like(await served[1], { code: 'ERR_CLOSED' });
  await a.plane.close();
});

test('calls about copies are checked', async (t) => {
  const { native } = (await Server.start(owner)).plane;
  const config = { shard: 0, epoch: 1, config: 1, minInSync: 1, inSync: [], eligible: [], joining: [] };
  for (const wrong of [
    { ...config, shard: SHARDS },
    { ...config, config: 0 },
    { ...config, minInSync: 6 },
    { ...config, inSync: [1] as unknown as bigint[] },
    { ...config, inSync: [1n, 2n, 3n, 4n, 5n] },
    { ...config, eligible: [1n, 2n, 3n, 4n, 5n] },
    { ...config, joining: [1n, 2n, 3n, 4n, 5n] },
  ])
    t.throws(() => native.configureCopies(wrong), { code: 'ERR_CONFIG' });
  await t.throwsAsync(native.configureCopies({ ...config, inSync: [5n] }), { code: 'ERR_PROTOCOL' });
  await t.throwsAsync(native.configureCopies({ ...config, epoch: 2 }), { code: 'ERR_NOT_OWNER' });
  await t.throwsAsync(native.leadCopy({ ...config, epoch: 2, incarnation: 5n, handed: false }), {
    code: 'ERR_NOT_OWNER',
  });
  await t.throwsAsync(native.requireCopy(0, 5n), { code: 'ERR_NOT_OWNER' });
  await native.dropCopy(0, 5n);
  await t.throwsAsync(native.handOver(0, 5n), { code: 'ERR_NOT_OWNER' });
  await t.throwsAsync(native.followCopy(0), { code: 'ERR_ABORTED' });
  const addresses = [{ provider: 'tcp', address: '127.0.0.1:1' }] as const;
  await t.throwsAsync(native.followOwner({ shard: 0, addresses }), { code: 'ERR_NOT_OWNER' });
  t.throws(() => native.requireCopy(0, 5 as unknown as bigint), { code: 'ERR_CONFIG' });
  t.throws(() => native.dropCopy(SHARDS, 5n), { code: 'ERR_CONFIG' });
  await native.stepDown(0, 5n);
  await t.throwsAsync(native.stepDown(0, 5n), { code: 'ERR_BUSY' }, 'it is a copy');
  await native.close();
  t.true(addon.constants.statusNames.includes('ERR_TOO_FEW_COPIES'));
});
