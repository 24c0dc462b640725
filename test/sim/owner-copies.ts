/**
 * Shards with copies in histories with owners (owners.ts): what leaders do about them beside what they do about owners,
 * what operators want, and the checks of copies/check.ts for what clients rely on.
 */
import { FarkvError } from '../../core/errors.js';
import type { Command, Proposal } from '../../core/metadata/commands.js';
import { Absences, nextCopies } from '../../core/metadata/copy-policy.js';
import { isRenounced, isWhole, policyOf } from '../../core/metadata/copy-sets.js';
import type { ShardReset } from '../../core/metadata/copy-commands.js';
import type { GrantedLeases } from '../../core/metadata/owner-leases.js';
import { planReset } from '../../core/metadata/shard-loss.js';
import type { Copy, MetadataState } from '../../core/metadata/state.js';
import { Random } from '../support/random.js';
import { Violation } from './checker.js';
import type { CopyTables } from './copy-tables.js';
import { CopyCheck, type Relied } from './copies/check.js';
import type { Table } from './copies/table.js';
import type { World } from './world.js';

/** With everything healed, copies must be in sync and shards served after this time. */
const SETTLE_US = 120_000_000;
/** Not drawn from the history's own numbers, which would be others then. */
const OF_LINKS = 0x5eed;

/** One life of a member. */
export interface Copied {
  readonly id: string;
  readonly incarnation: string;
  readonly tables: CopyTables;
  readonly holdsLease: () => boolean;
  readonly rightMs: (shard: number) => number;
  readonly grantedMs: (shard: number) => number;
  readonly nowMs: () => number;
}

export class OwnerCopies {
  readonly counters: Record<string, number> = {};
  readonly #check: CopyCheck;
  readonly #absences = new Map<GrantedLeases, Absences>();
  #state: MetadataState | undefined;
  #records = 0;
  /** What has no way between them for values: `m1 m4`. In one history of three, and never mended. */
  readonly #broken = new Set<string>();
  readonly #operators: Random;

