/**
 * One record of the log: what one Ready adds, whole or not at all. Little-endian:
 *
 *   +------------+------------+------------+------------------------------------------------------------------+
 *   | magic  u32 | bytes  u32 | crc32c u32 | body                                                             |
 *   +------------+------------+------------+------------------------------------------------------------------+
 *     body:  commit u64 | snapshot index u64, term u64 (0, 0: none) | first index u64 | count u32 | entries
 *     entry: term u64 | type u8 | bytes u32 | data
 *
 * The checksum is mixed with the file's sequence number, so that a piece of another segment is not taken for one of
 * this. Entries that begin at or before the end of the log replace it from there on. A snapshot replaces all of the log
 * before it.
 */
import type { Entry, EntryType } from '../../core/raft/index.js';
import { EntryType as Types } from '../../core/raft/index.js';
import { readU64, viewOf, writeU64, type Checksum } from './checksum.js';

export interface LogRecord {
  readonly commit: number;
  /** The log begins behind this one, whose data is in a snapshot file. */
  readonly snapshot: { readonly index: number; readonly term: number } | undefined;
  readonly entries: readonly Entry[];
}

const MAGIC = 0x5252_4b46; // "FKRR"
const FRAME = 12;
const BODY_FIXED = 36;
const ENTRY_FIXED = 13;

/** A buffer that one large record made longer than this is given back with the next record. */
const KEPT_BYTES = 4 * 1024 * 1024;

/** Encodes records into one buffer that grows and is used again. */
export class RecordEncoder {
  #bytes = new Uint8Array(4096);
  #view = viewOf(this.#bytes);

  constructor(private readonly checksum: Checksum) {}

  /** Valid until the next call. */
  encode(record: LogRecord, sequence: number): Uint8Array {
    let size = FRAME + BODY_FIXED;
    for (const entry of record.entries) size += ENTRY_FIXED + entry.data.length;
    if (size > this.#bytes.length || this.#bytes.length > KEPT_BYTES) {
      this.#bytes = new Uint8Array(size > KEPT_BYTES / 2 ? size : 2 * size);
      this.#view = viewOf(this.#bytes);
    }
    const bytes = this.#bytes;
    const view = this.#view;
    view.setUint32(0, MAGIC, true);
    view.setUint32(4, size - FRAME, true);
    writeU64(view, FRAME, record.commit);
    writeU64(view, FRAME + 8, record.snapshot?.index ?? 0);
    writeU64(view, FRAME + 16, record.snapshot?.term ?? 0);
    writeU64(view, FRAME + 24, record.entries[0]?.index ?? 0);
    view.setUint32(FRAME + 32, record.entries.length, true);
    let at = FRAME + BODY_FIXED;
    for (const { term, type, data } of record.entries) {
      writeU64(view, at, term);
      view.setUint8(at + 8, type);
      view.setUint32(at + 9, data.length, true);
      bytes.set(data, at + ENTRY_FIXED);
      at += ENTRY_FIXED + data.length;
    }
    view.setUint32(8, mixed(this.checksum(bytes.subarray(FRAME, size)), sequence), true);
    return bytes.subarray(0, size);
  }
}

function mixed(checksum: number, sequence: number): number {
  return (checksum ^ Math.imul(sequence, 0x9e3779b1)) >>> 0;
}

/**
 * The record that begins at `at`, and where the next one does; undefined when there is no whole record with a right
 * checksum.
 */
export function decodeRecord(
  bytes: Uint8Array,
  at: number,
  sequence: number,
  checksum: Checksum,
): { readonly record: LogRecord; readonly end: number } | undefined {
  if (at + FRAME + BODY_FIXED > bytes.length) return undefined;
  const view = viewOf(bytes);
  const end = at + FRAME + view.getUint32(at + 4, true);
  if (view.getUint32(at, true) !== MAGIC || end < at + FRAME + BODY_FIXED || end > bytes.length) return undefined;
  const body = bytes.subarray(at + FRAME, end);
  // mutation: storage/torn-record
  if (mixed(checksum(body), sequence) !== view.getUint32(at + 8, true)) return undefined;
  const record = decodeBody(body);
  return record === undefined ? undefined : { record, end };
}

function decodeBody(body: Uint8Array): LogRecord | undefined {
  const view = viewOf(body);
  const snapshot = { index: readU64(view, 8), term: readU64(view, 16) };
  const first = readU64(view, 24);
  const count = view.getUint32(32, true);
  const entries: Entry[] = [];
  let at = BODY_FIXED;
  for (let i = 0; i < count; i++) {
    if (at + ENTRY_FIXED > body.length) return undefined;
    const type = view.getUint8(at + 8);
    const size = view.getUint32(at + 9, true);
    const data = body.slice(at + ENTRY_FIXED, at + ENTRY_FIXED + size);
    if (data.length !== size || !isEntryType(type)) return undefined;
    entries.push({ index: first + i, term: readU64(view, at), type, data });
    at += ENTRY_FIXED + size;
  }
  if (at !== body.length) return undefined;
  return { commit: readU64(view, 0), snapshot: snapshot.index === 0 ? undefined : snapshot, entries };
}

function isEntryType(value: number): value is EntryType {
  return value === Types.Normal || value === Types.Config;
}

/**
 * Whether a whole record lies anywhere behind `from`. Each record was on disk before the next was written, so a broken
 * place with a whole record behind it is no torn write.
 */
export function recordFollows(bytes: Uint8Array, from: number, sequence: number, checksum: Checksum): boolean {
  const first = MAGIC & 0xff;
  for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (decodeRecord(bytes, at, sequence, checksum) !== undefined) return true;
  }
  return false;
}
