/**
 * What putMany and deleteMany change, piece by piece: items are checked and encoded when there is room for them
 * (batch-changes.ts). Plain items cross together; a piece in which some have a time to live or flags, or of a call that
 * a signal may end, goes the way of a put or delete for each, in order.
 */
import { checkItems, checkKeys, type ReadOptions, type WriteOptions } from './arguments.js';
import { Failures } from './batch.js';
import type { Piece, Pieces } from './batch-changes.js';
import { encodeWith, type Codec } from './codec.js';
import { argumentError, type FarkvError } from './errors.js';
import type { Limits } from './operations.js';
import type { Key } from './pending.js';
import type { Turn } from './turn.js';

/** One item of putMany. */
export interface PutItem<In> {
  readonly key: Key;
  readonly value: In;
  readonly ttlMs?: number;
  readonly flags?: number;
}

/** How items are put. */
export interface PutWays<In> {
  readonly codec: Codec<In, unknown>;
  readonly turn: Turn;
  readonly together: (pieces: Pieces) => Promise<void>;
  readonly alone: (key: Key, value: In, options: WriteOptions) => Promise<void>;
}

/** Bytes of values that are encoded for one piece, about. */
const PIECE_BYTES = 4 << 20;
/** So many are encoded between two looks at the clock. */
const STRIDE = 32;

/** Rejects when one failed, after all have ended; an iterable that throws ends the call with what it threw. */
export async function putItems<In>(items: Iterable<PutItem<In>>, limits: Limits, ways: PutWays<In>): Promise<void> {
  checkItems(items);
  const pieces = new PutPieces(items, limits, ways);
  await ways.together(pieces);
  if (pieces.failures.length > 0) throw pieces.failures.error(pieces.items, pieces.taken);
}

class PutPieces<In> implements Pieces {
  readonly failures = new Failures();
  /** All, where they are in an array; else as many as were taken. */
  items = 0;
  readonly #array: readonly PutItem<In>[] | undefined;
  readonly #iterator: Iterator<PutItem<In>> | undefined;
  /** Of an iterable: what was taken out of it and did not go into the last piece. */
  #over: PutItem<In>[] = [];
  #exhausted = false;
  /** The number of the next item. */
  #next = 0;
  readonly #limits: Limits;
  readonly #ways: PutWays<In>;

  constructor(items: Iterable<PutItem<In>>, limits: Limits, ways: PutWays<In>) {
    this.#limits = limits;
    this.#ways = ways;
    // What the caller does to its array later changes nothing.
    if (Array.isArray(items)) this.#array = (items as readonly PutItem<In>[]).slice();
    else this.#iterator = items[Symbol.iterator]();
    this.items = this.#array?.length ?? 0;
  }

