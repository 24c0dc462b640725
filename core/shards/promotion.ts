/**
 * How a copy in sync whose owner seems to be gone asks for the shard (backup.ts): such copies take turns, by rank, and the
 * one whose turn it is proposes to be promoted. Not for: whether it may be, which the metadata decides
 * (core/metadata/reduce-promotions.ts), nor what becomes of one that is (held.ts).
 */
import type { Copy } from '../metadata/state.js';
import type { Common } from './common.js';
import { become, type Backup, type BackupState, type Orphan } from './life.js';

/** Copies whose owner is gone take turns to be promoted, the first in rank at once. */
const TURN_MS = 30;

type Orphaned = Extract<BackupState, { is: 'orphaned' }>;

/** Nobody, or an owner in an epoch. */
export function ownerNow(c: Common, { shard }: Backup): string {
  const s = c.metadata.shards[shard];
  return `${s?.owner ?? ''}/${s?.epoch ?? 0}`;
}

export function takeTurn(c: Common, life: Backup, orphan: Orphan, { rank }: Copy): void {
  const s = c.metadata.shards[life.shard];
  const copies = c.metadata.copySets[life.shard]?.copies ?? [];
  const before = copies.filter((o) => o.state === 'in-sync' && o.member !== s?.owner && o.rank < rank).length;
  const state: Orphaned = { is: 'orphaned', owner: ownerNow(c, life), orphan, at: 'waiting' };
  become(life, state);
  const ms = before * TURN_MS + life.patienceMs;
  if (ms === 0) promote(c, life, state);
  else c.ask(life, { do: 'wait', ms });
}

export function promote(c: Common, life: Backup, state: Orphaned): void {
  const { shard, incarnation: copy } = life;
  const { epoch } = c.metadata.shards[shard] ?? life;
  const config = c.metadata.copySets[shard]?.config ?? 0;
  const { orphan } = state;
  state.at = 'proposing';
  c.act({ do: 'note', note: { of: 'owner gone', shard, epoch } });
  c.ask(life, {
    do: 'propose',
    command: {
      t: 'shards-promoted',
      id: c.memberId,
      memberIncarnation: c.memberIncarnation,
      shards: [{ shard, epoch, config, copy, incarnation: c.random64(), lsn: orphan.prepared }],
    },
  });
}
