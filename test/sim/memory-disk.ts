/**
 * A Disk in memory that does what disks do in a crash: writes that were not synced are kept, lost, or torn, each by
 * itself; names that were not synced come back or do not. It can also be full, fail a sync, and stop the process
 * between any two operations.
 *
 * A crash of the process alone keeps everything (the page cache outlives it), and what was not synced stays unsynced.
 * What a sync failed for is in the page cache alone from then on: Linux calls such pages clean, and a later sync passes
 * over them (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020). A read is of the disk.
 */
import type { Disk, DiskFile } from '../../server/raft-storage/disk.js';
import type { Random } from '../support/random.js';

/** Thrown out of a disk operation when the process is to end there. */
export class SimulatedCrash extends Error {}

interface PendingWrite {
  readonly position: number;
  readonly bytes: Uint8Array;
  /** What lay there before, as far as the file went. */
  readonly old: Uint8Array;
  readonly oldSize: number;
  /** A truncation: `bytes` is empty and the file ends at `position`. */
  readonly truncation: boolean;
  /** A sync failed for it. */
  failed: boolean;
}

const NOTHING = new Uint8Array(0);
const WRITE_BACK = 40;

class MemoryFile {
  bytes = new Uint8Array(4096);
  size = 0;
  pending: PendingWrite[] = [];

  write(position: number, bytes: Uint8Array): void {
    const end = position + bytes.length;
    const old = position >= this.size ? NOTHING : this.bytes.slice(position, Math.min(end, this.size));
    this.pending.push({ position, bytes: bytes.slice(), old, oldSize: this.size, truncation: false, failed: false });
    this.put(position, bytes);
    // The kernel writes back what nobody syncs, in the end.
    if (this.pending.length > WRITE_BACK) this.pending.splice(0, WRITE_BACK >> 1);
  }

  put(position: number, bytes: Uint8Array): void {
    const end = position + bytes.length;
    if (end > this.bytes.length) {
      const larger = new Uint8Array(2 * end);
      larger.set(this.bytes.subarray(0, this.size));
      this.bytes = larger;
    }
    if (position > this.size) this.bytes.fill(0, this.size, position);
    this.bytes.set(bytes, position);
    this.size = Math.max(this.size, end);
  }

  truncate(size: number): void {
    this.pending.push({
      position: size,
      bytes: NOTHING,
      old: this.bytes.slice(size, this.size),
      oldSize: this.size,
      truncation: true,
      failed: false,
    });
    this.size = size;
  }

  sync(): void {
    this.pending = this.pending.filter((write) => write.failed);
  }

  /** What the page cache has and the disk has not, though the kernel says that it has. */
  forget(): void {
    for (const write of this.pending.toReversed()) if (write.failed) this.#lose(write);
    this.pending = this.pending.filter((write) => !write.failed);
  }

  /** The size is in the journal of the file system, and comes with the next sync of anything. */
  failSync(): void {
    this.pending = this.pending.filter((write) => !write.truncation);
    for (const write of this.pending) write.failed = true;
  }

  /** It never got to the disk, where there is what there was, or nothing. */
  #lose({ position, bytes, old }: PendingWrite): void {
    const end = Math.min(position + bytes.length, this.size);
    if (end <= position) return;
    this.bytes.fill(0, position, end);
    this.bytes.set(old.subarray(0, end - position), position);
  }

  /** The machine stopped: each write since the last sync has its own fate. */
  loseUnsynced(random: Random): void {
    const { pending } = this;
    this.pending = [];
    for (const write of pending.toReversed()) {
      if (write.failed) {
        this.#lose(write);
        continue;
      }
      this.size = Math.max(this.size, write.position);
      this.put(write.position, write.old);
      this.size = write.oldSize;
    }
    for (const write of pending) {
      if (write.failed) continue;
      const fate = random.below(4);
      if (fate === 0) continue;
      if (write.truncation) this.size = Math.min(this.size, write.position);
      else this.put(write.position, fate === 1 ? write.bytes : torn(write.bytes, random));
    }
  }
}

/** Part of a write: cut off, or whole in length with a piece that never got there. */
function torn(bytes: Uint8Array, random: Random): Uint8Array {
  const at = random.below(bytes.length + 1);
  if (random.below(2) === 0) return bytes.subarray(0, at);
  const copy = bytes.slice();
  if (random.below(2) === 0) copy.fill(0, at);
  else for (let i = at; i < copy.length; i++) copy[i] = random.next() & 0xff;
  return copy;
}

