/**
 * Places: who may hold a connection of a port before it has shown who it is. There are two rooms: one for addresses
 * that are known (a client or an operator has shown a token from there, or a server of the cluster has it), one for all
 * others. A room that is full makes place. The first of these that there is loses its place:
 *
 *   1. the connection that has let this server wait for longest, if for more than `waitMs`: who comes in good faith sends
 *      at once what comes next
 *   2. of a source address with more than a SHARE of the room, and more than any other, the oldest connection
 *   3. the connection that has sent nothing new for longest
 *
 * Where a place is for longer than a login, as at the HTTP port, there is no `waitMs`: then the address with the most
 * connections loses its oldest.
 *
 * Without the first rule, connections of many addresses that send nothing would hold the room against clients that share
 * an address, since these are the most of one address; without the second, one address could have all of it.
 *
 * Invariants:
 *   - At most `strangers` and `known` connections are without a login at any time.
 *   - Connections from addresses that are not known never cost one from a known address its place.
 *   - A newcomer always has a place: a room full of silent connections keeps nobody out.
 */
export interface Visitor {
  /** Its address as sourceOf() gives it. */
  readonly source: string;
  /** It has lost its place: it is closed. */
  readonly evict: () => void;
}

export interface PlacesOptions {
  readonly strangers: number;
  readonly known: number;
  readonly isKnown: (source: string) => boolean;
  /** How long the next step of a connection may take in a room that is full. Undefined: places are not for a login. */
  readonly waitMs?: number;
  readonly now?: () => number;
}

/** A part of a room that one address has undisturbed: 64 of 1,024. */
const SHARE = 16;

class Room {
  readonly #most: number;
  readonly #waitMs: number | undefined;
  /** By address, each in the order of arrival. */
  readonly #visitors = new Map<string, Set<Visitor>>();
  /** All, in the order in which something came from them last. */
  readonly #heard = new Set<Visitor>();
  /** Those whose next step is their own, in the same order, with since when it is. */
  readonly #waitedFor = new Map<Visitor, number>();
  size = 0;

  constructor(most: number, waitMs: number | undefined) {
    this.#most = most;
    this.#waitMs = waitMs;
  }

  /** Those that must go come back. */
  add(visitor: Visitor, now: number): Visitor[] {
    const evicted: Visitor[] = [];
    while (this.size >= this.#most) {
      const one = this.#late(now) ?? this.#oldestOfMost() ?? first(this.#heard);
      if (one === undefined) break;
      this.remove(one);
      evicted.push(one);
    }
    const same = this.#visitors.get(visitor.source) ?? new Set();
    this.#visitors.set(visitor.source, same.add(visitor));
    this.size += 1;
    this.heard(visitor, now);
    return evicted;
  }

  /** `since`: from then on its next step is its own; undefined: that of this server. */
  heard(visitor: Visitor, since: number | undefined): void {
    if (this.#visitors.get(visitor.source)?.has(visitor) !== true) return;
    this.#heard.delete(visitor);
    this.#heard.add(visitor);
    this.#waitedFor.delete(visitor);
    if (since !== undefined) this.#waitedFor.set(visitor, since);
  }

  remove(visitor: Visitor): void {
    const same = this.#visitors.get(visitor.source);
    if (same?.delete(visitor) !== true) return;
    this.size -= 1;
    this.#heard.delete(visitor);
    this.#waitedFor.delete(visitor);
    if (same.size === 0) this.#visitors.delete(visitor.source);
  }

  #late(now: number): Visitor | undefined {
    const longest = first(this.#waitedFor.entries());
    return longest !== undefined && now - longest[1] > (this.#waitMs ?? Infinity) ? longest[0] : undefined;
  }

  #oldestOfMost(): Visitor | undefined {
    let most: Set<Visitor> | undefined;
    for (const same of this.#visitors.values()) if (same.size > (most?.size ?? 0)) most = same;
    const share = this.#waitMs === undefined ? 0 : this.#most / SHARE;
    return most === undefined || most.size <= share ? undefined : first(most);
  }
}

function first<T>(all: Iterable<T>): T | undefined {
  for (const one of all) return one;
  return undefined;
}

export class Places {
  readonly #options: PlacesOptions;
  readonly #now: () => number;
  readonly #strangers: Room;
  readonly #known: Room;
  readonly #room = new Map<Visitor, Room>();
  /** Visitors that lost their place to a later one. */
  evicted = 0;

  constructor(options: PlacesOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#strangers = new Room(options.strangers, options.waitMs);
    this.#known = new Room(options.known, options.waitMs);
  }

  get taken(): number {
    return this.#room.size;
  }

  /** A connection has come. */
  enter(visitor: Visitor): void {
    const room = this.#options.isKnown(visitor.source) ? this.#known : this.#strangers;
    const evicted = room.add(visitor, this.#now());
    this.#room.set(visitor, room);
    for (const one of evicted) {
      this.#room.delete(one);
      this.evicted += 1;
      one.evict();
    }
  }

  /** It has sent what was its turn to send. `waits`: it waits for this server now; else the next step is its own too. */
  heard(visitor: Visitor, waits: boolean): void {
    this.#room.get(visitor)?.heard(visitor, waits ? undefined : this.#now());
  }

  /** It has shown who it is, or has gone. Again: nothing happens. */
  leave(visitor: Visitor): void {
    this.#room.get(visitor)?.remove(visitor);
    this.#room.delete(visitor);
  }
}
