/**
 * Which shards are to change owners so that copies are spread over the servers as owners are. A new owner gets a copy
 * before the shard is its, and then the server with most copies above its part gives one up (copy-policy.ts). So a shard
 * of which such a server has a copy is given to one that has fewer than its part; planRebalance (plan.ts) evens the
 * owners out again by handing shards over to copies that are there, which copies nothing.
 */
import { zoneOf } from './copy-plan.js';
import { policyOf } from './copy-sets.js';
import { keepersOf } from './placement.js';
import { parts, type Keeper, type PlannedMove } from './plan.js';
import type { Member, MetadataState } from './state.js';

export interface ZonedKeeper extends Keeper {
  /** What fails together with it (copy-plan.ts). */
  readonly zone: string;
}

/** A shard that is kept by several servers, or is to be. */
export interface Placed {
  readonly shard: number;
  readonly owner: string | undefined;
  readonly wanted: number;
  /** Servers with a copy, whatever its state. */
  readonly at: readonly string[];
  /** Those are as many as wanted, all in sync, and the shard is not moving. */
  readonly isWhole: boolean;
}

/** More are planned when these are made. */
const PLANNED_MAX = 64;

/** How many copies each server has above its part. */
function crowds(placed: readonly Placed[], keepers: readonly Keeper[]): Map<string, number> {
  const wanted = placed.reduce((sum, one) => sum + one.wanted, 0);
  const crowd = new Map([...parts(wanted, keepers)].map(([id, part]) => [id, -Math.ceil(part - 1e-6)]));
  for (const id of placed.flatMap(({ at }) => at)) crowd.set(id, (crowd.get(id) ?? 0) + 1);
  return crowd;
}

/**
 * Each shard once. `keepers`: all that keep values; `open`: of these, the ids of those that may get shards. No zone comes
 * to have more copies of a shard than that of the server has which gives its own up.
 */
export function planCopies(
  placed: readonly Placed[],
  keepers: readonly ZonedKeeper[],
  open: readonly string[],
  most = PLANNED_MAX,
): PlannedMove[] {
  const crowd = crowds(placed, keepers);
  const of = (id: string): number => crowd.get(id) ?? 0;
  const zones = new Map(keepers.map(({ id, zone }) => [id, zone]));
  const backups = new Map(keepers.map(({ id }): [string, Placed[]] => [id, []]));
  for (const one of placed) if (one.isWhole) for (const id of one.at) if (id !== one.owner) backups.get(id)?.push(one);

  const inZoneOf = (id: string, at: readonly string[]): number =>
    at.filter((x) => zones.get(x) === zones.get(id)).length;
  /** It would give its copy up, as copy-policy.ts has it, if `to` got one. */
  const gives = (from: string, { at, owner }: Placed, to: string): boolean =>
    at.every((id) => id === from || id === owner || of(id) <= of(from)) &&
    of(owner ?? from) <= of(from) &&
    !at.includes(to) &&
    inZoneOf(
      to,
      at.filter((id) => id !== from),
    ) < inZoneOf(from, at);
  const done = new Set<Placed>();
  const next = (): Required<PlannedMove> | undefined => {
    const sparse = open.filter((id) => of(id) < 0).sort((a, b) => of(a) - of(b) || (a < b ? -1 : 1));
    const crowded = [...backups.keys()].filter((id) => of(id) > 0).sort((a, b) => of(b) - of(a) || (a < b ? -1 : 1));
    for (const to of sparse) {
      for (const from of crowded) {
        const one = backups.get(from)?.find((p) => !done.has(p) && gives(from, p, to));
        if (one?.owner === undefined) continue;
        done.add(one);
        return { shard: one.shard, from: one.owner, to, gives: from };
      }
    }
    return undefined;
  };
  const planned: PlannedMove[] = [];
  for (let move = next(); move !== undefined; move = next()) {
    crowd.set(move.to, of(move.to) + 1);
    crowd.set(move.gives, of(move.gives) - 1);
    planned.push(move);
    if (planned.length >= most) break;
  }
  return planned;
}

/** Of the leader: `members` are there and may get shards. */
export function planCopiesIn(state: MetadataState, members: readonly Member[]): PlannedMove[] {
  const ids = members.map(({ id }) => id);
  const placed = state.shards.flatMap(({ shard, owner }): Placed[] => {
    const copies = state.copySets?.[shard]?.copies ?? [];
    const { level, replicas } = policyOf(state, shard);
    if (level === 'cache') return [];
    const at = copies.map(({ member }) => member);
    const isWhole =
      at.length === replicas &&
      copies.every((copy) => copy.state === 'in-sync' && ids.includes(copy.member)) &&
      !state.moves.some((move) => move.shard === shard);
    return [{ shard, owner, wanted: replicas, at, isWhole }];
  });
  const keepers = keepersOf(state).map((m) => ({ id: m.id, memoryBytes: m.memoryBytes, zone: zoneOf(m) }));
  return planCopies(placed, keepers, ids);
}
