/**
 * Copies of durable shards that this start of the server has found on its disk (docs/durable-cluster.md): those that the
 * metadata has as copies of this start go on as such, and follow whoever owns the shard, or lead. All others are thrown
 * away.
 */
import { RECOVER_MS } from '../metadata/copy-policy.js';
import { comeBack, discardBackup } from './backup.js';
import type { Copy } from '../metadata/state.js';
import type { ShardContext } from './context.js';
import { newBackup, type Backup } from './local-shard.js';

/** A copy on the disk. A whole one is open in the data plane. */
export interface Found {
  readonly shard: number;
  /** 64 bits, hex. */
  readonly copy: string;
  readonly worker: number;
  readonly whole: boolean;
  /** Of the owner that it followed last, or was. */
  readonly epoch: number;
  /** The last record that it has. */
  readonly lsn: number;
}

const entryOf = ({ metadata, memberId }: ShardContext, { shard, copy }: Found): Copy | undefined =>
  metadata.copySets[shard]?.copies.find((one) => one.member === memberId && one.id === copy);

/**
 * Whether a copy that is not whole stays as it is, with all of the log that it needs: the metadata names it while there
 * is no other, and a later start may be able to read it. Else it is thrown away.
 */
export function keepsUnread(c: ShardContext, found: Found): boolean {
  if (entryOf(c, found) !== undefined) return true; // mutation: recovered/unread-discarded
  c.act({ do: 'discard', shard: found.shard, copy: found.copy });
  return false;
}

/** Of a whole one, when the metadata has this start. `begin` is given the shard that is open. */
export function takeUp(c: ShardContext, found: Found, begin: (local: Backup) => void): void {
  const { shard, copy, worker, epoch } = found;
  const entry = entryOf(c, found);
  const local = newBackup(shard, worker);
  Object.assign(local, { epoch, incarnation: copy, named: true, patienceMs: RECOVER_MS });
  begin(local);
  if (entry?.start === c.memberIncarnation) comeBack(c, local, entry);
  else discardBackup(c, local);
}
