/**
 * Backoff for copies that are late again and again, at the owner: each time such a copy is back, changes wait for it
 * until it is late once more. The first return is never delayed. From the second time within a minute on it is not
 * waited for at once: it goes on joining, has what it lacks, and is required later and later.
 *
 * Where changes are refused for want of copies in sync, none is held back.
 */
import { inSync, policyOf } from '../metadata/copy-sets.js';
import type { Copy, CopySet } from '../metadata/state.js';
import type { ShardContext } from './context.js';
import type { Progress, Owned } from './local-shard.js';

/** A copy that was in time for so long is as good as any. */
const CALM_MS = 60_000;
const HELD_BACK_MS = 1000;
export const HELD_BACK_MAX_MS = 30_000;

/** How often a member's copy was late, with less than CALM_MS between. */
export interface LateCount {
  count: number;
  /** The wait that ends them. */
  calm: object;
}

/** Its copy is late, and has itself removed for that. */
export function countLate(c: ShardContext, local: Owned, member: string): void {
  const { lateCounts } = local.copies;
  const calm = {};
  lateCounts.set(member, { count: (lateCounts.get(member)?.count ?? 0) + 1, calm });
  c.askFor(local, calm, { do: 'wait', ms: CALM_MS });
}

/** `part`: of the wait that is over. */
export function forgetLate({ copies: { lateCounts } }: Owned, part: object): void {
  for (const [member, { calm }] of lateCounts) if (calm === part) lateCounts.delete(member);
}

/** Changes are refused as it is: whoever can be in sync is wanted at once. */
export function isWanted(c: ShardContext, { shard }: Owned, { copies }: CopySet): boolean {
  return inSync(copies) < policyOf(c.metadata, shard).minInSync;
}

/** It would be required now; true: it has to wait. */
export function backsOff(c: ShardContext, local: Owned, set: CopySet, one: Progress, { member }: Copy): boolean {
  const { shard } = local;
  const times = local.copies.lateCounts.get(member)?.count ?? 0;
  if (times < 2 || one.heldBack === times || isWanted(c, local, set)) return false;
  const ms = Math.min(HELD_BACK_MAX_MS, HELD_BACK_MS * 2 ** Math.min(10, times - 2));
  one.state = { is: 'held back', member, times };
  c.act({ do: 'note', note: { of: 'copy held back', shard, member, times, ms } });
  c.askFor(local, one.state, { do: 'wait', ms });
  return true;
}
