/**
 * The files of durable values (docs/log.md, docs/snapshots.md) for tests that damage them: where batches and chunks lie,
 * and bits that flip. Reads the few fields that it needs, and believes them.
 */
import { closeSync, openSync, readdirSync, readSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32c } from './crc32c.js';

const BLOCK = 4096;
const FOOT = 0;

/** Bytes of a file, from `offset` on. */
export interface Part {
  readonly offset: number;
  readonly bytes: number;
}
export interface SnapshotParts {
  readonly chunks: readonly Part[];
  readonly foot: Part;
}

function read(path: string, offset: number, bytes: number): Buffer {
  const to = Buffer.alloc(bytes);
  const file = openSync(path, 'r');
  readSync(file, to, 0, bytes, offset);
  closeSync(file);
  return to;
}

function write(path: string, offset: number, bytes: Uint8Array): void {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, offset);
  closeSync(file);
}

/** Done twice, the file is as it was. */
export function flipBit(path: string, offset: number): void {
  const byte = read(path, offset, 1);
  byte[0] = (byte[0] ?? 0) ^ 0x10;
  write(path, offset, byte);
}

/** Of the head of a log's file, as a later version would write it; undone with the format that was. */
export function setFormat(path: string, format: number): void {
  const block = read(path, 0, BLOCK);
  block.writeUInt32LE(format, 8);
  block.writeUInt32LE(0, 12);
  block.writeUInt32LE(crc32c(block), 12);
  write(path, 0, block);
}

const valuesOf = (dataDir: string): string => join(dataDir, 'values');
const wholeBlocks = (bytes: number): number => Math.ceil(bytes / BLOCK) * BLOCK;

/** Paths of the files of thread 0's log, the oldest first. */
export function logFiles(dataDir: string): string[] {
  return readdirSync(valuesOf(dataDir))
    .flatMap((name) => /^0-(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b)
    .map((number) => join(valuesOf(dataDir), `0-${number}`));
}

export function snapshotFiles(dataDir: string): string[] {
  return readdirSync(valuesOf(dataDir))
    .filter((name) => /^snapshot-\d+-[0-9a-f]+$/.test(name))
    .sort()
    .map((name) => join(valuesOf(dataDir), name));
}

/** The batches of the file's present life. */
export function batchesOf(path: string): Part[] {
  const life = read(path, 40, 16);
  const size = statSync(path).size;
  const found: Part[] = [];
  for (let offset = BLOCK; offset < size;) {
    const head = read(path, offset, 64);
    if (!head.subarray(8, 24).equals(life)) break;
    const bytes = wholeBlocks(head.readUInt32LE(32));
    found.push({ offset, bytes });
    offset += bytes;
  }
  return found;
}

export function snapshotParts(path: string): SnapshotParts {
  const chunks: Part[] = [];
  for (let offset = BLOCK; ;) {
    const head = read(path, offset, 32);
    const part = { offset, bytes: wholeBlocks(32 + head.readUInt32LE(24)) };
    if (head.readUInt32LE(16) === FOOT) return { chunks, foot: part };
    chunks.push(part);
    offset += part.bytes;
  }
}
