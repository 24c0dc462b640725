/**
 * Which shards are to change owners so that copies are spread over the servers as owners are. A new owner gets a copy
 * before the shard is its, and then one is given up: of those in one zone with most others, that of the server with most
 * copies above its part (copy-policy.ts). So a shard of which such a server has a copy is given to one that has fewer than
 * its part; planRebalance (plan.ts) evens the owners out again by handing shards over to copies that are there, which
 * copies nothing.
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

interface Server {
  readonly id: string;
  readonly zone: string;
  /** How many copies it has above its part, of all shards: as copy-policy.ts counts, which decides who gives up. */
  crowd: number;
}

/** A shard whose placement may be changed. */
interface Offer {
  readonly one: Placed;
  readonly owner: Server;
  /** `together`: how many of them are in its zone. */
  readonly at: readonly { readonly server: Server; readonly together: number }[];
}

function serversOf(placed: readonly Placed[], keepers: readonly ZonedKeeper[]): Map<string, Server> {
  const wanted = placed.reduce((sum, one) => sum + one.wanted, 0);
  const part = parts(wanted, keepers);
  const bound = (id: string): number => Math.ceil((part.get(id) ?? 0) - 1e-6);
  const servers = new Map(keepers.map(({ id, zone }): [string, Server] => [id, { id, zone, crowd: -bound(id) }]));
  for (const { at } of placed)
    for (const id of at) {
      const server = servers.get(id);
      if (server !== undefined) server.crowd += 1;
    }
  return servers;
}

function offersOf(placed: readonly Placed[], servers: ReadonlyMap<string, Server>): Offer[] {
  return placed.flatMap((one): Offer[] => {
    const owner = servers.get(one.owner ?? '');
    const known = one.at.flatMap((id) => servers.get(id) ?? []);
    if (!one.isWhole || owner === undefined || known.length < one.at.length) return [];
    const together = (zone: string): number => known.filter((other) => other.zone === zone).length;
    return [{ one, owner, at: known.map((server) => ({ server, together: together(server.zone) })) }];
  });
}

/**
 * Who gives its copy up, as copy-policy.ts has it, if a server of that zone gets one and is the owner: of those that share
 * a zone with most others the most crowded.
 */
function giverOf({ at, owner }: Offer, zone: string): Server {
  let giver = owner;
  let most = 0;
  for (const { server, together } of at) {
    const sharing = together + (server.zone === zone ? 1 : 0);
    if (sharing < most || (sharing === most && server.crowd <= giver.crowd)) continue;
    giver = server;
    most = sharing;
  }
  return giver;
}

interface Found {
  readonly offer: Offer;
  readonly giver: Server;
  /** What an owner that gives its own copy up has back from the next owner, of which it has a copy. */
  readonly back: Offer | undefined;
}

/** The offers that are left. */
class Offers {
  readonly #offers: readonly Offer[];
  readonly #done = new Set<Offer>();
  /** By owner and another server with a copy. */
  readonly #handed = new Map<string, Offer[]>();

  constructor(offers: readonly Offer[]) {
    this.#offers = offers;
    for (const offer of offers)
      for (const { server } of offer.at) {
        const key = `${offer.owner.id} ${server.id}`;
        this.#handed.set(key, this.#handed.get(key) ?? []);
        this.#handed.get(key)?.push(offer);
      }
  }

  take({ offer, giver, back }: Found, to: Server): PlannedMove {
    this.#done.add(offer);
    if (back !== undefined) this.#done.add(back);
    to.crowd += 1;
    giver.crowd -= 1;
    return { shard: offer.one.shard, from: offer.owner.id, to: to.id, gives: giver.id };
  }

  /** From the most crowded. An owner gives its own copy up only where none is left of others', and has another shard back. */
  bestFor(to: Server): Found | undefined {
    let found: Found | undefined;
    for (const offer of this.#offers) {
      if (this.#done.has(offer) || offer.one.at.includes(to.id)) continue;
      const giver = giverOf(offer, to.zone);
      const better = giver.crowd - (found?.giver.crowd ?? 0);
      const isOwner = giver === offer.owner;
      if (better < 0 || (better === 0 && (found?.back === undefined || isOwner))) continue;
      const back = isOwner ? this.#backFor(giver, to) : undefined;
      if (!isOwner || back !== undefined) found = { offer, giver, back };
    }
    return found;
  }

  /** No server of that zone can get a copy from one that has more than its part. */
  isBarren(zone: string): boolean {
    return !this.#offers.some((offer) => !this.#done.has(offer) && giverOf(offer, zone).crowd > 0);
  }

  #backFor(owner: Server, to: Server): Offer | undefined {
    return this.#handed.get(`${to.id} ${owner.id}`)?.find((offer) => !this.#done.has(offer));
  }
}

/**
 * Each shard once. `placed`: all of the cluster. `keepers`: all that keep values; `open`: of these, the ids of those that
 * may get shards. Copies stay apart as they are: who shares a zone with another gives its copy up first.
 */
export function planCopies(
  placed: readonly Placed[],
  keepers: readonly ZonedKeeper[],
  open: readonly string[],
): PlannedMove[] {
  const servers = serversOf(placed, keepers);
  const offers = new Offers(offersOf(placed, servers));
  const isCrowded = [...servers.values()].some(({ crowd }) => crowd > 0);
  const next = (): PlannedMove | undefined => {
    const sparse = open.flatMap((id) => servers.get(id) ?? []).filter(({ crowd }) => crowd < 0);
    const barren = new Set<string>();
    for (const to of sparse.sort((a, b) => a.crowd - b.crowd || (a.id < b.id ? -1 : 1))) {
      if (barren.has(to.zone)) continue;
      const found = offers.bestFor(to);
      if (found !== undefined) return offers.take(found, to);
      if (offers.isBarren(to.zone)) barren.add(to.zone);
    }
    return undefined;
  };
  const planned: PlannedMove[] = [];
  for (let move = isCrowded ? next() : undefined; move !== undefined; move = next()) {
    planned.push(move);
    if (planned.length >= PLANNED_MAX) break;
  }
  return planned;
}

/** Of the leader: `members` are there and may get shards. */
export function planCopiesIn(state: MetadataState, members: readonly Member[]): PlannedMove[] {
  const ids = members.map(({ id }) => id);
  const placed = state.shards.map(({ shard, owner }): Placed => {
    const copies = state.copySets[shard]?.copies ?? [];
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
