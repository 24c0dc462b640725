/**
 * The file `state`: term and vote, and how much of the log was acknowledged. It has its full size from the start and is
 * only ever overwritten in place, so that a full disk cannot keep a member from voting.
 *
 *   0      4096   8192                                   12288
 *   +------+------+------------------------------------+------------------------------------+
 *   | term and vote, twice | acknowledged, even writes | acknowledged, odd writes           |
 *   +------+------+------------------------------------+------------------------------------+
 *   each slot: magic u32 | crc32c u32 | sequence u64 | two u64
 *
 * Term and vote are written to one slot, synced, then to the other, and synced again, before anything is said because
 * of them. So a write that a crash tore leaves the older pair whole, and one slot that goes bad later leaves the newer.
 *
 * `acknowledged` says up to where which segment was synced. It is not synced itself: it is written behind the sync that
 * it tells of, so it is never ahead of the truth, and after the death of the process alone it is exact. It tells a torn
 * last write (which nobody had been told of) from a last write that went bad later.
 */
import { readU64, viewOf, writeU64, type Checksum } from './checksum.js';
import { Damage } from './damage.js';
import type { Disk, DiskFile } from './disk.js';

export const STATE_FILE = 'state';
const SLOT = 4096;
const SLOTS = 4;
const MAGIC = 0x5353_4b46; // "FKSS"
const SLOT_USED = 32;

interface Slot {
  readonly sequence: number;
  readonly a: number;
  readonly b: number;
}

export interface Acknowledged {
  readonly segment: number;
  readonly bytes: number;
}

export class StateFile {
  readonly #slot = new Uint8Array(SLOT_USED);
  readonly #view = viewOf(this.#slot);
  #sequence: number;
  #acknowledgements: number;

  private constructor(
    private readonly file: DiskFile,
    private readonly checksum: Checksum,
    public term: number,
    public vote: number,
    readonly acknowledged: Acknowledged | undefined,
    sequence: number,
    acknowledgements: number,
  ) {
    this.#sequence = sequence;
    this.#acknowledgements = acknowledgements;
  }

  static create(disk: Disk, checksum: Checksum): StateFile {
    const file = disk.create(STATE_FILE);
    file.write(new Uint8Array(SLOT * SLOTS), 0);
    const state = new StateFile(file, checksum, 0, 0, undefined, 0, 0);
    state.writeHardState(0, 0);
    return state;
  }

  static open(disk: Disk, checksum: Checksum): StateFile {
    const bytes = disk.read(STATE_FILE);
    if (bytes?.length !== SLOT * SLOTS) throw new Damage('the file of its term and vote is missing or cut off');
    const slots = [0, 1, 2, 3].map((i) => readSlot(bytes.subarray(i * SLOT, (i + 1) * SLOT), checksum));
    const newest = (a: Slot | undefined, b: Slot | undefined) => ((a?.sequence ?? -1) >= (b?.sequence ?? -1) ? a : b);
    const hard = newest(slots[0], slots[1]);
    if (hard === undefined) throw new Damage('neither copy of its term and vote can be read');
    const marker = newest(slots[2], slots[3]);
    const acknowledged = marker === undefined ? undefined : { segment: marker.a, bytes: marker.b };
    const state = new StateFile(
      disk.open(STATE_FILE),
      checksum,
      hard.a,
      hard.b,
      acknowledged,
      hard.sequence,
      (marker?.sequence ?? 0) + 1,
    );
    // The good copy may be in the page cache only. It goes to disk before the other, older or torn, is made like it: at
    // any time one of the two is whole on disk.
    state.file.datasync();
    for (const slot of [0, 1]) {
      if (slots[slot]?.sequence !== hard.sequence) state.#writeSynced(slot, hard.sequence, hard.a, hard.b);
    }
    return state;
  }

  /** Durable when it returns. */
  writeHardState(term: number, vote: number): void {
    this.#sequence++;
    for (const slot of [0, 1]) this.#writeSynced(slot, this.#sequence, term, vote);
    this.term = term;
    this.vote = vote;
  }

  /** Not durable when it returns, and need not be. */
  acknowledge(segment: number, bytes: number): void {
    this.#acknowledgements++;
    this.#write(2 + (this.#acknowledgements & 1), this.#acknowledgements, segment, bytes);
  }

  close(): void {
    this.file.close();
  }

  #writeSynced(slot: number, sequence: number, a: number, b: number): void {
    this.#write(slot, sequence, a, b);
    this.file.datasync(); // mutation: storage/vote-unsynced
  }

  #write(slot: number, sequence: number, a: number, b: number): void {
    const view = this.#view;
    view.setUint32(0, MAGIC, true);
    writeU64(view, 8, sequence);
    writeU64(view, 16, a);
    writeU64(view, 24, b);
    view.setUint32(4, this.checksum(this.#slot.subarray(8)), true);
    this.file.write(this.#slot, slot * SLOT);
  }
}

function readSlot(bytes: Uint8Array, checksum: Checksum): Slot | undefined {
  const view = viewOf(bytes);
  if (view.getUint32(0, true) !== MAGIC || checksum(bytes.subarray(8, SLOT_USED)) !== view.getUint32(4, true))
    return undefined;
  return { sequence: readU64(view, 8), a: readU64(view, 16), b: readU64(view, 24) };
}
