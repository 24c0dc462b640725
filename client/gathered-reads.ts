/**
 * GETs that the native side will not answer at once, gathered until the microtask in which doorbells are rung, and
 * posted many at a time in one crossing: their keys cross as one text. Each crossing rings a doorbell, so that the
 * owner answers the first ones while the program still asks for the rest; but each doorbell may have to wake the owner,
 * which costs this thread several microseconds: how many GETs one is rung for follows how many are in flight.
 *
 * Not for: keys that are bytes (the caller may change them before they are posted), nor what a signal may end. Over a
 * transport that answers at once nothing is to be gathered, so it begins with GETs that were found pending side by
 * side, and ends with a key that was there already, or when a GET was alone.
 *
 * Invariant: what is gathered has the same namespace and time-out, and no id.
 */
import { CompletionField, PENDING_STATUS, type NativeClient } from '../native/native-client.js';
import { COMPLETION_WORDS } from './completion.js';
import { KeyText } from './key-text.js';
import type { PendingRead } from './pending.js';

const ID: number = CompletionField.Id;
const STATUS: number = CompletionField.Status;

/** A crossing while nothing is known of how many are in flight. */
export const GATHER = 32;
/** In flight, from which on halves are worth a doorbell each. */
const HALVES = 16;
/** As many GETs as are worth a doorbell of their own. */
const WORTHWHILE = 50;
const GATHER_MAX = 64;
/** Equal parts, at least two, so that neither side waits for the whole of the other's work. */
export function crossingOf(inFlight: number): number {
  if (inFlight < HALVES) return GATHER;
  return Math.min(GATHER_MAX, Math.ceil(inFlight / Math.max(2, Math.round(inFlight / WORTHWHILE))));
}

/**
 * Where some keys are answered at once and others are not, so many pending ones are waited for before it is tried
 * again.
 */
const PATIENCE = 1024;

type Read = PendingRead<unknown>;

export interface GatheredSink {
  /** The native side works on it under this id. */
  adopt(operation: Read, id: number): void;
  /** It is to be posted by itself. */
  alone(operation: Read, timeoutMs: number): void;
}

export class GatheredReads {
  /** GETs are to be added. */
  on = false;
  readonly #native: NativeClient;
  readonly #sink: GatheredSink;
  readonly #records = new Uint32Array(GATHER_MAX * COMPLETION_WORDS);
  readonly #text = new KeyText(GATHER_MAX);
  readonly #nothing = Buffer.alloc(0);
  #keys: string[] = [];
  #operations: Read[] = [];
  #space = 0;
  #timeoutMs = 0;
  #patience = 1;
  #crossing = GATHER;

  constructor(native: NativeClient, sink: GatheredSink) {
    this.#native = native;
    this.#sink = sink;
  }

  get length(): number {
    return this.#keys.length;
  }

  /** One more GET was found pending while another one waited for the same doorbell. */
  another(): void {
    if (--this.#patience <= 0) this.on = true;
  }

  add(operation: Read, key: string, timeoutMs: number): void {
    const { length } = this.#keys;
    if (length > 0 && (operation.space !== this.#space || timeoutMs !== this.#timeoutMs)) this.post();
    this.#space = operation.space;
    this.#timeoutMs = timeoutMs;
    this.#operations.push(operation);
    if (this.#keys.push(key) >= this.#crossing) this.post();
  }

  /** So many operations are in flight when all that was gathered has been posted. */
  pace(inFlight: number): void {
    this.#crossing = crossingOf(inFlight);
  }

  /** Posts what is gathered; of what is not worth a crossing of its own the doorbell is still to be rung. */
  post(): void {
    const [keys, operations] = [this.#keys, this.#operations];
    if (keys.length === 0) return;
    this.#keys = [];
    this.#operations = [];
    const [first] = operations;
    if (keys.length === 1 && first !== undefined) {
      this.on = false;
      this.#patience = 1;
      this.#sink.alone(first, this.#timeoutMs);
      return;
    }
    const records = this.#records;
    const text = this.#text.join(keys);
    const pending = this.#native.getMany(
      this.#space,
      keys,
      this.#nothing,
      0,
      records,
      this.#timeoutMs,
      text,
      this.#text.lengths,
      this.#crossing,
    );
    for (const [i, operation] of operations.entries()) {
      const at = i * COMPLETION_WORDS;
      if (records[at + STATUS] === PENDING_STATUS) this.#sink.adopt(operation, records[at + ID] ?? 0);
    }
    if (pending < keys.length) this.#others(operations);
  }

  /** Takes out what is gathered, for ever. */
  clear(): Read[] {
    this.on = false;
    this.#patience = Infinity;
    this.#keys = [];
    return this.#operations.splice(0);
  }

  /** There already, refused, or without room: what a GET by itself makes of it. */
  #others(operations: readonly Read[]): void {
    this.on = false;
    this.#patience = PATIENCE;
    const others = operations.filter((_, i) => this.#records[i * COMPLETION_WORDS + STATUS] !== PENDING_STATUS);
    for (const operation of others) this.#sink.alone(operation, this.#timeoutMs);
  }
}
