/** A metadata machine whose shards have copies, for tests of what commands about copies mean. */
import type { CopiesInSync, PromotedShard, RemovedCopy, ShardName } from '../../core/metadata/copy-commands.js';
import type { Copy, CopySet, Policy } from '../../core/metadata/state.js';
import { bootstrapOf, hexOf, joinOf, MetadataLog } from './metadata-log.js';

export const REPLICATED: Policy = { level: 'replicated', replicas: 3, minInSync: 1, onLoss: 'wait' };

/** Servers s1, s2, ... with starts 1, 2, ...; one shard, whose first owner has opened it with incarnation 100, or not yet. */
export class CopyLog extends MetadataLog {
  constructor(policy: Partial<Policy> = {}, servers = 4, isOpen = true) {
    super();
    const ids = Array.from({ length: servers }, (_, i) => `s${i + 1}`);
    this.do({ ...bootstrapOf(1, ids), policy: { ...REPLICATED, ...policy } });
    this.do(...ids.map((id, i) => joinOf(id, i + 1)), { t: 'assign-shards' });
    if (isOpen) this.open(0, 100);
  }

  get set(): CopySet {
    return this.state.copySets[0]!;
  }

  get owner(): string | undefined {
    return this.shard(0).owner;
  }

  /** The others, in order of their names. */
  get others(): string[] {
    return [...this.state.members.keys()].filter((id) => id !== this.owner).sort();
  }

  get name(): ShardName {
    return { shard: 0, epoch: this.shard(0).epoch, config: this.set.config };
  }

  get byOwner(): { owner: string; memberIncarnation: string } {
    return { owner: this.owner!, memberIncarnation: this.start(this.owner!) };
  }

  start(id: string): string {
    return this.state.members.get(id)!.incarnation;
  }

  copy(id: string): Copy | undefined {
    return this.set.copies.find((c) => c.member === id);
  }

  /** `s2 in-sync, s3 joining`, without the owner's where that is in sync. */
  get copies(): string {
    return this.set.copies
      .filter((c) => c.member !== this.owner || c.state !== 'in-sync')
      .map((c) => `${c.member} ${c.state}`)
      .sort()
      .join(', ');
  }

  inSync(id: string, copy: string): CopiesInSync {
    return {
      t: 'copies-in-sync',
      ...this.name,
      ...this.byOwner,
      member: id,
      start: this.start(id),
      copy,
      worker: 1,
      lsn: 7,
    };
  }

  /** They join and are in sync; the copy of s2 has id 2002, and so on. */
  with(...ids: string[]): this {
    for (const id of ids) {
      this.do({
        t: 'copies-add',
        copies: [{ ...this.name, member: id, start: this.start(id), rank: Number(id.slice(1)) }],
      });
      this.do(this.inSync(id, hexOf(2000 + Number(id.slice(1)))));
    }
    return this;
  }

  removal(id: string, whole = true): RemovedCopy {
    return { ...this.name, member: id, start: this.start(id), whole, lsn: 8 };
  }

  without(id: string, whole = true): this {
    return this.do({ t: 'copies-removed', by: this.byOwner, copies: [this.removal(id, whole)] });
  }

  promotion(id: string): PromotedShard {
    return { ...this.name, copy: this.copy(id)?.id ?? hexOf(0), incarnation: hexOf(500), lsn: 9 };
  }

  promote(id: string): string {
    return this.try({ t: 'shards-promoted', id, memberIncarnation: this.start(id), shards: [this.promotion(id)] });
  }

  take(to: string, more: { copy?: string; config?: number } = {}): string {
    const { shard, epoch, config } = this.name;
    return this.try({
      t: 'shards-taken',
      id: this.owner!,
      incarnation: this.start(this.owner!),
      shards: [{ shard, epoch, to, config, ...more }],
    });
  }
}
