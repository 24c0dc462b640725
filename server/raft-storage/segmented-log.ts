/**
 * The log as a row of segment files. Each append is one record, one write and one sync; a new segment is begun when the
 * last is full, and the oldest are removed when a snapshot covers them.
 *
 * Invariant: the newest segment's file ends where its last acknowledged record does. A write that found no room is cut
 * off again.
 */
import { present } from '../../core/raft/invariant.js';
import type { Checksum } from './checksum.js';
import { Damage } from './damage.js';
import { needingRoom, NoRoom, type Disk, type DiskFile } from './disk.js';
import { RecordEncoder, type LogRecord } from './record.js';
import { createSegment, listSegments, readSegment, segmentName, type SegmentContents } from './segment.js';
import type { Acknowledged } from './state-file.js';

interface Segment {
  readonly sequence: number;
  /** The highest index of any entry in it. */
  lastIndex: number;
}

export interface OpenedLog {
  readonly log: SegmentedLog;
  /** The next index of the oldest segment that is used. */
  readonly firstIndex: number;
  readonly records: readonly LogRecord[];
  /** What was repaired, for people; empty when nothing was. */
  readonly repairs: readonly string[];
}

function highestIndex(records: readonly LogRecord[], atLeast: number): number {
  return records.reduce(
    (highest, { snapshot, entries }) => Math.max(highest, snapshot?.index ?? 0, entries.at(-1)?.index ?? 0),
    atLeast,
  );
}

export class SegmentedLog {
  readonly #encoder: RecordEncoder;
  #file: DiskFile;

  private constructor(
    private readonly disk: Disk,
    private readonly checksum: Checksum,
    private readonly segmentBytes: number,
    /** Oldest first; the last is the one that is written. */
    private readonly segments: Segment[],
    file: DiskFile,
  ) {
    this.#encoder = new RecordEncoder(checksum);
    this.#file = file;
  }

  static create(disk: Disk, checksum: Checksum, segmentBytes: number): SegmentedLog {
    return new SegmentedLog(
      disk,
      checksum,
      segmentBytes,
      [{ sequence: 1, lastIndex: 0 }],
      createSegment(disk, 1, 1, checksum),
    );
  }

  /** Reads all segments that are needed behind `snapshotIndex`, and repairs what a crash tore. */
  static open(
    disk: Disk,
    checksum: Checksum,
    segmentBytes: number,
    snapshotIndex: number,
    acknowledged: Acknowledged | undefined,
  ): OpenedLog {
    const sequences = listSegments(disk);
    const newest = sequences.at(-1);
    if (newest === undefined) throw new Damage('it has no log');
    if (acknowledged !== undefined && acknowledged.segment > newest)
      throw new Damage(`${segmentName(acknowledged.segment)} is missing`);
    const repairs: string[] = [];
    const read = (sequence: number): SegmentContents | undefined =>
      readSegment(
        disk,
        sequence,
        acknowledged?.segment === sequence ? acknowledged.bytes : 0,
        sequence === newest,
        checksum,
      );

    const segments: Segment[] = [];
    let kept: SegmentContents[] = [];
    for (const sequence of sequences.reverse()) {
      const before = segments[0];
      // Older ones than a gap are left from a removal that a crash cut short.
      if (before !== undefined && before.sequence !== sequence + 1) break;
      const contents = read(sequence);
      if (contents === undefined) {
        repairs.push(`${segmentName(sequence)} was being made when the process ended; removed`);
        disk.remove(segmentName(sequence));
        if (sequences.length === 1) throw new Damage('it has no log');
        return SegmentedLog.open(disk, checksum, segmentBytes, snapshotIndex, acknowledged);
      }
      segments.unshift({ sequence, lastIndex: highestIndex(contents.records, contents.nextIndex - 1) });
      kept = [contents, ...kept];
    }
    const first = present(kept[0]);
    if (first.nextIndex > snapshotIndex + 1)
      throw new Damage(`the log begins at ${first.nextIndex}, and there is no snapshot of what was before`);
    for (const sequence of sequences) if (sequence < present(segments[0]).sequence) disk.remove(segmentName(sequence));

    const last = present(kept.at(-1));
    const file = disk.open(segmentName(newest));
    if (last.end < last.size) {
      repairs.push(
        `${segmentName(newest)}: the last ${last.size - last.end} bytes were being written when the machine stopped; cut off`,
      );
      file.truncate(last.end);
    }
    file.datasync();
    return {
      log: new SegmentedLog(disk, checksum, segmentBytes, segments, file),
      firstIndex: first.nextIndex,
      records: kept.flatMap((contents) => contents.records),
      repairs,
    };
  }

  /** Where the log ends on disk. */
  get end(): Acknowledged {
    return { segment: this.#newest.sequence, bytes: this.#file.size };
  }

  /** Durable when it returns. Throws NoRoom, and then the log is as it was. */
  append(record: LogRecord): void {
    if (this.#file.size >= this.segmentBytes) this.#roll();
    const before = this.#file.size;
    try {
      needingRoom(() => this.#file.write(this.#encoder.encode(record, this.#newest.sequence), before));
    } catch (error) {
      if (error instanceof NoRoom) this.#file.truncate(before);
      throw error;
    }
    this.#file.datasync(); // mutation: storage/entries-unsynced
    this.#newest.lastIndex = highestIndex([record], this.#newest.lastIndex);
  }

  /** Removes segments whose entries are all covered by a durable snapshot at `index`. */
  removeUpTo(index: number): void {
    while (this.segments.length > 1 && present(this.segments[0]).lastIndex <= index) {
      this.disk.remove(segmentName(present(this.segments.shift()).sequence));
    }
  }

  close(): void {
    this.#file.close();
  }

  get #newest(): Segment {
    return present(this.segments.at(-1));
  }

  #roll(): void {
    const { sequence, lastIndex } = this.#newest;
    // One that an earlier try without room left behind is replaced.
    const file = createSegment(this.disk, sequence + 1, lastIndex + 1, this.checksum);
    this.#file.close();
    this.#file = file;
    this.segments.push({ sequence: sequence + 1, lastIndex });
  }
}
