/** What the metadata says of a copy here (backup.ts), and of the owner that it may have. */
import type { Copy, Shard } from '../metadata/state.js';
import type { ShardContext } from './context.js';
import type { Backup } from './local-shard.js';

/** What the metadata has of a copy of this shard at this start of the server, whether it is here or not. */
export function ownEntry({ memberId, memberIncarnation, metadata }: ShardContext, shard: number): Copy | undefined {
  return metadata.copySets[shard]?.copies.find((one) => one.member === memberId && one.start === memberIncarnation);
}

/** What the metadata has of this copy; undefined: nothing, or another start's, or another one. */
export function entryOf(c: ShardContext, local: Backup): Copy | undefined {
  const copy = ownEntry(c, local.shard);
  if (copy === undefined) return undefined;
  if (copy.id === local.incarnation) return copy;
  return copy.state === 'joining' && !local.named ? copy : undefined;
}

/** The shard is this server's, to be opened with this copy. */
export function isHeir(c: ShardContext, local: Backup): boolean {
  const s = c.metadata.shards[local.shard];
  const entry = entryOf(c, local);
  return s?.owner === c.memberId && entry !== undefined && entry.state !== 'joining';
}

/** The shard is this server's. A copy that joins is then none: only an owner says that one is in sync, and of another. */
export function isOwners(c: ShardContext, { shard }: Backup): boolean {
  return c.metadata.shards[shard]?.owner === c.memberId;
}

/** The shard at the owner that it is copied from; undefined when that has changed. */
export function sourceOf(c: ShardContext, local: Backup): Shard | undefined {
  const s = c.metadata.shards[local.shard];
  return s?.epoch === local.epoch && s.owner !== undefined && s.owner !== c.memberId ? s : undefined;
}

/** An owner that it may go on with: the one that waited for it, or the next, which knows it by its first config. */
export function mayFollow(c: ShardContext, { shard, epoch }: Backup): boolean {
  const s = c.metadata.shards[shard];
  return s?.owner !== undefined && s.owner !== c.memberId && (s.epoch === epoch || s.epoch === epoch + 1);
}