  constructor(
    private readonly world: World,
    shards: number,
    private readonly lives: () => Iterable<Copied>,
  ) {
    const random = new Random(world.seed ^ OF_LINKS);
    this.#operators = random;
    if (random.below(3) === 0) {
      const [a, b] = [1 + random.below(4), 1 + random.below(4)];
      if (a !== b) this.#broken.add(`m${a} m${b}`).add(`m${b} m${a}`);
    }
    this.#check = new CopyCheck(shards, {
      logOf: (shard, copy) => this.#tableOf(shard, copy)?.log,
      isOnDisk: () => false,
      recordsOf: () => [],
      diskOf: () => [],
      lostDiskOf: () => undefined,
      holdsLease: (copy) => this.#lifeOf(copy)?.holdsLease() ?? false,
      relied: () => this.#relied(),
    });
  }

  count(what: string): void {
    this.counters[what] = (this.counters[what] ?? 0) + 1;
  }

  record(): number {
    return ++this.#records;
  }

  /** Copies can be made of what the one has, at the other. */
  linked(a: string, b: string): boolean {
    return !this.#broken.has(`${a} ${b}`);
  }

  /** An operator gives up a shard each of whose copies in sync has lost its process. */
  reset(state: MetadataState, leases: GrantedLeases, nowMs: number): ShardReset | undefined {
    if (state.clusterId === '' || this.#operators.below(30) > 0) return undefined;
    const s = this.#operators.pick(state.shards);
    const { copies = [] } = state.copySets[s.shard] ?? {};
    if (copies.some((copy) => isWhole(copy) && this.#lifeOf(copy) !== undefined)) return undefined;
    const stale = copies.filter((copy) => !isWhole(copy) && copy.id !== undefined && !isRenounced(copy));
    const from = stale.length === 0 ? undefined : this.#operators.pick(stale).member;
    try {
      const { command } = planReset(state, { shard: s.shard, ...(from === undefined ? {} : { from }) }, leases, nowMs);
      return command;
    } catch (error) {
      if (error instanceof FarkvError) return undefined;
      throw error;
    }
  }

  /** An entry is committed. */
  committed(proposal: Proposal, before: MetadataState, after: MetadataState): void {
    this.#state = after;
    const { command } = proposal;
    if (command.t === 'shard-reset' && before !== after) this.count(command.from === undefined ? 'reset' : 'resetFrom');
    if (command.t === 'copy-missing' && before !== after) this.count('missing');
    if (command.t === 'shard-handover' && before !== after)
      this.count(policyOf(before, command.shard).level === 'cache' ? 'cacheHanded' : 'handed');
    if (command.t === 'copies-removed' && before !== after && command.copies.some((c) => c.failed))
      this.count('calledOff');
    this.#check.committed(proposal, before, after);
  }

  stepped(): void {
    if (this.#state !== undefined) this.#check.stepped(this.#state);
    this.counters.seen = this.#check.seenRecords;
    this.counters.givenUp = this.#check.givenUp;
  }

  /** What a leader proposes for the sake of copies. */
  due(state: MetadataState, leases: GrantedLeases, nowMs: number): Command | undefined {
    if (state.clusterId === '') return undefined;
    if (state.policies.length !== 1) return this.#policy();
    let absences = this.#absences.get(leases);
    if (absences === undefined) this.#absences.set(leases, (absences = new Absences()));
    absences.observe(state, leases, nowMs);
    return nextCopies(state, leases, nowMs, absences);
  }

  /** Operators who change their minds. */
  unrest(): Command | undefined {
    const { random, forgetLate } = this.world;
    return forgetLate || random.below(40) > 0 ? undefined : this.#policy();
  }

  #policy(): Command {
    const { random } = this.world;
    if (random.below(4) === 0)
      return { t: 'policy-set', tenant: 0, level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' };
    const replicas = 2 + random.below(2);
    const onLoss = random.below(2) === 0 ? 'wait' : 'empty';
    return { t: 'policy-set', tenant: 0, level: 'replicated', replicas, minInSync: 1 + random.below(2), onLoss };
  }

  /** Everything is healed, and time goes on: each shard that has its values is served, with as many copies as can be. */
  settle(): void {
    this.world.quiet();
    this.world.runUntil(() => this.#unsettled() === undefined, SETTLE_US);
    const why = this.#unsettled();
    if (why !== undefined) throw new Violation('copies in sync', why);
  }

  #unsettled(): string | undefined {
    const state = this.#state;
    if (state === undefined) return undefined;
    // Others are no part of the group any more.
    const lives = [...this.lives()].filter(
      (life) => state.members.get(life.id)?.incarnation === life.incarnation && life.holdsLease(),
    );
    const isHere = ({ member, start }: Copy): boolean =>
      lives.some((life) => life.id === member && life.incarnation === start);
    for (const s of state.shards) {
      const copies = state.copySets[s.shard]?.copies ?? [];
      // Its values are lost, as far as it can be known: it waits for an operator.
      // What was never served is not lost.
      if (!copies.some((copy) => (isWhole(copy) || copy.member === s.owner) && isHere(copy))) continue;
      const said = `shard ${s.shard}, of ${s.owner ?? 'nobody'} in epoch ${s.epoch}, ${JSON.stringify(state.copySets[s.shard])}`;
      const owner = lives.find((life) => life.id === s.owner && life.tables.tables.get(s.shard)?.serving === true);
      if (owner === undefined) return `${said}, is not served`;
      const draining = new Set(state.servers.flatMap((one) => (one.draining ? [one.id] : [])));
      // Where there is no way for values, no copy can be made.
      const staying = lives.filter((life) => !draining.has(life.id) && this.linked(life.id, owner.id)).length;
      const wanted = Math.min(policyOf(state, s.shard).replicas, staying);
      const inSync = copies.filter((copy) => copy.state === 'in-sync').length;
      if (inSync < wanted) return `${said}, has ${inSync} copies in sync, and ${wanted} servers for them`;
    }
    return undefined;
  }

  #lifeOf(copy: Copy): Copied | undefined {
    for (const life of this.lives()) if (life.id === copy.member && life.incarnation === copy.start) return life;
    return undefined;
  }

  #tableOf(shard: number, copy: Copy): Table | undefined {
    const table = this.#lifeOf(copy)?.tables.tables.get(shard);
    return table?.id === copy.id ? table : undefined;
  }

  *#relied(): Generator<Relied> {
    for (const life of this.lives())
      for (const [shard, table] of life.tables.tables) {
        const answers = table.serving && life.nowMs() < life.rightMs(shard);
        if (answers || life.nowMs() < life.grantedMs(shard))
          yield { who: life.id, shard, copy: table.id, committed: table.log.slice(0, table.committed) };
      }
  }
}
