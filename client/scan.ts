/**
 * Scans: all keys of a namespace, shard after shard, page after page, in no order that means anything.
 *
 * A key that is present from the first page to the last comes at least once, also while the table grows; one that is
 * put or deleted meanwhile may come or not; one may come twice. A cursor is text that can be kept and given to any
 * client of the same cluster.
 */
import { types } from 'node:util';
import { markAsUntransferable } from 'node:worker_threads';
import type { ShardRange } from '../core/metadata/tenants.js';
import { argumentError, FarkvError } from './errors.js';
import type { Completion } from './completion.js';
import type { Limits, Operations } from './operations.js';
import { PendingScan, PendingTally, type StepOfShard } from './pending.js';
import type { ReadOptions } from './arguments.js';
import { EntryReader, type Entry, resultOf, versionOf } from './value-reader.js';
import { decodeWith, type Codec } from './codec.js';
import { checkText } from './well-formed.js';

export const SCAN_OPTIONS: ReadonlySet<string> = new Set<keyof ScanOptions>([
  'timeoutMs',
  'signal',
  'values',
  'batch',
  'cursor',
  'prefix',
]);

export interface ScanOptions extends ReadOptions {
  /** Also the values; default false: keys only. */
  readonly values?: boolean;
  /** About how many entries a page has; 1 to 4,096, default 256. */
  readonly batch?: number;
  /** Only keys that begin with these bytes, or this text; the owners look. Its pages have the same prefix. */
  readonly prefix?: string | Uint8Array;
  /** Where to go on: a page's cursor. */
  readonly cursor?: string;
}

export interface CountOptions extends ReadOptions {
  /** Only keys that begin with these bytes, or this text. */
  readonly prefix?: string | Uint8Array;
}

export const COUNT_OPTIONS: ReadonlySet<string> = new Set<keyof CountOptions>(['timeoutMs', 'signal', 'prefix']);

export interface ScanKey {
  /** The key's bytes; `String(key)` where keys are text. */
  readonly key: Buffer;
  readonly version: bigint;
  readonly flags: number;
  /** Wall clock, milliseconds; undefined: never. */
  readonly expiresAtMs: number | undefined;
}

export interface ScanEntry<T> extends ScanKey {
  readonly value: T;
}

export interface ScanPage<E> {
  readonly entries: E[];
  /** For the next page; undefined after the last one. */
  readonly cursor: string | undefined;
}

/** An entry as a shard lists it: its value is not decoded. */
export interface StoredEntry extends ScanKey {
  /** 0 unless all namespaces were asked for. */
  readonly namespace: number;
  readonly codec: number;
  readonly valueBytes: number;
  /** undefined: the value was not asked for, or did not fit in the reply. */
  readonly bytes: Buffer | undefined;
}

/** FKV_KEY_MAX of native/table/layout.h. */
export const KEY_MAX = 1024;
/** Bytes of a page's large values that are read side by side. */
const READ_MAX = 8 << 20;
/** Bytes of native/wire/wire.h fkv_scan_entry. */
const HEADER = 32;

function parseEntries(body: Buffer): StoredEntry[] {
  const entries: StoredEntry[] = [];
  let at = 0;
  // A page that did not fit in a slab has memory of its own, of which all its values are parts (value-memory.ts).
  markAsUntransferable(body.buffer);
  const need = (bytes: number): void => {
    if (bytes > body.length - at) throw new FarkvError('ERR_PROTOCOL', 'a scan reply ends within an entry');
  };
  while (at < body.length) {
    need(HEADER);
    const expiry = Number(body.readBigUInt64LE(at + 8));
    const valueBytes = body.readUInt32LE(at + 16);
    const keyBytes = body.readUInt16LE(at + 24);
    const hasValue = body[at + 27] === 1;
    const head = {
      version: body.readBigUInt64LE(at),
      expiresAtMs: expiry === 0 ? undefined : expiry,
      flags: body.readUInt32LE(at + 20),
      codec: body[at + 26] ?? 0,
      namespace: body.readUInt16LE(at + 28),
      valueBytes,
    };
    at += HEADER;
    need(keyBytes + (hasValue ? valueBytes : 0));
    const key = body.subarray(at, at + keyBytes);
    at += keyBytes;
    const bytes = hasValue ? body.subarray(at, at + valueBytes) : undefined;
    if (hasValue) at += valueBytes;
    entries.push({ key, ...head, bytes });
  }
  return entries;
}

/** A step's entries and the shard's next cursor, 0n at its end. A reply without entries has no body. */
export interface ScanStep {
  readonly entries: StoredEntry[];
  readonly next: bigint;
}

function parseStep(completion: Completion): ScanStep {
  const next = versionOf(completion.words, completion.at);
  const body = completion.value(true);
  return { entries: body === undefined ? [] : parseEntries(body), next };
}

function parseTally({ words, at }: Completion): { readonly counted: number; readonly next: bigint } {
  return { counted: Number(resultOf(words, at)), next: versionOf(words, at) };
}

/** In their order; the values of a group that are still to be read have READ_MAX bytes, or there is one of them. */
function* inGroups(entries: readonly StoredEntry[]): Generator<readonly StoredEntry[]> {
  let from = 0;
  let bytes = 0;
  for (const [i, entry] of entries.entries()) {
    const left = entry.bytes === undefined ? entry.valueBytes : 0;
    if (bytes > 0 && bytes + left > READ_MAX) {
      yield entries.slice(from, i);
      from = i;
      bytes = 0;
    }
    bytes += left;
  }
  if (from < entries.length) yield entries.slice(from);
}

