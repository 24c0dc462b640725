/** Writes one file of a backup, chunk by chunk; format.ts draws it. Calls follow each other: each is awaited. */
import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { writing } from '../transfer/write-failure.js';
import type { EntryRecord } from '../transfer/entry.js';
import {
  addToSum,
  CHUNK_BYTES,
  makeChunkHead,
  makeEntryHead,
  makeFoot,
  makeHead,
  seedOf,
  type Place,
} from './format.js';
import type { BackupFile } from './manifest.js';

export class ChunkWriter {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #place: Place;
  readonly #chunkBytes: number;
  readonly #hash = createHash('sha256');
  #seed = 0;
  #parts: Buffer[] = [];
  #partBytes = 0;
  #partEntries = 0;
  #chunks = 0;
  #entries = 0;
  #bytes = 0;
  #sum = 0;

  private constructor(file: FileHandle, path: string, place: Place, chunkBytes: number) {
    this.#file = file;
    this.#path = path;
    this.#place = place;
    this.#chunkBytes = chunkBytes;
  }

  /** The file must not exist. A chunk that has `chunkBytes` is written. */
  static async create(path: string, place: Place, chunkBytes = CHUNK_BYTES): Promise<ChunkWriter> {
    const file = await writing(path, () => open(path, 'wx', 0o600)); // mutation: backup/file-mode
    const writer = new ChunkWriter(file, path, place, chunkBytes);
    const head = makeHead(place);
    writer.#seed = seedOf(head);
    await writer.#write([head]);
    return writer;
  }

  /** The entry's bytes must stay as they are until its chunk is written: `finish` at the latest. */
  async add(entries: readonly EntryRecord[]): Promise<void> {
    for (const entry of entries) {
      const head = makeEntryHead(entry);
      this.#parts.push(head, entry.value);
      this.#partBytes += head.length + entry.value.length;
      this.#partEntries++;
      if (this.#partBytes >= this.#chunkBytes) await this.#chunk();
    }
  }

  /** The file is whole, and on the disk. */
  async finish(): Promise<BackupFile> {
    if (this.#partEntries > 0) await this.#chunk();
    await this.#write([makeFoot(this.#seed, { chunks: this.#chunks, entries: this.#entries, sum: this.#sum })]);
    await writing(this.#path, async () => {
      await this.#file.sync();
      await this.close();
    });
    return {
      name: basename(this.#path),
      tenant: this.#place.tenant,
      shard: this.#place.shard,
      entries: this.#entries,
      chunks: this.#chunks,
      bytes: this.#bytes,
      sha256: this.#hash.digest('hex'),
    };
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #chunk(): Promise<void> {
    const head = makeChunkHead(this.#seed, this.#chunks, this.#partEntries, this.#parts);
    this.#sum = addToSum(this.#sum, head.readUInt32LE(16));
    this.#chunks++;
    this.#entries += this.#partEntries;
    const parts = this.#parts;
    this.#parts = [];
    this.#partBytes = 0;
    this.#partEntries = 0;
    await this.#write([head, ...parts]);
  }

  async #write(parts: readonly Buffer[]): Promise<void> {
    // Large values are not copied together with what stands before them.
    const together = parts.every(({ length }) => length < CHUNK_BYTES) ? [Buffer.concat(parts)] : parts;
    for (const part of together) {
      this.#hash.update(part);
      this.#bytes += part.length;
      await writing(this.#path, async () => {
        for (let at = 0; at < part.length;) at += (await this.#file.write(part, at)).bytesWritten;
      });
    }
  }
}