export interface DiskCounters {
  operations: number;
  syncs: number;
  tornCrashes: number;
  refusedWrites: number;
}

export class MemoryDisk implements Disk {
  /** No write that makes a file longer finds room. */
  full = false;
  /** The next sync fails, and with it the process. */
  failSync = false;
  syncError = 'EIO';
  /** The process ends at this many more operations; 0: it does not. */
  crashIn = 0;
  readonly counters: DiskCounters = { operations: 0, syncs: 0, tornCrashes: 0, refusedWrites: 0 };
  #names = new Map<string, MemoryFile>();
  #durableNames = new Map<string, MemoryFile>();
  #namesPending: { readonly name: string; readonly file: MemoryFile | undefined }[] = [];
  #locked = false;

  constructor(
    readonly path: string,
    private readonly random: Random,
  ) {}

  names(): string[] {
    return [...this.#names.keys()];
  }

  read(name: string): Uint8Array | undefined {
    const file = this.#names.get(name);
    file?.forget();
    return file?.bytes.slice(0, file.size);
  }

  create(name: string): DiskFile {
    this.#operation();
    if (this.full) this.#refuse();
    const file = new MemoryFile();
    this.#setName(name, file);
    return this.#handle(file);
  }

  open(name: string): DiskFile {
    return this.#handle(this.#names.get(name)!);
  }

  rename(from: string, to: string): void {
    this.#operation();
    const file = this.#names.get(from)!;
    this.#setName(from, undefined);
    this.#setName(to, file);
  }

  remove(name: string): void {
    this.#operation();
    this.#setName(name, undefined);
  }

  syncNames(): void {
    this.#operation();
    this.#sync();
    this.#durableNames = new Map(this.#names);
    this.#namesPending = [];
  }

  lock(): boolean {
    if (this.#locked) return false;
    this.#locked = true;
    return true;
  }

  close(): void {
    this.#locked = false;
  }

  /** The process ended; `machine`: the machine did, and what was not synced has its fate. */
  crash(machine: boolean): void {
    this.#locked = false;
    this.crashIn = 0;
    this.failSync = false;
    if (!machine) return;
    this.counters.tornCrashes++;
    this.#names = this.#durableNames;
    for (const { name, file } of this.#namesPending) {
      if (this.random.below(2) === 0) continue;
      if (file === undefined) this.#names.delete(name);
      else this.#names.set(name, file);
    }
    this.#durableNames = new Map(this.#names);
    this.#namesPending = [];
    for (const file of this.#names.values()) file.loseUnsynced(this.random);
  }

  /** Turns one bit of a file over, as bad media do. Whether there was one to turn. */
  rot(name: string, at: number): boolean {
    const file = this.#names.get(name);
    if (file === undefined || at >= file.size) return false;
    file.bytes[at]! ^= 1 << this.random.below(8);
    return true;
  }

  #handle(file: MemoryFile): DiskFile {
    return {
      get size() {
        return file.size;
      },
      write: (bytes, position) => {
        if (this.crashIn === 1 && this.random.below(2) === 0) {
          file.write(position, bytes.subarray(0, this.random.below(bytes.length + 1)));
          throw new SimulatedCrash('in a write');
        }
        this.#operation();
        if (this.full && position + bytes.length > file.size) {
          file.write(position, bytes.subarray(0, this.random.below(bytes.length)));
          this.#refuse();
        }
        file.write(position, bytes);
      },
      datasync: () => {
        this.#operation();
        this.#sync(file);
        file.sync();
      },
      truncate: (size) => {
        this.#operation();
        file.truncate(size);
      },
      close: () => undefined,
    };
  }

  #setName(name: string, file: MemoryFile | undefined): void {
    this.#namesPending.push({ name, file });
    if (file === undefined) this.#names.delete(name);
    else this.#names.set(name, file);
  }

  #sync(file?: MemoryFile): void {
    this.counters.syncs++;
    if (!this.failSync) return;
    this.failSync = false;
    file?.failSync();
    throw Object.assign(new Error(`${this.syncError}: fdatasync`), { code: this.syncError, syscall: 'fdatasync' });
  }

  #refuse(): never {
    this.counters.refusedWrites++;
    throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC', syscall: 'write' });
  }

  /** Counts down to a crash, which comes before the operation. */
  #operation(): void {
    this.counters.operations++;
    if (this.crashIn > 0 && --this.crashIn === 0) throw new SimulatedCrash('before a disk operation');
  }
}
