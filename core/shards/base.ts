/**
 * When the table of a copy that is given up is kept, as the base of the next copy here (docs/rejoin.md). The copy itself
 * is none from then on: the metadata has it no more, or under another name.
 */
import { policyOf } from '../metadata/copy-sets.js';
import { isNamed, type ShardContext } from './context.js';
import type { Backup } from './local-shard.js';

/** For how long a table is kept that nobody wants yet: copies are made a few at a time. */
export const KEPT_MS = 600_000;
/** After so many attempts the copy begins with an empty table. */
const ATTEMPTS = 3;

/** Whether its table may be a base at all. */
export function isSound({ damaged, full, attempts }: Backup): boolean {
  return !damaged && !full && attempts < ATTEMPTS;
}

/** The leader is to have one more copy made, and that may be here. */
export function isMissed(c: ShardContext, { shard }: Pick<Backup, 'shard'>): boolean {
  const owner = c.metadata.shards[shard]?.owner;
  const others = c.metadata.copySets[shard]?.copies.filter(({ member }) => member !== c.memberId) ?? [];
  const { level, replicas } = policyOf(c.metadata, shard);
  return isNamed(c) && !c.leaving && level !== 'cache' && owner !== c.memberId && others.length < replicas;
}
