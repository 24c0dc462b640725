/**
 * Which shards should be whose, and the fewest moves that get there: rendezvous hashing with weights (a member's
 * memory), with a bound on each member's share (placement.ts says why). Decided by the leader, which writes the result
 * into a command: logarithms need not be the same to the last bit on every machine, and with this they need not be.
 */
import { score } from './placement.js';
import type { Copy, Member, MetadataState, Move, Shard } from './state.js';

/** What of the metadata a plan rests on. */
export interface Spread {
  readonly shards: readonly Owned[];
  readonly moves: readonly Pick<Move, 'shard' | 'to'>[];
  readonly copySets: readonly { readonly copies: readonly Pick<Copy, 'member' | 'state'>[] }[];
}
type Owned = Pick<Shard, 'shard' | 'owner'>;
export type Keeper = Pick<Member, 'id' | 'memoryBytes'>;

/**
 * Highest of -weight / ln(u) wins: each member gets its weight's part of the shards (Schindelhauer and Schomaker,
 * 2005).
 */
export function weighted(shard: number, member: Keeper): number {
  const u = (score(shard, member.id) + 1) / (2 ** 32 + 2);
  return -Math.max(1, member.memoryBytes) / Math.log(u);
}

function best(shard: number, among: readonly Keeper[]): Keeper | undefined {
  let found: Keeper | undefined;
  for (const m of among) if (found === undefined || weighted(shard, m) > weighted(shard, found)) found = m;
  return found;
}

function loads(shards: readonly Pick<Owned, 'owner'>[]): Map<string, number> {
  const load = new Map<string, number>();
  for (const s of shards) if (s.owner !== undefined) load.set(s.owner, (load.get(s.owner) ?? 0) + 1);
  return load;
}

/** Each member's part of `count` shards by weight; not whole numbers. */
export function parts(count: number, members: readonly Keeper[]): Map<string, number> {
  const all = members.reduce((sum, m) => sum + Math.max(1, m.memoryBytes), 0);
  return new Map(members.map((m) => [m.id, (count * Math.max(1, m.memoryBytes)) / all]));
}

/** New owners for these shards, among `members`, which keep what they have. Empty when there are no members. */
export function placeOn(
  state: MetadataState,
  shards: readonly number[],
  members: readonly Member[],
): Map<number, string> {
  const placed = new Map<number, string>();
  if (members.length === 0) return placed;
  const part = parts(state.shards.length, members);
  const load = loads(withMoves(state));
  const room = (m: Member): boolean => (load.get(m.id) ?? 0) < Math.ceil(part.get(m.id) ?? 0);
  for (const shard of shards) {
    const open = members.filter(room);
    const to = best(shard, open.length > 0 ? open : members);
    if (to === undefined) continue;
    placed.set(shard, to.id);
    load.set(to.id, (load.get(to.id) ?? 0) + 1);
  }
  return placed;
}

/** The shards as they will be when the moves under way are done. */
function withMoves(state: Spread): Owned[] {
  const to = new Map(state.moves.map((m) => [m.shard, m.to]));
  return state.shards.map((s) => (to.has(s.shard) ? { ...s, owner: to.get(s.shard) ?? '' } : s));
}

export interface PlannedMove {
  readonly shard: number;
  readonly from: string;
  readonly to: string;
  /** It is moved so that this server's copy goes to another server (plan-copies.ts). */
  readonly gives?: string;
}

/** How many shards each member is to have: its part rounded down or, for those that lose least by it, up. */
function quotas(shards: readonly Owned[], members: readonly Keeper[]): Map<string, number> {
  const part = parts(shards.length, members);
  const load = loads(shards);
  const quota = new Map([...part].map(([id, p]) => [id, Math.floor(p + 1e-6)]));
  let left = shards.length - [...quota.values()].reduce((sum, n) => sum + n, 0);
  const surplus = (m: Keeper): number => (load.get(m.id) ?? 0) - (quota.get(m.id) ?? 0);
  const rest = (m: Keeper): number => (part.get(m.id) ?? 0) - (quota.get(m.id) ?? 0);
  const order = members
    .filter((m) => rest(m) > 1e-6)
    .sort(
      (a, b) =>
        Math.sign(Math.max(0, surplus(b))) - Math.sign(Math.max(0, surplus(a))) ||
        rest(b) - rest(a) ||
        (a.id < b.id ? -1 : 1),
    );
  for (const m of order) {
    if (left-- <= 0) break;
    quota.set(m.id, (quota.get(m.id) ?? 0) + 1);
  }
  return quota;
}

/**
 * The moves that spread the shards over `members` (others are to have none) by weight. Moves under way count as done,
 * and their shards are not planned again: `from` is always the present owner, and `to` another server. Nothing moves
 * but what is above a member's quota, each shard once, to a member that is below its own. Where more comes to a member
 * than its quota, the rest is planned when it has come. Shards that one of those below has a copy of go first, to it.
 */
export function planRebalance(state: Spread, members: readonly Keeper[]): PlannedMove[] {
  if (members.length === 0) return [];
  const shards = withMoves(state);
  const coming = new Set(state.moves.map((m) => m.shard));
  const quota = quotas(shards, members);
  const load = loads(shards);
  const byId = new Map(members.map((m) => [m.id, m]));
  const isBelow = (m: Keeper): boolean => (load.get(m.id) ?? 0) < (quota.get(m.id) ?? 0);
  const hasCopy = (s: Owned, m: Keeper): boolean =>
    state.copySets[s.shard]?.copies.some((c) => c.member === m.id && c.state === 'in-sync') === true;
  const over = new Map([...load].map(([id, count]) => [id, count - (quota.get(id) ?? 0)]));
  const planned: PlannedMove[] = [];
  const give = (s: Owned, to: Keeper | undefined): boolean => {
    if (to === undefined || s.owner === undefined || (over.get(s.owner) ?? 0) <= 0) return false;
    over.set(s.owner, (over.get(s.owner) ?? 0) - 1);
    load.set(to.id, (load.get(to.id) ?? 0) + 1);
    planned.push({ shard: s.shard, from: s.owner, to: to.id });
    return true;
  };
  // What hashing would rather not have where it is goes first, and before that what is handed over without being copied.
  const cost = (s: Owned): number => {
    const member = byId.get(s.owner ?? '');
    return member === undefined ? 0 : weighted(s.shard, member);
  };
  const own = shards
    .filter((s) => (over.get(s.owner ?? '') ?? 0) > 0 && !coming.has(s.shard))
    .map((s) => ({ s, cost: cost(s) }))
    .sort((a, b) => a.cost - b.cost || a.s.shard - b.s.shard)
    .map(({ s }) => s);
  const isHandedOver = (s: Owned): boolean =>
    give(
      s,
      best(
        s.shard,
        members.filter((m) => isBelow(m) && hasCopy(s, m)),
      ),
    );
  const copied = own.filter((s) => !isHandedOver(s));
  for (const s of copied) give(s, best(s.shard, members.filter(isBelow)));
  return planned.sort((a, b) => a.shard - b.shard);
}
