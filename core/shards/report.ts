/** What is said of all shards of a server together: to operators, and to who waits for its start or its end. */
import { isToBeMade, isWhole, mayCome, mayGo, policyOf } from '../metadata/copy-sets.js';
import { failedJoins } from '../metadata/join-rests.js';
import { keepersOf } from '../metadata/placement.js';
import type { Copy, Member } from '../metadata/state.js';
import type { RejoinBackoff, Left } from './actions.js';
import { isDurable, type ShardContext } from './context.js';
import { serves, type LocalShard } from './local-shard.js';

/** Every shard that the metadata gives to this server, or can give to nobody else, is served. */
export function isSettled(c: ShardContext, locals: ReadonlyMap<number, LocalShard>): boolean {
  return c.metadata.shards.every((s) => {
    if (s.owner === undefined) return !isOnlyHere(c, s.shard);
    const local = locals.get(s.shard);
    return s.owner !== c.memberId || (local !== undefined && serves(local) && local.epoch === s.epoch);
  });
}

/** It has no owner yet, and no other server has what is in it. */
function isOnlyHere(c: ShardContext, shard: number): boolean {
  const whole = copiesOf(c, shard).filter(isWhole);
  return whole.length > 0 && whole.every((one) => one.start === c.memberIncarnation);
}

/** Servers that may take over shards that are this server's: they have copies, or may be given some. */
export function heirsOf(c: ShardContext, locals: Iterable<LocalShard>): Member[] {
  const heirs = new Set([...locals].flatMap((local) => (local.kind === 'owned' ? heirsTo(c, local.shard) : [])));
  return [...c.metadata.members.values()].filter(({ id }) => heirs.has(id));
}

function heirsTo(c: ShardContext, shard: number): string[] {
  const draining = new Set(c.metadata.servers.flatMap((s) => (s.draining ? [s.id] : [])));
  const isWanted = policyOf(c.metadata, shard).replicas > 1;
  const may = isWanted ? keepersOf(c.metadata).flatMap(({ id }) => (draining.has(id) ? [] : [id])) : [];
  return [...copiesOf(c, shard).map(({ member }) => member), ...may].filter((id) => id !== c.memberId);
}

const NOBODY: ReadonlySet<string> = new Set();
const copiesOf = (c: ShardContext, shard: number): readonly Copy[] => c.metadata.copySets[shard]?.copies ?? [];

/**
 * Shards that are still this server's and that others have copies of, or may be given some; and copies that are waited
 * for. `gone`: servers that have ended or are about to, so that nobody waits for their copies.
 */
export function stayingOf(c: ShardContext, locals: Iterable<LocalShard>, gone: ReadonlySet<string>): number[] {
  return [...locals].filter((local) => stays(c, local, gone)).map(({ shard }) => shard);
}

function stays(c: ShardContext, { kind, shard, state }: LocalShard, gone: ReadonlySet<string>): boolean {
  const copies = copiesOf(c, shard);
  const s = c.metadata.shards[shard];
  const isMine = ({ member, start }: Copy): boolean => member === c.memberId && start === c.memberIncarnation;
  if (kind === 'owned') return state.is !== 'closing' && heirsTo(c, shard).some((id) => !gone.has(id));
  if (s === undefined || isDurable(c, shard)) return false;
  const policy = policyOf(c.metadata, shard);
  return copies.some((copy) => isMine(copy) && isWhole(copy) && mayGo(s, copies, copy, policy, false));
}

/**
 * It is to have one copy, on this server's disk: nobody is waited for, but until this server comes back nobody serves it
 * in a cluster that goes on.
 */
function isOnThisDisk(c: ShardContext, { kind, shard, state }: LocalShard): boolean {
  const goesOn = keepersOf(c.metadata).some(({ id }) => id !== c.memberId);
  return kind === 'owned' && state.is !== 'closing' && isDurable(c, shard) && goesOn;
}

/**
 * Of the shards that are still this server's, those that were to have a copy elsewhere, and those whose values wait on
 * its disk; and copies that are waited for.
 */
export function leftOf(c: ShardContext, locals: Iterable<LocalShard>, gone: ReadonlySet<string>): Left[] {
  return [...locals]
    .filter((local) => stays(c, local, local.kind === 'owned' ? NOBODY : gone) || isOnThisDisk(c, local))
    .map(({ kind, shard }) => {
      const owner = c.metadata.shards[shard]?.owner;
      if (kind === 'backup' && owner !== undefined && !gone.has(owner)) return { shard, values: 'with owner' };
      const isElsewhere = copiesOf(c, shard).some(
        (copy) => copy.member !== c.memberId && !gone.has(copy.member) && mayCome(c.metadata, copy),
      );
      return { shard, values: isElsewhere ? 'elsewhere' : isDurable(c, shard) ? 'on disk' : 'lost' };
    });
}

/** Copies of shards here that were late too often, and are not waited for yet. */
export function heldBackOf(locals: Iterable<LocalShard>): RejoinBackoff[] {
  return [...locals].flatMap((local) =>
    local.kind !== 'owned'
      ? []
      : [...local.copies.known.values()].flatMap(({ state }) =>
          state.is === 'held back' ? [{ shard: local.shard, member: state.member, times: state.times }] : [],
        ),
  );
}

/**
 * Shards of which a copy here lacks memory for what their owners have. `calledOff`: those whose copies were called off here
 * for want of memory; they count for as long as a copy is to be made here all the same.
 */
export function fullCopiesOf(c: ShardContext, locals: Iterable<LocalShard>, calledOff: ReadonlySet<number>): number[] {
  const { memberId, memberIncarnation } = c;
  const isOff = (shard: number): boolean =>
    isToBeMade(c.metadata, shard, memberId) &&
    failedJoins(c.metadata, shard).some((f) => f.member === memberId && f.start === memberIncarnation);
  const full = [...locals].flatMap((local) => (local.kind === 'backup' && local.full ? [local.shard] : []));
  return [...new Set([...full, ...[...calledOff].filter(isOff)])].sort((a, b) => a - b);
}
