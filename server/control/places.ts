/**
 * Places: who may hold a connection of a port before it has shown who it is. There are two rooms: one for addresses
 * that are known (a client or an operator has shown a token from there, or a server of the cluster has it), one for all
 * others. A room that is full makes place: the source address with the most connections in it loses its oldest one.
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
}

class Room {
  readonly #most: number;
  /** By address, each in the order of arrival. */
  readonly #visitors = new Map<string, Set<Visitor>>();
  size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Those that must go come back. */
  add(visitor: Visitor): Visitor[] {
    const evicted: Visitor[] = [];
    while (this.size >= this.#most) {
      const oldest = this.#oldestOfMost();
      if (oldest === undefined) break;
      this.remove(oldest);
      evicted.push(oldest);
    }
    const same = this.#visitors.get(visitor.source) ?? new Set();
    this.#visitors.set(visitor.source, same.add(visitor));
    this.size += 1;
    return evicted;
  }

  remove(visitor: Visitor): void {
    const same = this.#visitors.get(visitor.source);
    if (same?.delete(visitor) !== true) return;
    this.size -= 1;
    if (same.size === 0) this.#visitors.delete(visitor.source);
  }

  #oldestOfMost(): Visitor | undefined {
    let most: Set<Visitor> | undefined;
    for (const same of this.#visitors.values()) if (same.size > (most?.size ?? 0)) most = same;
    return most?.values().next().value;
  }
}

export class Places {
  readonly #options: PlacesOptions;
  readonly #strangers: Room;
  readonly #known: Room;
  readonly #room = new Map<Visitor, Room>();
  /** Visitors that lost their place to a later one. */
  evicted = 0;

  constructor(options: PlacesOptions) {
    this.#options = options;
    this.#strangers = new Room(options.strangers);
    this.#known = new Room(options.known);
  }

  get taken(): number {
    return this.#room.size;
  }

  /** A connection has come. */
  enter(visitor: Visitor): void {
    const room = this.#options.isKnown(visitor.source) ? this.#known : this.#strangers;
    const evicted = room.add(visitor);
    this.#room.set(visitor, room);
    for (const one of evicted) {
      this.#room.delete(one);
      this.evicted += 1;
      one.evict();
    }
  }

  /** It has shown who it is, or has gone. Again: nothing happens. */
  leave(visitor: Visitor): void {
    this.#room.get(visitor)?.remove(visitor);
    this.#room.delete(visitor);
  }
}
