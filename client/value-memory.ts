/**
 * Where values lie that `get` hands out: slabs of 64 KiB from which each value takes what it needs, as Node.js does for
 * small Buffers. A get then costs no allocation but the Buffer object.
 *
 * What a caller must know: a value that is kept keeps its slab, 64 KiB, alive. A value of a getMany may lie beside the
 * others of its crossing instead, and keeps that memory alive, up to 8 MiB (batch-reads.ts). Who keeps few values for
 * long takes a copy (`Buffer.from(value)`) or reads with getInto. Values over SLAB_VALUE_MAX that `get` reads have memory
 * of their own.
 *
 * Invariants of a slab:
 *   - held <= used <= its size;
 *   - bytes below `held` belong to callers: `held` never falls, so they are not written again;
 *   - bytes from `held` to `used` are lent to a drain or to a decoder, and are given back when it is done;
 *   - its memory is not transferred to another thread with a value, as Node.js has it of its own pool: a transfer copies
 *     (Node.js 20), or is refused (later ones). A program gets past that by `ArrayBuffer.prototype.transfer`, and loses the
 *     other values of the slab; the client goes on with another one.
 *
 * FARKV_POISON_SLABS=1 in the environment, read once, is for tests: bytes that a slab gives back are overwritten at
 * once, so that a program that still holds some of them sees its value change.
 */
import { markAsUntransferable } from 'node:worker_threads';
import { FarkvError } from './errors.js';

export const SLAB_BYTES = 64 << 10;
export const SLAB_VALUE_MAX = 16 << 10;
/** A slab with less room than this is left; a value that does not fit costs a second look-up. */
const LEAST_ROOM = 4 << 10;

const POISONED = process.env.FARKV_POISON_SLABS === '1';
/** What poisoned bytes are. */
export const POISON = 0xdb;

/** Memory of which several values are to be parts. */
export function sharedMemory(bytes: number): Buffer {
  const memory = Buffer.allocUnsafeSlow(bytes);
  markAsUntransferable(memory.buffer);
  return memory;
}

export class Slab {
  readonly memory = sharedMemory(SLAB_BYTES);
  #used = 0;
  #held = 0;

  /** From here on nothing is lent and nothing is held. */
  get used(): number {
    return this.#used;
  }

  /** Somebody has taken its memory away, with all that it held. */
  get isGone(): boolean {
    return this.memory.length === 0;
  }

  /** The bytes up to `end` are in use until giveBack. */
  lend(end: number): void {
    const next = roundUp(end);
    if (next > this.#used) this.#used = next;
  }

  /** The bytes up to `end` belong to callers from now on. */
  hold(end: number): void {
    const next = roundUp(end);
    if (next > this.#held) this.#held = next;
    if (next > this.#used) this.#used = next;
  }

  /** What was lent from `from` on may be written again, but for what was held meanwhile and lies before it. */
  giveBack(from: number): void {
    const next = Math.max(from, this.#held); // mutation: client/held-given-back
    if (!(next <= this.#used)) throw broken(`bytes from ${from} on were given back, of which ${this.#used} are in use`);
    if (POISONED) this.memory.fill(POISON, next, this.#used);
    this.#used = next;
  }
}

/** An end within a slab, aligned to 8, so that a decoder may look at numbers in place. */
function roundUp(end: number): number {
  if (!(end >= 0 && end <= SLAB_BYTES)) throw broken(`a value ends at ${end} of ${SLAB_BYTES} bytes`);
  return (end + 7) & ~7;
}

function broken(what: string): FarkvError {
  return new FarkvError('ERR_INTERNAL', `the memory of values: ${what}`);
}

export class ValueMemory {
  #slab = new Slab();

  /** A slab with room that is worth trying. */
  ready(): Slab {
    return SLAB_BYTES - this.#slab.used < LEAST_ROOM || this.#slab.isGone ? this.renew() : this.#slab;
  }

  /** A new one. */
  renew(): Slab {
    return (this.#slab = new Slab());
  }
}
