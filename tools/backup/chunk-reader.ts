/**
 * Reads one file of a backup, chunk by chunk. Nothing of a chunk is handed out before its CRC was found right. Damage
 * is a value with the place where it was found. After a damaged chunk whose length can be believed the next one is
 * read, so that one pass names all of them; at the end the file's own count must fit what was read.
 */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileReason, openRegularFile } from '../../net/regular-file.js';
import type { EntryRecord } from '../transfer/entry.js';
import {
  addToSum,
  CHUNK_BYTES_MAX,
  CHUNK_HEAD_BYTES,
  chunkCrc,
  FOOT_BYTES,
  HEAD_BYTES,
  isFoot,
  makeHead,
  parseEntries,
  readChunkHead,
  readFoot,
  seedOf,
  type Place,
} from './format.js';

export interface Damage {
  readonly kind: 'damage';
  readonly file: string;
  readonly offset: number;
  readonly what: string;
}

export interface Chunk {
  readonly kind: 'chunk';
  readonly offset: number;
  readonly bytes: number;
  readonly entries: readonly EntryRecord[];
}

/** The last part of a file without damage. */
export interface End {
  readonly kind: 'end';
  readonly chunks: number;
  readonly entries: number;
  readonly bytes: number;
  readonly sha256: string;
}

const hex = (crc: number): string => crc.toString(16).padStart(8, '0');

export function damageText({ file, offset, what }: Damage): string {
  return `${file}: offset ${offset}: ${what}`;
}

export async function* readChunks(path: string, place: Place): AsyncGenerator<Chunk | Damage | End, void, undefined> {
  let file: FileHandle;
  try {
    file = await openRegularFile(path);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const what = isMissing ? 'the file is missing' : `the file cannot be read: ${fileReason(error)}`;
    yield { kind: 'damage', file: basename(path), offset: 0, what };
    return;
  }
  try {
    yield* new Reader(file, basename(path)).parts(place);
  } finally {
    await file.close();
  }
}

class Reader {
  readonly #file: FileHandle;
  readonly #name: string;
  readonly #hash = createHash('sha256');
  #at = 0;

  constructor(file: FileHandle, name: string) {
    this.#file = file;
    this.#name = name;
  }

  async *parts(place: Place): AsyncGenerator<Chunk | Damage | End, void, undefined> {
    const wanted = makeHead(place);
    const head = await this.#take(HEAD_BYTES);
    if (!head.equals(wanted)) {
      yield this.#damage(
        0,
        head.length < HEAD_BYTES
          ? `the file is cut off: ${head.length} bytes of its head are left`
          : `its head is not that of shard ${place.shard} of this backup`,
      );
      return;
    }
    const seed = seedOf(head);
    const { size } = await this.#file.stat();
    let chunks = 0;
    let entries = 0;
    let sum = 0;
    let whole = true;
    for (;;) {
      const offset = this.#at;
      const start = await this.#take(CHUNK_HEAD_BYTES);
      if (isFoot(start)) {
        const foot = readFoot(seed, Buffer.concat([start, await this.#take(FOOT_BYTES - CHUNK_HEAD_BYTES)]));
        if (foot === undefined) yield this.#damage(offset, 'the foot is damaged, or cut off');
        else if (this.#at !== size) yield this.#damage(this.#at, `${size - this.#at} bytes follow the foot`);
        else if (whole && (foot.chunks !== chunks || foot.entries !== entries || foot.sum !== sum))
          yield this.#damage(
            offset,
            `the foot counts ${foot.chunks} chunks with ${foot.entries} entries, read were ${chunks} with ${entries}`,
          );
        else if (whole) yield { kind: 'end', chunks, entries, bytes: this.#at, sha256: this.#hash.digest('hex') };
        return;
      }
      const chunk = start.length < CHUNK_HEAD_BYTES ? undefined : readChunkHead(start);
      if (chunk === undefined || chunk.bytes > CHUNK_BYTES_MAX || chunk.bytes > size - this.#at) {
        yield this.#damage(offset, this.#noChunk(start, chunk?.bytes, size, chunks));
        return;
      }
      const body = await this.#take(chunk.bytes);
      const crc = chunkCrc(seed, start, [body]);
      const parsed =
        // mutation: backup/chunk-crc
        crc === chunk.crc && chunk.number === chunks && chunk.entries > 0
          ? parseEntries(body, chunk.entries)
          : undefined;
      if (parsed === undefined) {
        whole = false;
        yield this.#damage(
          offset,
          crc === chunk.crc
            ? `chunk ${chunks}: it has number ${chunk.number}, or no whole entries`
            : `chunk ${chunks} (${chunk.bytes} bytes): its CRC32C is ${hex(crc)}, ${hex(chunk.crc)} was written`,
        );
      } else {
        entries += parsed.length;
        sum = addToSum(sum, crc);
        yield { kind: 'chunk', offset, bytes: CHUNK_HEAD_BYTES + body.length, entries: parsed };
      }
      chunks++;
    }
  }

  #noChunk(start: Buffer, bytes: number | undefined, size: number, chunks: number): string {
    if (start.length === 0) return `the file is cut off: ${chunks} chunks and no foot`;
    if (start.length < CHUNK_HEAD_BYTES) return `the file is cut off in the head of chunk ${chunks}`;
    if (bytes === undefined) return `neither chunk ${chunks} nor the foot begins here; the rest cannot be read`;
    if (bytes > CHUNK_BYTES_MAX) return `chunk ${chunks} says it has ${bytes} bytes; the rest cannot be read`;
    return `the file is cut off in chunk ${chunks}: ${size - this.#at} of ${bytes} bytes are left`;
  }

  #damage(offset: number, what: string): Damage {
    return { kind: 'damage', file: this.#name, offset, what };
  }

  /** The next bytes; fewer at the end of the file. */
  async #take(bytes: number): Promise<Buffer> {
    const target = Buffer.allocUnsafe(bytes);
    let filled = 0;
    while (filled < bytes) {
      const { bytesRead } = await this.#file.read(target, filled, bytes - filled, this.#at + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    this.#at += filled;
    const taken = target.subarray(0, filled);
    this.#hash.update(taken);
    return taken;
  }
}
