/**
 * A brake for copies that are late again and again, at the owner: each time such a copy is back, changes wait for it
 * until it is late once more. The first return is never delayed. From the second time within a minute on it is not
 * waited for at once: it goes on joining, has what it lacks, and is required later and later.
 *
 * Where changes are refused for want of copies in sync, none is held back.
 */
import { inSync, policyOf } from '../metadata/copy-sets.js';
import type { Copy, CopySet } from '../metadata/state.js';
import type { Common } from './common.js';
import type { Companion, Held } from './life.js';

/** A copy that was in time for so long is as good as any. */
const CALM_MS = 60_000;
const HELD_BACK_MS = 1000;
export const HELD_BACK_MAX_MS = 30_000;

/** How often a member's copy was late, with less than CALM_MS between. */
export interface Slips {
  count: number;
  /** The wait that ends them. */
  calm: object;
}

/** Its copy is late, and has itself removed for that. */
export function slipped(c: Common, life: Held, member: string): void {
  const { slips } = life.copies;
  const calm = {};
  slips.set(member, { count: (slips.get(member)?.count ?? 0) + 1, calm });
  c.askFor(life, calm, { do: 'wait', ms: CALM_MS });
}

/** `part`: of the wait that is over. */
export function calmed({ copies: { slips } }: Held, part: object): void {
  for (const [member, { calm }] of slips) if (calm === part) slips.delete(member);
}

/** Changes are refused as it is: whoever can be in sync is wanted at once. */
export function isWanted(c: Common, { shard }: Held, { copies }: CopySet): boolean {
  return inSync(copies) < policyOf(c.metadata, shard).minInSync;
}

/** It would be required now; true: it has to wait. */
export function heldBack(c: Common, life: Held, set: CopySet, one: Companion, { member }: Copy): boolean {
  const { shard } = life;
  const times = life.copies.slips.get(member)?.count ?? 0;
  if (times < 2 || one.heldBack === times || isWanted(c, life, set)) return false;
  const ms = Math.min(HELD_BACK_MAX_MS, HELD_BACK_MS * 2 ** Math.min(10, times - 2));
  one.state = { is: 'held back', member, times };
  c.act({ do: 'note', note: { of: 'copy held back', shard, member, times, ms } });
  c.askFor(life, one.state, { do: 'wait', ms });
  return true;
}