  next(most: number): Piece | undefined {
    const items = this.#take(most);
    if (items.length === 0) return undefined;
    const first = this.#next;
    if (this.#limits.signal !== undefined || !this.#arePlain(items)) {
      this.#next += items.length;
      return { keys: [], values: [], places: [], alone: () => this.#alone(items, first) };
    }
    const keys: Key[] = [];
    const values: Uint8Array[] = [];
    const places: number[] = [];
    let bytes = 0;
    let i = 0;
    for (const item of items) {
      try {
        const { key, value } = item;
        const encoded = encodeWith(this.#ways.codec, value);
        values.push(encoded);
        keys.push(key);
        places.push(first + i);
        bytes += encoded.length;
      } catch (error) {
        this.failures.add(first + i, Array.isArray(item) ? asPair(error) : error);
      }
      i++;
      // The first piece is whole: its bytes are the caller's.
      if (first > 0 && (bytes >= PIECE_BYTES || (i % STRIDE === 0 && this.#ways.turn.over))) break;
    }
    this.#next += i;
    if (this.#array === undefined) this.#over = items.slice(i);
    return { keys, values, places };
  }

  /** Of an array all: each that was not put is among the failures. */
  get taken(): number {
    return this.#array?.length ?? this.#next;
  }

  get done(): boolean {
    return this.#array === undefined ? this.#exhausted && this.#over.length === 0 : this.#next >= this.#array.length;
  }

  fail(error: unknown): void {
    // Of an iterable nobody knows how many more there are, but that there may be one.
    if (this.#array === undefined && !this.done) this.items = Math.max(this.items, this.#next + 1);
    this.failures.addAll(this.#next, this.items, error);
    this.#iterator?.return?.();
  }

  #arePlain(items: readonly PutItem<In>[]): boolean {
    try {
      let plain = true;
      // Not `every`, which passes over holes.
      for (const item of items) plain = isPlain(item) && plain;
      return plain;
    } catch (error) {
      this.#iterator?.return?.();
      throw error;
    }
  }

  #take(most: number): PutItem<In>[] {
    if (this.#array !== undefined) return this.#array.slice(this.#next, this.#next + most);
    const items = this.#over.splice(0, most);
    while (items.length < most) {
      const result = this.#iterator?.next();
      this.#exhausted = result === undefined || result.done === true;
      if (result === undefined || result.done === true) break;
      items.push(result.value);
      this.items++;
    }
    return items;
  }

  #alone(items: readonly PutItem<In>[], first: number): Promise<unknown> {
    return each(items, first, this.failures, (item) =>
      this.#ways.alone(item.key, item.value, { ...limitsOf(this.#limits), ...storedOf(item) }),
    );
  }
}

/** As a Map has its entries. */
const asPair = (cause: unknown): FarkvError =>
  argumentError('an item of putMany is { key, value }, and this one is an array', cause);

/** All of them begin at once; what fails is noted under its number, also what throws before it has begun. */
function each<T>(
  items: readonly T[],
  first: number,
  failures: Failures,
  change: (item: T) => Promise<unknown>,
): Promise<unknown> {
  // Not `map`, which passes over holes.
  return Promise.all(
    Array.from(items, async (item, i) => {
      try {
        await change(item);
      } catch (error) {
        failures.add(first + i, error);
      }
    }),
  );
}

/** How keys are deleted. */
export interface DeleteWays {
  /** `found` is called for each that was there. */
  readonly together: (pieces: Pieces, found: () => void) => Promise<void>;
  readonly alone: (key: Key, options: ReadOptions) => Promise<boolean>;
}

/** How many were there. Rejects when one failed, after all have ended. */
export async function deleteKeys(given: readonly Key[], limits: Limits, ways: DeleteWays): Promise<number> {
  checkKeys(given);
  const keys = given.slice();
  let deleted = 0;
  const found = (): void => {
    deleted++;
  };
  const failures = new Failures();
  let next = 0;
  const alone = (from: number, end: number): Promise<unknown> =>
    each(keys.slice(from, end), from, failures, async (key) => {
      if (await ways.alone(key, limitsOf(limits))) found();
    });
  const pieces: Pieces = {
    failures,
    get done() {
      return next >= keys.length;
    },
    next: (most) => {
      if (next >= keys.length) return undefined;
      const from = next;
      next = Math.min(keys.length, from + most);
      const end = next;
      const piece = keys.slice(from, end);
      if (limits.signal !== undefined) return { keys: [], values: [], places: [], alone: () => alone(from, end) };
      return { keys: piece, values: [], places: piece.map((_, i) => from + i) };
    },
    fail: (error) => failures.addAll(next, keys.length, error),
  };
  await ways.together(pieces, found);
  if (failures.length > 0) throw failures.error(keys.length);
  return deleted;
}

/** True if the item has only `key` and `value`. Throws if it is not an object. */
function isPlain(item: unknown): boolean {
  if (typeof item !== 'object' || item === null) throw argumentError('putMany takes objects { key, value }');
  return !('ttlMs' in item && item.ttlMs !== undefined) && !('flags' in item && item.flags !== undefined);
}

/** The options that say so again, for an operation by itself. */
function limitsOf({ timeoutMs, signal }: Limits): ReadOptions {
  return signal === undefined ? { timeoutMs } : { timeoutMs, signal };
}

function storedOf<In>({ ttlMs, flags }: PutItem<In>): Pick<WriteOptions, 'ttlMs' | 'flags'> {
  return { ...(ttlMs === undefined ? {} : { ttlMs }), ...(flags === undefined ? {} : { flags }) };
}
