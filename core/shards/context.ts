/** What all shards of a server have in common: the metadata, and the way out. */
import { policyOf } from '../metadata/copy-sets.js';
import type { CopySet, Member, MetadataState, Shard } from '../metadata/state.js';
import type { Request, Effect } from './actions.js';
import type { Backup, Owned, LocalShard } from './local-shard.js';

export interface ShardContext {
  readonly memberId: string;
  /** Of this start of the server, hex. */
  readonly memberIncarnation: string;
  /** As this server has applied it. */
  readonly metadata: MetadataState;
  /** Those of the last run, and this run has its lease from the leader. */
  readonly leasesOver: boolean;
  /** This server ends: its shards are given to others. */
  readonly leaving: boolean;
  /** Of what is opened now, in bytes. */
  readonly tableMemory: number;
  /** The result comes to the state that the shard has now, and to no other. */
  ask(local: LocalShard, action: Request): void;
  /** The result comes to this part of the shard, in whatever state that is then. */
  askFor(local: Owned, part: object, action: Request): void;
  act(action: Effect): void;
  /** The data plane has nothing of it any more. */
  end(local: LocalShard): void;
  /** The shard is this server's, with this copy. */
  heir(local: Backup): void;
  /** The shard came with a copy, and the table is none: it goes. */
  noCopy(local: Owned): void;
  /** The shard is another owner's, and is this copy here from now on. */
  steppedDown(local: Owned, copy: string): void;
  /** Before the first shard is served. */
  mark(): void;
  /** 64 random bits, hex. */
  random64(): string;
}

/** What the metadata says of the copies of a shard that is this server's in this epoch. */
export function ownSet(c: ShardContext, local: Owned): CopySet | undefined {
  const s = c.metadata.shards[local.shard];
  return s?.owner === c.memberId && s.epoch === local.epoch ? c.metadata.copySets[local.shard] : undefined;
}

export function memberOwning({ metadata }: Pick<ShardContext, 'metadata'>, { owner }: Shard): Member | undefined {
  return owner === undefined ? undefined : metadata.members.get(owner);
}

/** This start of the server is the one that the metadata names. */
export function isNamed({
  memberId,
  memberIncarnation,
  metadata,
}: Pick<ShardContext, 'memberId' | 'memberIncarnation' | 'metadata'>): boolean {
  return metadata.members.get(memberId)?.incarnation === memberIncarnation;
}

/** What is in it is on this server's disk, and stays there. */
export function isDurable({ metadata }: Pick<ShardContext, 'metadata'>, shard: number): boolean {
  return policyOf(metadata, shard).level === 'durable';
}

/** The shard is this server's, and in this epoch. Another start of the server would have it in a later one. */
export function isOwn(c: ShardContext, local: Owned): boolean {
  const s = c.metadata.shards[local.shard];
  return s?.owner === c.memberId && s.epoch === local.epoch; // mutation: shards/epoch-over
}
