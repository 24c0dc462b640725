/** A metadata machine that is told commands, for tests of what they mean. */
import { encodeProposal, type Bootstrap, type Command, type MemberJoin } from '../../core/metadata/commands.js';
import { MetadataMachine } from '../../core/metadata/machine.js';
import type { MetadataState, Shard } from '../../core/metadata/state.js';

export const hexOf = (n: number): string => n.toString(16).padStart(16, '0');

export const LEASE = { leaseMs: 1000, driftPpm: 1000 };

/** Makes a cluster of these servers. */
export function bootstrapOf(shards: number, voters: readonly string[]): Bootstrap {
  return {
    t: 'bootstrap',
    clusterId: '1f'.repeat(16),
    hashSeed: '2f'.repeat(16),
    ticketSecret: '3f'.repeat(16),
    shards,
    voters,
    votersMax: 3,
    ownerLease: LEASE,
  };
}

export function joinOf(id: string, n: number, replaces?: number, memoryBytes = 1 << 30): MemberJoin {
  return {
    t: 'member-join',
    id,
    incarnation: hexOf(n),
    ...(replaces === undefined ? {} : { replaces: hexOf(replaces) }),
    instance: hexOf(1000 + id.charCodeAt(1)),
    control: [`127.0.0.1:74${id.slice(1).padStart(2, '0')}`],
    fabric: [{ provider: 'tcp', address: '127.0.0.1:7500', worker: 0 }],
    memoryBytes,
  };
}

export class MetadataLog {
  readonly machine: MetadataMachine;
  #sequence = 0;

  constructor(known?: number) {
    this.machine = new MetadataMachine(known);
  }

  /** A cluster of these servers, each with an incarnation of its place in the list, shards assigned. */
  static cluster(shards: number, ids: readonly string[], memory: readonly number[] = []): MetadataLog {
    const log = new MetadataLog();
    log.do(bootstrapOf(shards, ids), ...ids.map((id, i) => joinOf(id, i + 1, undefined, memory[i])), {
      t: 'assign-shards',
    });
    return log;
  }

  /** The same cluster, at servers of a version that knows this format. */
  knowing(known: number): MetadataLog {
    const log = new MetadataLog(known);
    log.machine.restore(this.machine.snapshot());
    log.#sequence = this.#sequence;
    return log;
  }

  get state(): MetadataState {
    return this.machine.state;
  }

  try(command: Command): string {
    const { outcome } = this.machine.apply(
      encodeProposal({ proposer: 'aa'.repeat(8), sequence: ++this.#sequence, command }),
    );
    return outcome === 'duplicate' ? outcome : outcome.ok ? 'ok' : `${outcome.code}: ${outcome.message}`;
  }

  do(...commands: Command[]): this {
    for (const c of commands) {
      const outcome = this.try(c);
      if (outcome !== 'ok') throw new Error(`refused: ${outcome} ${JSON.stringify(c)}`);
    }
    return this;
  }

  /** Its owner opens the shard, and is about to serve it. */
  open(shard: number, incarnation: number): this {
    this.openNew(shard, incarnation);
    const { owner } = this.shard(shard);
    const own = this.state.copySets[shard]?.copies.find((copy) => copy.member === owner);
    return own?.state === 'joining' ? this.count(shard) : this;
  }

  /** Its owner has counted its own copy as one in sync. */
  count(shard: number): this {
    const { epoch, owner, worker, incarnation } = this.shard(shard);
    const { config } = this.state.copySets[shard]!;
    const start = this.state.members.get(owner!)!.incarnation;
    const by = { owner: owner!, memberIncarnation: start };
    const about = { member: owner!, start, copy: incarnation!, worker, lsn: 0 };
    return this.do({ t: 'copies-in-sync', shard, epoch, config, ...by, ...about });
  }

  /** Its owner opens the shard, which it has not served yet. */
  openNew(shard: number, incarnation: number): this {
    const s = this.shard(shard);
    return this.do({
      t: 'shard-opened',
      shard,
      owner: s.owner!,
      memberIncarnation: this.state.members.get(s.owner!)!.incarnation,
      epoch: s.epoch,
      incarnation: hexOf(incarnation),
      layoutEpoch: 1,
      buckets: 64,
      regions: [{ provider: 'shm', kind: 'heap', segment: 0, tag: 1, bytes: 4096, remoteAddress: '4096', rkey: '7' }],
    });
  }

  /** The shard is handed over to the server that it was on its way to, which opens it under this name. */
  arrive(shard: number, name: number): this {
    const { to } = this.state.moves.find((m) => m.shard === shard)!;
    const start = (id: string): string => this.state.members.get(id)!.incarnation;
    const copies = () => this.state.copySets[shard]!.copies;
    const about = () => ({ shard, epoch: this.shard(shard).epoch, config: this.state.copySets[shard]!.config });
    const from = this.shard(shard).owner!;
    const by = { owner: from, memberIncarnation: start(from) };
    const copy = copies().find((one) => one.member === to)?.id ?? hexOf(name + 0x1000);
    if (!copies().some((one) => one.member === to))
      this.do({ t: 'copies-add', copies: [{ ...about(), member: to, start: start(to), rank: 1 }] });
    if (!copies().some((one) => one.member === to && one.state === 'in-sync'))
      this.do({ t: 'copies-in-sync', ...about(), ...by, member: to, start: start(to), copy, worker: 0, lsn: 0 });
    this.do({ t: 'shard-handover', ...about(), ...by, to, copy, incarnation: hexOf(name), ends: false });
    const left = { ...about(), member: from, start: start(from), whole: false, lsn: 0 };
    return this.do({ t: 'copies-removed', copies: [left] });
  }

  shard(n: number): Shard {
    return this.machine.state.shards[n]!;
  }

  ownedBy(id: string): number[] {
    return this.state.shards.filter((s) => s.owner === id).map((s) => s.shard);
  }
}
