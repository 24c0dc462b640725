/** What the metadata says of a copy here (backup.ts), and of the owner that it may have. */
import type { Copy, Shard } from '../metadata/state.js';
import type { Common } from './common.js';
import type { Backup } from './life.js';

/** What the metadata has of a copy of this shard at this start of the server, whether it is here or not. */
export function ownEntry({ memberId, memberIncarnation, metadata }: Common, shard: number): Copy | undefined {
  return metadata.copySets[shard]?.copies.find((one) => one.member === memberId && one.start === memberIncarnation);
}

/** What the metadata has of this copy; undefined: nothing, or another start's, or another one. */
export function entryOf(c: Common, life: Backup): Copy | undefined {
  const copy = ownEntry(c, life.shard);
  if (copy === undefined) return undefined;
  if (copy.id === life.incarnation) return copy;
  return copy.state === 'joining' && !life.named ? copy : undefined;
}

/** The shard is this server's, to be opened with this copy. */
export function isHeir(c: Common, life: Backup): boolean {
  const s = c.metadata.shards[life.shard];
  const entry = entryOf(c, life);
  return s?.owner === c.memberId && entry !== undefined && entry.state !== 'joining';
}

/** The shard is this server's. A copy that joins is then none: only an owner says that one is in sync, and of another. */
export function isOwners(c: Common, { shard }: Backup): boolean {
  return c.metadata.shards[shard]?.owner === c.memberId;
}

/** The shard at the owner that it is copied from; undefined when that has changed. */
export function sourceOf(c: Common, life: Backup): Shard | undefined {
  const s = c.metadata.shards[life.shard];
  return s?.epoch === life.epoch && s.owner !== undefined && s.owner !== c.memberId ? s : undefined;
}

/** An owner that it may go on with: the one that waited for it, or the next, which knows it by its first config. */
export function mayFollow(c: Common, { shard, epoch }: Backup): boolean {
  const s = c.metadata.shards[shard];
  return s?.owner !== undefined && s.owner !== c.memberId && (s.epoch === epoch || s.epoch === epoch + 1);
}
