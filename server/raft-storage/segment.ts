/**
 * One file of the log: `log-<sequence>`, a header and then records (record.ts) up to its end.
 *
 *   header: "FKVRLOG\0" | format u32 | crc32c u32, of what follows | sequence u64 | next index u64
 *
 * `next index` is what the first entry would be if nothing is replaced: with it, a log that lost its first segments is
 * noticed.
 */
import { readU64, viewOf, writeU64, type Checksum } from './checksum.js';
import { Damage, NewerFormat } from './damage.js';
import { needingRoom, type Disk, type DiskFile } from './disk.js';
import { decodeRecord, recordFollows, type LogRecord } from './record.js';

const MAGIC = new TextEncoder().encode('FKVRLOG\0');
const FORMAT = 1;
export const SEGMENT_HEADER = 32;
const NAME = /^log-(\d{16})$/;

export function segmentName(sequence: number): string {
  return `log-${sequence.toString().padStart(16, '0')}`;
}

/** The sequence numbers of the segments in a directory, ascending. */
export function listSegments(disk: Disk): number[] {
  return disk
    .names()
    .flatMap((name) => NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

/** Makes an empty segment, durable when it returns. On an error the file may be left behind. */
export function createSegment(disk: Disk, sequence: number, nextIndex: number, checksum: Checksum): DiskFile {
  const header = new Uint8Array(SEGMENT_HEADER);
  const view = viewOf(header);
  header.set(MAGIC, 0);
  view.setUint32(8, FORMAT, true);
  writeU64(view, 16, sequence);
  writeU64(view, 24, nextIndex);
  view.setUint32(12, checksum(header.subarray(16)), true);
  const file = needingRoom(() => disk.create(segmentName(sequence)));
  try {
    needingRoom(() => file.write(header, 0));
  } catch (error) {
    file.close();
    throw error;
  }
  file.datasync();
  disk.syncNames(); // mutation: storage/segment-name-unsynced
  return file;
}

export interface SegmentContents {
  readonly nextIndex: number;
  readonly records: readonly LogRecord[];
  /** Where the last whole record ends; below `size`, what lies behind was torn by a crash. */
  readonly end: number;
  readonly size: number;
}

/**
 * Reads a segment. `acknowledged`: how many of its bytes were synced for certain. `last`: whether it is the newest, the
 * only one that a crash can have torn. undefined: the newest one's header was torn, so it never held anything. Throws
 * Damage for the rest.
 */
export function readSegment(
  disk: Disk,
  sequence: number,
  acknowledged: number,
  last: boolean,
  checksum: Checksum,
): SegmentContents | undefined {
  const name = segmentName(sequence);
  const bytes = disk.read(name) ?? new Uint8Array(0);
  const view = viewOf(bytes);
  const whole =
    bytes.length >= SEGMENT_HEADER &&
    MAGIC.every((byte, i) => bytes[i] === byte) &&
    checksum(bytes.subarray(16, SEGMENT_HEADER)) === view.getUint32(12, true) &&
    readU64(view, 16) === sequence;
  if (!whole) {
    if (last && acknowledged === 0 && !recordFollows(bytes, 0, sequence, checksum)) return undefined;
    throw new Damage(`the header of ${name} cannot be read`);
  }
  const format = view.getUint32(8, true);
  if (format > FORMAT) throw new NewerFormat(`${name} has format ${format}, this version knows ${FORMAT}`);

  const records: LogRecord[] = [];
  let end = SEGMENT_HEADER;
  for (;;) {
    const next = decodeRecord(bytes, end, sequence, checksum);
    if (next === undefined) break;
    records.push(next.record);
    end = next.end;
  }
  if (end < bytes.length || end < acknowledged) {
    // mutation: storage/damage-as-torn-end
    const torn = last && end >= acknowledged && !recordFollows(bytes, end + 1, sequence, checksum);
    if (!torn) throw new Damage(`${name} cannot be read from byte ${end} on, and what follows was acknowledged`);
  }
  return { nextIndex: readU64(view, 24), records, end, size: bytes.length };
}
