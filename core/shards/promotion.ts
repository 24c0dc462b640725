/**
 * How a copy in sync whose owner seems to be gone asks for the shard (backup.ts): such copies take turns, by rank, and the
 * one whose turn it is proposes to be promoted. Not for: whether it may be, which the metadata decides
 * (core/metadata/reduce-promotions.ts), nor what becomes of one that is (owned.ts).
 */
import type { Copy } from '../metadata/state.js';
import type { ShardContext } from './context.js';
import { transition, type Backup, type BackupState, type Suspicion } from './local-shard.js';

/** Copies whose owner is gone take turns to be promoted, the first in rank at once. */
const TURN_MS = 30;

type Suspecting = Extract<BackupState, { is: 'suspecting' }>;

/** Nobody, or an owner in an epoch. */
export function ownerNow(c: ShardContext, { shard }: Backup): string {
  const s = c.metadata.shards[shard];
  return `${s?.owner ?? ''}/${s?.epoch ?? 0}`;
}

export function takeTurn(c: ShardContext, local: Backup, suspicion: Suspicion, { rank }: Copy): void {
  const s = c.metadata.shards[local.shard];
  const copies = c.metadata.copySets[local.shard]?.copies ?? [];
  const before = copies.filter((o) => o.state === 'in-sync' && o.member !== s?.owner && o.rank < rank).length;
  const state: Suspecting = { is: 'suspecting', owner: ownerNow(c, local), suspicion, at: 'waiting' };
  transition(local, state);
  const ms = before * TURN_MS + local.patienceMs;
  if (ms === 0) promote(c, local, state);
  else c.ask(local, { do: 'wait', ms });
}

export function promote(c: ShardContext, local: Backup, state: Suspecting): void {
  const { shard, incarnation: copy } = local;
  const { epoch } = c.metadata.shards[shard] ?? local;
  const config = c.metadata.copySets[shard]?.config ?? 0;
  const { suspicion } = state;
  state.at = 'proposing';
  c.act({ do: 'note', note: { of: 'owner gone', shard, epoch } });
  c.ask(local, {
    do: 'propose',
    command: {
      t: 'shards-promoted',
      id: c.memberId,
      memberIncarnation: c.memberIncarnation,
      shards: [{ shard, epoch, config, copy, incarnation: c.random64(), lsn: suspicion.prepared }],
    },
  });
}
