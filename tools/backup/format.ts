/**
 * The bytes of one file of a backup: the entries of one shard, in chunks. Numbers are little-endian.
 *
 *   head    "FKVBACK1"  u32 tenant  u32 shard  16 bytes: the backup's id  u32 CRC32C of all before it
 *   chunk   "CHNK"  u32 number, from 0  u32 entries  u32 bytes  u32 CRC32C of the head's CRC, these fields, the entries
 *           and so many bytes: whole entries
 *   ...
 *   foot    "FOOT"  u32 chunks  u64 entries  u32 CRC32C of all chunks' CRCs  u32 CRC32C of the head's CRC and these fields
 *
 *   entry   u16 key bytes  u16 namespace  u8 codec  3 bytes 0  u32 flags  u32 value bytes  u64 expiry, 0: never
 *           key  value
 *
 * The CRCs begin with the head's: a chunk of another file, of another backup or of another place is damage. An entry
 * lies in one chunk, so a chunk may be as large as the largest entry; otherwise it ends once it has CHUNK_BYTES.
 *
 * Not for: files (chunk-writer.ts, chunk-reader.ts), and what says that a backup is whole (manifest.ts).
 */
import { addon } from '../../native/addon.js';
import type { EntryRecord } from '../transfer/entry.js';

export const HEAD_BYTES = 36;
export const CHUNK_HEAD_BYTES = 20;
export const FOOT_BYTES = 24;
export const ENTRY_HEAD_BYTES = 24;
/** A chunk that has reached this is written. */
export const CHUNK_BYTES = 256 << 10;

const { keyMax, valueMax } = addon.constants;
/** Of the entries of a chunk. */
export const CHUNK_BYTES_MAX = CHUNK_BYTES + ENTRY_HEAD_BYTES + keyMax + valueMax;
/** Expiry in a table is 48 bits. */
const EXPIRY_MAX = 2 ** 48;

const FILE_MAGIC = 'FKVBACK1';
const CHUNK_MAGIC = 'CHNK';
const FOOT_MAGIC = 'FOOT';

/** Which file of which backup. */
export interface Place {
  /** 16 bytes, hexadecimal. */
  readonly backup: string;
  /** Its place in the manifest's list. */
  readonly tenant: number;
  readonly shard: number;
}

export interface ChunkHead {
  readonly number: number;
  readonly entries: number;
  readonly bytes: number;
  readonly crc: number;
}

export interface Foot {
  readonly chunks: number;
  readonly entries: number;
  /** CRC32C of the chunks' CRCs, in their order. */
  readonly sum: number;
}

export const crc32c = (bytes: Uint8Array, crc = 0): number => addon.crc32c(bytes, crc);

/** The sum of a chunk's CRC and of those before it. */
export function addToSum(sum: number, crc: number): number {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(crc);
  return crc32c(bytes, sum);
}

export function makeHead({ backup, tenant, shard }: Place): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.write(FILE_MAGIC, 'latin1');
  head.writeUInt32LE(tenant, 8);
  head.writeUInt32LE(shard, 12);
  head.write(backup, 16, 'hex');
  head.writeUInt32LE(crc32c(head.subarray(0, HEAD_BYTES - 4)), HEAD_BYTES - 4);
  return head;
}

/** With which the CRCs of a file begin. */
export function seedOf(head: Buffer): number {
  return head.readUInt32LE(HEAD_BYTES - 4);
}

export function makeChunkHead(seed: number, number: number, entries: number, parts: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(CHUNK_HEAD_BYTES);
  head.write(CHUNK_MAGIC, 'latin1');
  head.writeUInt32LE(number, 4);
  head.writeUInt32LE(entries, 8);
  head.writeUInt32LE(
    parts.reduce((sum, { length }) => sum + length, 0),
    12,
  );
  head.writeUInt32LE(chunkCrc(seed, head, parts), 16);
  return head;
}

export function chunkCrc(seed: number, head: Buffer, parts: readonly Buffer[]): number {
  return parts.reduce((crc, part) => crc32c(part, crc), crc32c(head.subarray(0, 16), seed));
}

/** undefined: no chunk begins so. */
export function readChunkHead(head: Buffer): ChunkHead | undefined {
  if (head.toString('latin1', 0, 4) !== CHUNK_MAGIC) return undefined;
  const [number, entries, bytes, crc] = [4, 8, 12, 16].map((at) => head.readUInt32LE(at)) as [
    number,
    number,
    number,
    number,
  ];
  return { number, entries, bytes, crc };
}

export function makeFoot(seed: number, { chunks, entries, sum }: Foot): Buffer {
  const foot = Buffer.alloc(FOOT_BYTES);
  foot.write(FOOT_MAGIC, 'latin1');
  foot.writeUInt32LE(chunks, 4);
  foot.writeBigUInt64LE(BigInt(entries), 8);
  foot.writeUInt32LE(sum, 16);
  foot.writeUInt32LE(crc32c(foot.subarray(0, 20), seed), 20);
  return foot;
}

export function isFoot(bytes: Buffer): boolean {
  return bytes.toString('latin1', 0, 4) === FOOT_MAGIC;
}

/** undefined: it is damaged. */
export function readFoot(seed: number, foot: Buffer): Foot | undefined {
  if (foot.length !== FOOT_BYTES || foot.readUInt32LE(20) !== crc32c(foot.subarray(0, 20), seed)) return undefined;
  return { chunks: foot.readUInt32LE(4), entries: Number(foot.readBigUInt64LE(8)), sum: foot.readUInt32LE(16) };
}

/** The fixed part and the key; the value stands behind it. */
export function makeEntryHead({ namespace, key, value, codec, flags, expiresAtMs = 0 }: EntryRecord): Buffer {
  const head = Buffer.alloc(ENTRY_HEAD_BYTES + key.length);
  head.writeUInt16LE(key.length, 0);
  head.writeUInt16LE(namespace, 2);
  head.writeUInt8(codec, 4);
  head.writeUInt32LE(flags, 8);
  head.writeUInt32LE(value.length, 12);
  head.writeBigUInt64LE(BigInt(expiresAtMs), 16);
  key.copy(head, ENTRY_HEAD_BYTES);
  return head;
}

/** The entries of a chunk; they refer to its bytes. undefined: these are no such entries. */
export function parseEntries(bytes: Buffer, count: number): EntryRecord[] | undefined {
  const entries: EntryRecord[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (entries.length === count || bytes.length - at < ENTRY_HEAD_BYTES) return undefined;
    const keyBytes = bytes.readUInt16LE(at);
    const valueBytes = bytes.readUInt32LE(at + 12);
    const expiry = bytes.readBigUInt64LE(at + 16);
    const keyAt = at + ENTRY_HEAD_BYTES;
    const valueAt = keyAt + keyBytes;
    if (keyBytes === 0 || keyBytes > keyMax || valueBytes > valueMax || expiry > EXPIRY_MAX) return undefined;
    if (bytes.readUIntLE(at + 5, 3) !== 0 || valueBytes > bytes.length - valueAt) return undefined;
    entries.push({
      namespace: bytes.readUInt16LE(at + 2),
      codec: bytes.readUInt8(at + 4),
      flags: bytes.readUInt32LE(at + 8),
      expiresAtMs: expiry === 0n ? undefined : Number(expiry),
      key: bytes.subarray(keyAt, valueAt),
      value: bytes.subarray(valueAt, valueAt + valueBytes),
    });
    at = valueAt + valueBytes;
  }
  return entries.length === count ? entries : undefined;
}
