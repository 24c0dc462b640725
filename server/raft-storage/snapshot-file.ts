/**
 * Snapshot files: `snapshot-<index>`, written under another name, synced, renamed, and the directory synced. A file
 * with the final name is therefore whole, or damaged later.
 *
 *   "FKVSNAP\0" | format u32 | crc32c u32, of all that follows | index u64 | term u64 | config bytes u32 | config |
 *   data
 */
import { decodeConfiguration, encodeConfiguration, type Snapshot } from '../../core/raft/index.js';
import { readU64, viewOf, writeU64, type Checksum } from './checksum.js';
import { Damage, NewerFormat } from './damage.js';
import { needingRoom, NoRoom, type Disk } from './disk.js';

const MAGIC = new TextEncoder().encode('FKVSNAP\0');
const FORMAT = 1;
const FIXED = 36;
const NAME = /^snapshot-(\d{16})$/;
const UNFINISHED = /^snapshot-\d{16}\.new$/;

function nameOf(index: number): string {
  return `snapshot-${index.toString().padStart(16, '0')}`;
}

/** Durable when it returns; on an error there is no file of the final name. */
export function writeSnapshot(disk: Disk, snapshot: Snapshot, checksum: Checksum): void {
  const { meta, data } = snapshot;
  const config = encodeConfiguration(meta.config);
  const bytes = new Uint8Array(FIXED + config.length + data.length);
  const view = viewOf(bytes);
  bytes.set(MAGIC, 0);
  view.setUint32(8, FORMAT, true);
  writeU64(view, 16, meta.index);
  writeU64(view, 24, meta.term);
  view.setUint32(32, config.length, true);
  bytes.set(config, FIXED);
  bytes.set(data, FIXED + config.length);
  view.setUint32(12, checksum(bytes.subarray(16)), true);

  const name = nameOf(meta.index);
  const file = needingRoom(() => disk.create(`${name}.new`));
  try {
    needingRoom(() => file.write(bytes, 0));
  } catch (error) {
    file.close();
    if (error instanceof NoRoom) disk.remove(`${name}.new`);
    throw error;
  }
  file.datasync(); // mutation: storage/snapshot-unsynced
  file.close();
  disk.rename(`${name}.new`, name);
  disk.syncNames();
}

function decode(bytes: Uint8Array, checksum: Checksum): Snapshot | undefined {
  const view = viewOf(bytes);
  if (bytes.length < FIXED || !MAGIC.every((byte, i) => bytes[i] === byte)) return undefined;
  const format = view.getUint32(8, true);
  if (format > FORMAT) throw new NewerFormat(`its snapshot has format ${format}, this version knows ${FORMAT}`);
  if (checksum(bytes.subarray(16)) !== view.getUint32(12, true)) return undefined;
  const start = FIXED + view.getUint32(32, true);
  const config = start <= bytes.length ? decodeConfiguration(bytes.subarray(FIXED, start)) : undefined;
  if (config === undefined) return undefined;
  return { meta: { index: readU64(view, 16), term: readU64(view, 24), config }, data: bytes.slice(start) };
}

/**
 * The newest snapshot. Throws Damage when it cannot be read: an older one would be a step back behind what was
 * acknowledged.
 */
export function readNewestSnapshot(disk: Disk, checksum: Checksum): Snapshot | undefined {
  const newest = disk
    .names()
    .filter((name) => NAME.test(name))
    .sort()
    .at(-1);
  if (newest === undefined) return undefined;
  const snapshot = decode(disk.read(newest) ?? new Uint8Array(0), checksum);
  if (snapshot === undefined || nameOf(snapshot.meta.index) !== newest)
    throw new Damage(`${newest} does not have the contents that it was written with`);
  return snapshot;
}

/** Removes snapshots older than `index`, and what a crash left unfinished. */
export function removeOlderSnapshots(disk: Disk, index: number): void {
  for (const name of disk.names()) {
    const found = NAME.exec(name);
    if (UNFINISHED.test(name) || (found !== null && Number(found[1]) < index)) disk.remove(name);
  }
}
