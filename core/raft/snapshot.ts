/**
 * Snapshots as they travel: cut into chunks, a window of them under way, put together in order at the other side.
 *
 * A receiver holds a prefix and says how long it is; what does not continue the prefix is dropped. A sender that hears
 * no progress between two answered heartbeats goes back to the acknowledged prefix (go back n). Neither knows files:
 * the driver hands the leader's bytes in and takes the follower's bytes out.
 */
import { NO_BYTES } from './entry.js';
import type { SnapshotChunk, SnapshotMeta } from './messages.js';

export type { SnapshotMeta } from './messages.js';

export interface Snapshot {
  readonly meta: SnapshotMeta;
  /** The state machine at meta.index. Opaque here. */
  readonly data: Uint8Array;
}

export class SnapshotSender {
  /** Invariant: acknowledged <= next <= data.length. */
  #acknowledged = 0;
  #next = 0;
  /**
   * The last chunk went out; not the same as next === data.length, since an empty snapshot still needs its one chunk.
   */
  #finished = false;
  #acknowledgedAtHeartbeat = 0;

  constructor(
    readonly snapshot: Snapshot,
    private readonly chunkBytes: number,
    private readonly window: number,
  ) {}

  /** The next chunk that the window lets go, or undefined. */
  nextChunk(): { readonly offset: number; readonly chunk: Uint8Array } | undefined {
    const { data } = this.snapshot;
    if (this.#finished || this.#next - this.#acknowledged >= this.window * this.chunkBytes) return undefined;
    const offset = this.#next;
    this.#next = Math.min(offset + this.chunkBytes, data.length);
    this.#finished = this.#next === data.length;
    return { offset, chunk: data.subarray(offset, this.#next) };
  }

  /** The receiver holds a prefix of this length. A shorter one than before: it restarted, and needs the rest again. */
  received(bytes: number): void {
    if (bytes > this.snapshot.data.length) return;
    if (bytes < this.#acknowledged) this.#rewind(bytes);
    else this.#next = Math.max(this.#next, bytes);
    this.#acknowledged = bytes;
  }

  /** A heartbeat was answered. Without progress since the one before, chunks or the answer to the last were lost. */
  heartbeat(): void {
    const { length } = this.snapshot.data;
    if (this.#acknowledged === this.#acknowledgedAtHeartbeat)
      this.#rewind(this.#acknowledged === length ? 0 : this.#acknowledged);
    this.#acknowledgedAtHeartbeat = this.#acknowledged;
  }

  #rewind(to: number): void {
    this.#acknowledged = to;
    this.#next = to;
    this.#finished = false;
  }
}

/** Puts one snapshot together. A newer one, or one of another leader, takes its place. */
export class SnapshotReceiver {
  #from = 0;
  #term = 0;
  #index = 0;
  #bytes = 0;
  #received = 0;
  #data: Uint8Array = NO_BYTES;

  constructor(private readonly maxBytes: number) {}

  /** How much of the chunk's snapshot is held after it, and the whole snapshot when it is complete. */
  take(m: SnapshotChunk): { readonly received: number; readonly whole: Snapshot | undefined } {
    if (m.bytes > this.maxBytes) return { received: 0, whole: undefined };
    if (m.from !== this.#from || m.term !== this.#term || m.snapshot.index !== this.#index || m.bytes !== this.#bytes) {
      // Nothing is kept of a chunk out of the middle, so a stray one costs no memory.
      if (m.offset !== 0) return { received: 0, whole: undefined };
      this.#from = m.from;
      this.#term = m.term;
      this.#index = m.snapshot.index;
      this.#bytes = m.bytes;
      this.#received = 0;
      this.#data = NO_BYTES;
    }
    if (m.offset === this.#received && this.#received + m.chunk.length <= this.#bytes) {
      this.#makeRoom(this.#received + m.chunk.length);
      this.#data.set(m.chunk, this.#received);
      this.#received += m.chunk.length;
    }
    if (this.#received < this.#bytes) return { received: this.#received, whole: undefined };
    const whole = { meta: m.snapshot, data: this.#data };
    this.clear();
    return { received: m.bytes, whole };
  }

  /** Memory grows with what came, not with what was announced. */
  #makeRoom(bytes: number): void {
    if (bytes <= this.#data.length) return;
    const before = this.#data;
    this.#data = new Uint8Array(Math.min(this.#bytes, Math.max(bytes, 2 * before.length)));
    this.#data.set(before);
  }

  clear(): void {
    this.#from = 0;
    this.#received = 0;
    this.#data = NO_BYTES;
  }
}