/** shard.cursor, the cursor in hexadecimal. */
function parseCursor(text: unknown, { first, count }: ShardRange): { readonly shard: number; readonly cursor: bigint } {
  if (text === undefined) return { shard: first, cursor: 0n };
  const match = typeof text === 'string' ? /^(\d{1,4})\.([0-9a-f]{1,16})$/.exec(text) : null;
  const shard = Number(match?.[1] ?? Number.NaN);
  if (match === null || !(shard >= first && shard < first + count))
    throw argumentError('cursor is one that a page of a scan of this cluster gave');
  return { shard, cursor: BigInt(`0x${match[2] ?? '0'}`) };
}

function checkBatch(batch: unknown): number {
  if (batch === undefined) return 256;
  if (typeof batch !== 'number' || !Number.isInteger(batch) || batch < 1 || batch > 4096)
    throw argumentError('batch is an integer from 1 to 4096');
  return batch;
}

/** Undefined: every key. A copy, since the caller may write over its own. */
function prefixOf(prefix: unknown): Buffer | undefined {
  if (prefix === undefined) return undefined;
  if (typeof prefix !== 'string' && !types.isUint8Array(prefix))
    throw argumentError('prefix is a text or a Uint8Array');
  if (typeof prefix === 'string') checkText(prefix, 'the prefix');
  const bytes = Buffer.from(prefix as Uint8Array);
  if (bytes.length > KEY_MAX) throw argumentError(`prefix has at most ${KEY_MAX} bytes`);
  return bytes.length === 0 ? undefined : bytes;
}

/** Which entries of a shard. */
export interface ScanOfShard extends StepOfShard {
  /** A namespace, or EVERY_NAMESPACE. */
  readonly space: number;
  /** About how many. */
  readonly batch: number;
  /** Also the values, where they fit in the reply. */
  readonly values: boolean;
}

export class Scanner {
  readonly #operations: Operations;
  readonly #shards: ShardRange;

  constructor(operations: Operations, shards: ShardRange) {
    this.#operations = operations;
    this.#shards = shards;
  }

  /** One round trip to one shard. */
  step(scan: ScanOfShard, limits: Limits): Promise<ScanStep> {
    return this.#operations.submit(new PendingScan(scan.space, scan, scan.batch, scan.values, parseStep), limits);
  }

  /** How many keys: the owners count them, some thousands in each round trip. */
  async count(space: number, options: CountOptions, limits: Limits): Promise<number> {
    const prefix = prefixOf(options.prefix);
    const { first, count } = this.#shards;
    let counted = 0;
    for (let shard = first; shard < first + count; shard++) {
      let cursor = 0n;
      do {
        const walk = new PendingTally(space, { shard, cursor, prefix }, parseTally);
        const step = await this.#operations.submit(walk, limits);
        counted += step.counted;
        cursor = step.next;
      } while (cursor !== 0n);
    }
    return counted;
  }

  async keys(space: number, options: ScanOptions, limits: Limits): Promise<ScanPage<ScanKey>> {
    const { entries, cursor } = await this.#page(space, options, false, limits);
    return {
      entries: entries.map(({ key, version, flags, expiresAtMs }) => ({ key, version, flags, expiresAtMs })),
      cursor,
    };
  }

  async entries<Out>(
    space: number,
    options: ScanOptions,
    codec: Codec<never, Out>,
    limits: Limits,
  ): Promise<ScanPage<ScanEntry<Out>>> {
    const page = await this.#page(space, options, true, limits);
    const { turn } = this.#operations;
    const entries: ScanEntry<Out>[] = [];
    // Each read has the whole time-out: all at once, the values of a page would share a network until it is over.
    for (const group of inGroups(page.entries)) {
      const whole = await Promise.all(group.map((raw) => this.#whole(space, raw, codec, limits)));
      for (const entry of whole) if (entry !== undefined) entries.push(entry);
      if (turn.over) await turn.next();
    }
    return { entries, cursor: page.cursor };
  }

  async #page(
    space: number,
    options: ScanOptions,
    withValues: boolean,
    limits: Limits,
  ): Promise<ScanPage<StoredEntry>> {
    const batch = checkBatch(options.batch);
    const prefix = prefixOf(options.prefix);
    let { shard, cursor } = parseCursor(options.cursor, this.#shards);
    const end = this.#shards.first + this.#shards.count;
    const entries: StoredEntry[] = [];
    // Several steps where shards hold little: a page of a few entries would cost a round trip each.
    while (shard < end && entries.length < batch) {
      const wanted = { batch: batch - entries.length, values: withValues, prefix };
      const step = await this.step({ shard, cursor, space, ...wanted }, limits);
      for (const entry of step.entries) entries.push(entry);
      cursor = step.next;
      if (cursor === 0n) shard++;
    }
    return { entries, cursor: shard < end ? `${shard}.${cursor.toString(16)}` : undefined };
  }

  /** A value that did not fit in the reply is read by itself; undefined: it was deleted meanwhile. */
  async #whole<Out>(
    space: number,
    raw: StoredEntry,
    codec: Codec<never, Out>,
    limits: Limits,
  ): Promise<ScanEntry<Out> | undefined> {
    const { key, version, flags, expiresAtMs, bytes } = raw;
    if (bytes !== undefined) return { key, version, flags, expiresAtMs, value: decodeWith(codec, bytes, raw.codec) };
    const entry: Entry<Out> | undefined = await this.#operations.read(space, key, new EntryReader(codec), limits);
    // All of one write: an entry without an end does not name it.
    return entry === undefined ? undefined : { key, ...entry, expiresAtMs: entry.expiresAtMs };
  }
}
