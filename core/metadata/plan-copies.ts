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

export interface Placed {
  readonly shard: number;
  readonly owner: string | undefined;
  readonly wanted: number;
  /** Servers with a copy, whatever its state; first who gives its copy up first where nothing else tells them apart. */
  readonly at: readonly string[];
  /** It is kept by several servers: as many as wanted, all in sync; and it is not moving. */
  readonly isWhole: boolean;
}

/** More are planned when these are made. */
const PLANNED_MAX = 64;

/** How many copies each server has above its part, of all shards: as copy-policy.ts counts, which decides who gives up. */
function crowds(placed: readonly Placed[], keepers: readonly Keeper[]): Map<string, number> {
  const wanted = placed.reduce((sum, one) => sum + one.wanted, 0);
  const crowd = new Map([...parts(wanted, keepers)].map(([id, part]) => [id, -Math.ceil(part - 1e-6)]));
  for (const id of placed.flatMap(({ at }) => at)) crowd.set(id, (crowd.get(id) ?? 0) + 1);
  return crowd;
}

/**
 * Each shard once. `placed`: all of the cluster. `keepers`: all that keep values; `open`: of these, the ids of those that
 * may get shards. Copies stay apart as they are: who shares a zone with another gives its copy up first.
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
  const kept = new Map(keepers.map(({ id }): [string, Placed[]] => [id, []]));
  const whole = placed.filter(({ isWhole }) => isWhole);
  for (const one of whole) for (const id of one.at.filter((x) => x !== one.owner)) kept.get(id)?.push(one);
  // An owner gives its copy up only where none is left of others'.
  for (const one of whole) kept.get(one.owner ?? '')?.push(one);

  /** It gives its copy up, as copy-policy.ts has it, if `to` gets one and is the owner. */
  const gives = (from: string, { at }: Placed, to: string): boolean => {
    const together = (id: string): number => [...at, to].filter((x) => zones.get(x) === zones.get(id)).length;
    const before = (a: string, b: string): number => together(b) - together(a) || of(b) - of(a);
    return !at.includes(to) && [...at].sort(before)[0] === from;
  };
  const done = new Set<Placed>();
  /** `from` owns the shard and gives it away with its copy: it has another back, of which it has a copy, from `to`. */
  const back = (one: Placed, from: string, to: string): Placed | undefined =>
    kept.get(from)?.find((p) => p !== one && p.owner === to && !done.has(p));
  const next = (): Required<PlannedMove> | undefined => {
    const sparse = open.filter((id) => of(id) < 0).sort((a, b) => of(a) - of(b) || (a < b ? -1 : 1));
    const crowded = [...kept.keys()].filter((id) => of(id) > 0).sort((a, b) => of(b) - of(a) || (a < b ? -1 : 1));
    for (const to of sparse) {
      for (const from of crowded) {
        for (const one of kept.get(from) ?? []) {
          if (one.owner === undefined || done.has(one) || !gives(from, one, to)) continue;
          const other = one.owner === from ? back(one, from, to) : one;
          if (other === undefined) continue;
          done.add(one).add(other);
          return { shard: one.shard, from: one.owner, to, gives: from };
        }
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
  const placed = state.shards.map(({ shard, owner }): Placed => {
    const copies = state.copySets?.[shard]?.copies ?? [];
    const { level, replicas } = policyOf(state, shard);
    const at = [...copies].sort((a, b) => b.rank - a.rank).map(({ member }) => member);
    const isWhole =
      level !== 'cache' &&
      at.length === replicas &&
      copies.every((copy) => copy.state === 'in-sync' && ids.includes(copy.member)) &&
      !state.moves.some((move) => move.shard === shard);
    return { shard, owner, wanted: replicas, at, isWhole };
  });
  const keepers = keepersOf(state).map((m) => ({ id: m.id, memoryBytes: m.memoryBytes, zone: zoneOf(m) }));
  return planCopies(placed, keepers, ids);
}
