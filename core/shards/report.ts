/** What is said of all lives of a server's shards together: to operators, and to who waits for its start or its end. */
import { isToBeMade, isWhole, mayCome, mayGo, policyOf } from '../metadata/copy-sets.js';
import { failedJoins } from '../metadata/join-rests.js';
import { keepersOf } from '../metadata/placement.js';
import type { Copy, Member } from '../metadata/state.js';
import type { HeldBack, Left } from './actions.js';
import { isDurable, type Common } from './common.js';
import { serves, type Life } from './life.js';

/** Every shard that the metadata gives to this server, or can give to nobody else, is served. */
export function isSettled(c: Common, lives: ReadonlyMap<number, Life>): boolean {
  return c.metadata.shards.every((s) => {
    if (s.owner === undefined) return !isOnlyHere(c, s.shard);
    const life = lives.get(s.shard);
    return s.owner !== c.memberId || (life !== undefined && serves(life) && life.epoch === s.epoch);
  });
}

/** It has no owner yet, and no other server has what is in it. */
function isOnlyHere(c: Common, shard: number): boolean {
  const whole = copiesOf(c, shard).filter(isWhole);
  return whole.length > 0 && whole.every((one) => one.start === c.memberIncarnation);
}

/** Servers that may take over shards that are this server's: they have copies, or may be given some. */
export function heirsOf(c: Common, lives: Iterable<Life>): Member[] {
  const heirs = new Set([...lives].flatMap((life) => (life.kind === 'held' ? heirsTo(c, life.shard) : [])));
  return [...c.metadata.members.values()].filter(({ id }) => heirs.has(id));
}

function heirsTo(c: Common, shard: number): string[] {
  const draining = new Set(c.metadata.servers.flatMap((s) => (s.draining ? [s.id] : [])));
  const isWanted = policyOf(c.metadata, shard).replicas > 1;
  const may = isWanted ? keepersOf(c.metadata).flatMap(({ id }) => (draining.has(id) ? [] : [id])) : [];
  return [...copiesOf(c, shard).map(({ member }) => member), ...may].filter((id) => id !== c.memberId);
}

const NOBODY: ReadonlySet<string> = new Set();
const copiesOf = (c: Common, shard: number): readonly Copy[] => c.metadata.copySets[shard]?.copies ?? [];

/**
 * Shards that are still this server's and that others have copies of, or may be given some; and copies that are waited
 * for. `gone`: servers that have ended or are about to, so that nobody waits for their copies.
 */
export function stayingOf(c: Common, lives: Iterable<Life>, gone: ReadonlySet<string>): number[] {
  return [...lives].filter((life) => stays(c, life, gone)).map(({ shard }) => shard);
}

function stays(c: Common, { kind, shard, state }: Life, gone: ReadonlySet<string>): boolean {
  const copies = copiesOf(c, shard);
  const s = c.metadata.shards[shard];
  const isMine = ({ member, start }: Copy): boolean => member === c.memberId && start === c.memberIncarnation;
  if (kind === 'held') return state.is !== 'closing' && heirsTo(c, shard).some((id) => !gone.has(id));
  if (s === undefined || isDurable(c, shard)) return false;
  const policy = policyOf(c.metadata, shard);
  return copies.some((copy) => isMine(copy) && isWhole(copy) && mayGo(s, copies, copy, policy, false));
}

/**
 * It is to have one copy, on this server's disk: nobody is waited for, but until this server comes back nobody serves it
 * in a cluster that goes on.
 */
function isOnThisDisk(c: Common, { kind, shard, state }: Life): boolean {
  const goesOn = keepersOf(c.metadata).some(({ id }) => id !== c.memberId);
  return kind === 'held' && state.is !== 'closing' && isDurable(c, shard) && goesOn;
}

/**
 * Of the shards that are still this server's, those that were to have a copy elsewhere, and those whose values wait on
 * its disk; and copies that are waited for.
 */
export function leftOf(c: Common, lives: Iterable<Life>, gone: ReadonlySet<string>): Left[] {
  return [...lives]
    .filter((life) => stays(c, life, life.kind === 'held' ? NOBODY : gone) || isOnThisDisk(c, life))
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
export function heldBackOf(lives: Iterable<Life>): HeldBack[] {
  return [...lives].flatMap((life) =>
    life.kind !== 'held'
      ? []
      : [...life.copies.known.values()].flatMap(({ state }) =>
          state.is === 'held back' ? [{ shard: life.shard, member: state.member, times: state.times }] : [],
        ),
  );
}

/**
 * Shards of which a copy here lacks memory for what their owners have. `calledOff`: those whose copies were called off here
 * for want of memory; they count for as long as a copy is to be made here all the same.
 */
export function fullCopiesOf(c: Common, lives: Iterable<Life>, calledOff: ReadonlySet<number>): number[] {
  const { memberId, memberIncarnation } = c;
  const isOff = (shard: number): boolean =>
    isToBeMade(c.metadata, shard, memberId) &&
    failedJoins(c.metadata, shard).some((f) => f.member === memberId && f.start === memberIncarnation);
  const full = [...lives].flatMap((life) => (life.kind === 'backup' && life.full ? [life.shard] : []));
  return [...new Set([...full, ...[...calledOff].filter(isOff)])].sort((a, b) => a - b);
}
