/** What `farkv shard rebalance` makes of copies, with the leader's own policy in place of a cluster. */
import test from 'ava';
import { Absences, nextCopies } from '../../core/metadata/copy-policy.js';
import { zoneOf } from '../../core/metadata/copy-plan.js';
import { planCopiesIn } from '../../core/metadata/plan-copies.js';
import { parts, planRebalance } from '../../core/metadata/plan.js';
import { HELD, leasesAt } from '../../test/support/leases-at.js';
import { bootstrapOf, hexOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import { seeded } from '../../test/support/random.js';
import { copiesStatus } from '../status-copies.js';
import type { ClusterStatus } from '../status.js';
import { lookAt, spread, type Cluster } from './rebalance.js';

const NOW = 4 * HELD;

/** Servers that copy and hand over at once. The default tenant is replicated; `caches`: shards of another, which is not. */
class Led implements Cluster {
  readonly log = new MetadataLog();
  readonly #zones: readonly string[];
  readonly #copied: number;
  readonly #absences = new Absences();
  #names = 10_000;
  /** Copies that were made. */
  copied = 0;

  /** Hosts of the servers s1, s2, ...; of those, so many are there from the beginning. */
  constructor(zones: readonly string[], first: number, shards: number, { caches = 0, replicas = 2 } = {}) {
    this.#zones = zones;
    this.#copied = shards;
    const ids = zones.slice(0, first).map((_, i) => `s${i + 1}`);
    const more = caches === 0 ? {} : { tenants: [{ name: 'b', shards: caches }] };
    this.log.do({ ...bootstrapOf(shards + caches, ids), ...more });
    for (let i = 0; i < first; i++) this.join();
    this.log.do(
      { t: 'assign-shards' },
      { t: 'policy-set', tenant: 0, level: 'replicated', replicas, minInSync: 1, onLoss: 'wait' },
    );
    for (const { shard } of this.log.state.shards) this.log.open(shard, ++this.#names);
    this.settle();
  }

  get #state(): MetadataLog['state'] {
    return this.log.state;
  }

  join(): void {
    const n = this.#state.members.size + 1;
    const made = { ...joinOf(`s${n}`, n), control: [`${this.#zones[n - 1] ?? ''}:${7400 + n}`] };
    const { id, instance, control } = made;
    // Of a later one, as by a request of its own.
    if (!this.#state.voters.includes(id))
      this.log.do({ t: 'server-add', id, raftId: 9000 + n, instance, control, peer: control });
    this.log.do(made);
  }

  /** Until the leader, owners and copies have nothing to do. */
  settle(): void {
    for (let steps = 0; this.#step(); steps++) if (steps > 10_000) throw new Error('it is never done');
  }

  #step(): boolean {
    const state = this.#state;
    const leases = leasesAt(NOW, { [NOW]: [...state.members.keys()] });
    const command = nextCopies(state, leases, NOW, this.#absences);
    if (command !== undefined) {
      this.log.do(command);
      return true;
    }
    for (const { shard, owner = '', epoch, incarnation = '' } of state.shards) {
      const { config, copies } = state.copySets[shard]!;
      const memberIncarnation = state.members.get(owner)?.incarnation ?? '';
      const by = { shard, epoch, config, owner, memberIncarnation };
      const joins = copies.find((copy) => copy.state === 'joining');
      const move = state.moves.find((one) => one.shard === shard);
      const heir = copies.find((copy) => copy.member === move?.to && copy.state === 'in-sync');
      if (joins !== undefined) {
        const { member, start } = joins;
        this.log.do({ t: 'copies-in-sync', ...by, member, start, copy: hexOf(++this.#names), worker: 0, lsn: 0 });
        this.copied++;
      } else if (heir?.id !== undefined)
        this.log.do({ t: 'shard-handover', ...by, to: heir.member, copy: heir.id, incarnation, ends: false });
      else continue;
      return true;
    }
    return false;
  }

  call(method: string, args: unknown): Promise<unknown> {
    const members = [...this.#state.members.values()];
    if (method === 'shard-plan') {
      const owners = planRebalance(this.#state, members);
      return Promise.resolve(owners.length > 0 ? owners : planCopiesIn(this.#state, members));
    }
    const { shard, to } = args as { readonly shard: number; readonly to: string };
    this.log.do({ t: 'shard-move', shard, epoch: this.log.shard(shard).epoch, to });
    return Promise.resolve({});
  }

  status(): Promise<ClusterStatus> {
    this.settle();
    const { shards, moves, members } = this.#state;
    return Promise.resolve({
      ...{ moves, moveErrors: [], replication: [] },
      members: [...members.values()].map(({ id, memoryBytes }) => ({ id, memoryBytes, draining: false, node: {} })),
      shards: shards.map(({ shard, owner, epoch }) => ({
        ...{ shard, owner, epoch, state: 'serving' },
        copies: copiesStatus(this.#state, shard, 0, () => true),
      })),
    } as unknown as ClusterStatus);
  }

  async until(condition: (status: ClusterStatus) => boolean): Promise<ClusterStatus> {
    const status = await this.status();
    if (!condition(status)) throw new Error('it waits for ever');
    return status;
  }

  async rebalance(): Promise<number> {
    return spread(this, await lookAt(this), 1000);
  }

  /** Servers with copies, of each shard. */
  get at(): string[][] {
    return this.#state.copySets.map(({ copies }) => copies.map(({ member }) => member));
  }

  get copies(): number[] {
    return [...this.#state.members.keys()].map((id) => this.at.flat().filter((x) => x === id).length);
  }

  get bounds(): number[] {
    return [...parts(this.at.flat().length, [...this.#state.members.values()]).values()].map((n) =>
      Math.ceil(n - 1e-6),
    );
  }

  /** Copies that a server with more than its part has, and one with less has not. */
  get misplaced(): string[] {
    const spare = this.copies.map((n, i) => (this.bounds[i] ?? 0) - n);
    const ids = [...this.#state.members.keys()];
    const lacks = (i: number, j: number, shard: number): boolean =>
      (spare[i] ?? 0) < 0 && (spare[j] ?? 0) > 0 && shard < this.#copied && !this.at[shard]!.includes(ids[j]!);
    return ids.flatMap((from, i) =>
      ids.flatMap((to, j) =>
        this.at.flatMap((at, shard) => (at.includes(from) && lacks(i, j, shard) ? [`${shard}: ${from} ${to}`] : [])),
      ),
    );
  }

  get owned(): number[] {
    return [...this.#state.members.keys()].map((id) => this.log.ownedBy(id).length);
  }

  /** Shards of which two copies are in one zone. */
  get together(): number {
    const zone = (id: string): string => zoneOf(this.#state.members.get(id)!);
    return this.at.filter((at) => new Set(at.map(zone)).size < at.length).length;
  }
}

const apart = (count: number): string[] => Array.from({ length: count }, (_, i) => `z${i}`);

test('a server that joins gets its part of the copies too, and what is above a part goes there once', async (t) => {
  const led = new Led(apart(4), 3, 12);
  t.deepEqual(led.copies, [8, 8, 8]);
  led.join();
  led.copied = 0;
  await led.rebalance();
  t.deepEqual(led.copies, [6, 6, 6, 6]);
  t.deepEqual(led.owned, [3, 3, 3, 3]);
  t.is(led.copied, 6, 'nothing else was copied');
  t.is(await led.rebalance(), 0);
});

test('a server that joins in a zone gets no copy beside another one', async (t) => {
  for (const replicas of [2, 3]) {
    const led = new Led(['a', 'b', 'c', 'a'], 3, 12, { replicas });
    led.join();
    await led.rebalance();
    t.is(led.together, 0);
    t.is(await led.rebalance(), 0);
  }
});

test('random clusters, some with a cache beside: nobody has more copies than its part, and it is soon settled', async (t) => {
  const random = seeded(t, import.meta.filename);
  for (let i = 0; i < 25; i++) {
    const servers = 3 + random.below(3);
    const caches = random.below(2) * random.below(13);
    const led = new Led(apart(servers), 3, 3 + random.below(14), { caches, replicas: 2 + random.below(2) });
    while (led.owned.length < servers) led.join();
    await led.rebalance();
    const { copies, bounds, owned } = led;
    t.deepEqual(led.misplaced, [], `${String(copies)} of ${String(bounds)}`);
    t.true(Math.max(...owned) - Math.min(...owned) <= 1, String(owned));
    led.copied = 0;
    t.is(await led.rebalance(), 0);
    t.is(led.copied, 0);
  }
});

test('random zones: what is apart stays apart, and it is soon settled', async (t) => {
  const random = seeded(t, import.meta.filename);
  for (let i = 0; i < 15; i++) {
    const zones = Array.from({ length: 4 + random.below(3) }, () => `z${random.below(4)}`);
    const led = new Led(zones, 3, 3 + random.below(14), { replicas: 2 + random.below(2) });
    const before = led.together;
    while (led.owned.length < zones.length) led.join();
    await led.rebalance();
    t.true(led.together <= before);
    led.copied = 0;
    t.is(await led.rebalance(), 0);
    t.is(led.copied, 0);
  }
});
