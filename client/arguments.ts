/**
 * Checks of what a program passes to the client's methods, before anything is sent. Keys and the sizes of values are
 * checked by the native side, which answers at once.
 */
import { types } from 'node:util';
import { unknownName } from '../core/nearest.js';
import { KEEP_TTL } from '../native/native-client.js';
import { ownSignal } from './abort-watch.js';
import { argumentError } from './errors.js';

export interface ReadOptions {
  /**
   * Milliseconds; 1 to 2^31 - 1. By default the client's. It counts from when the operation is handed over: in a batch
   * for each key by itself. Behind `maxOutstanding` others a call waits, and is not timed while servers answer this
   * client; after timeoutMs without an answer it ends with ERR_TIMEOUT, without effect. Time in which the program holds
   * the event loop for long does not count. To bound a call from its beginning: `signal: AbortSignal.timeout(ms)`.
   */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface WriteOptions extends ReadOptions {
  /** The entry expires so many milliseconds after it was written; at least 1. By default never. */
  readonly ttlMs?: number;
  /** 32 bits of the caller's, stored with the value; see getEntry. */
  readonly flags?: number;
}

export interface NewEntryOptions extends ReadOptions {
  /** Of a new entry; one that is there keeps its own. By default a new one never expires. */
  readonly ttlMs?: number;
}

export interface SwapOptions extends ReadOptions {
  /** The entry expires so many milliseconds after now; null: never. By default it expires when it would have. */
  readonly ttlMs?: number | null;
  /** 32 bits of the caller's; by default 0, for update those that are there. */
  readonly flags?: number;
}

export interface TouchOptions extends ReadOptions {
  /** The entry expires so many milliseconds after now; null, or none: never. */
  readonly ttlMs?: number | null;
}

type OptionNames = ReadonlySet<string>;

export const READ_OPTIONS: OptionNames = new Set<keyof ReadOptions>(['timeoutMs', 'signal']);
export const WRITE_OPTIONS: OptionNames = new Set<keyof WriteOptions>(['timeoutMs', 'signal', 'ttlMs', 'flags']);
export const NEW_ENTRY_OPTIONS: OptionNames = new Set<keyof NewEntryOptions>(['timeoutMs', 'signal', 'ttlMs']);
export const SYNC_OPTIONS: OptionNames = new Set<keyof ReadOptions>(['timeoutMs']);

/** A `ttl` that nobody reads would be an entry that never expires, so what is not known is refused. */
export function checkOptions(options: unknown, known: OptionNames): void {
  if (typeof options !== 'object' || options === null)
    throw argumentError('options are an object, such as { timeoutMs: 500 }');
  for (const name in options) {
    if (!known.has(name)) throw argumentError(unknownName('option', name, known));
  }
}

/** FKV_TTL_MAX of native/wire/wire.h: 2,230 years. */
export const TTL_MAX = 2 ** 46;

export function checkTimeout(value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > 2 ** 31 - 1) {
    throw argumentError('timeoutMs is an integer of milliseconds from 1 to 2147483647');
  }
  return value;
}

export function checkSignal(value: unknown): AbortSignal {
  try {
    return ownSignal(value);
  } catch (cause) {
    throw argumentError('signal is an AbortSignal', cause);
  }
}

export function checkTtl(value: unknown): number {
  if (value === undefined) return 0;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > TTL_MAX) {
    throw argumentError(`ttlMs is an integer of milliseconds from 1 to ${TTL_MAX}`);
  }
  return value;
}

/** Of a change of a present entry: without one, its own stays. */
export function checkTtlOfSwap(value: unknown): number {
  return value === undefined ? KEEP_TTL : value === null ? 0 : checkTtl(value);
}

/** The number that is added. */
export function checkBy(value: unknown): bigint {
  const by = typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof by !== 'bigint' || by !== BigInt.asIntN(64, by))
    throw argumentError('by is an integer: a number to 2^53 - 1, or a bigint of 64 bits with its sign');
  return by;
}

export function checkFlags(value: unknown): number {
  if (value === undefined) return 0;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > 2 ** 32 - 1) {
    throw argumentError('flags is an integer from 0 to 4294967295');
  }
  return value;
}

export function checkFunction(value: unknown): void {
  if (typeof value !== 'function') throw argumentError('update takes a function of the present value');
}

export function checkVersion(value: unknown): bigint {
  if (typeof value !== 'bigint' || value < 0n || value >= 1n << 64n) {
    throw argumentError('the expected version is a bigint, as getEntry gives it; 0n: the key must be absent');
  }
  return value;
}

export function checkNamespace(value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > 65_535) {
    throw argumentError('a namespace is an integer from 0 to 65535');
  }
  return value;
}

export function checkTarget(target: unknown, offset: unknown): void {
  if (!types.isUint8Array(target)) throw argumentError('the target of getInto is a Buffer or Uint8Array');
  if (typeof offset !== 'number' || !Number.isInteger(offset) || offset < 0 || offset > target.length) {
    throw argumentError(`the offset is an integer from 0 to the buffer's length, ${target.length}`);
  }
}

export function checkSpans(spans: unknown, keys: number): void {
  if (!types.isUint32Array(spans) || spans.length < 2 * keys)
    throw argumentError('spans is a Uint32Array of two numbers for each key');
}

export function checkItems(items: unknown): void {
  if (typeof items !== 'object' || items === null || !(Symbol.iterator in items))
    throw argumentError('putMany takes an array, or another iterable, of { key, value }');
}

export function checkKeys(keys: unknown): void {
  if (!Array.isArray(keys)) throw argumentError('keys is an array of texts and Uint8Arrays');
}
