/**
 * Where values lie that `get` hands out: slabs of 64 KiB from which each value takes what it needs, as Node.js does for small Buffers.
 * A get then costs no allocation but the Buffer object.
 *
 * What a caller must know: a value that is kept keeps its slab, up to 64 KiB, alive. Who keeps few small values for long takes a copy
 * (`Buffer.from(value)`) or reads with getInto. Values over SLAB_VALUE_MAX have memory of their own.
 *
 * Invariant: bytes below `used` belong to callers and are not written again.
 */
export const SLAB_BYTES = 64 << 10;
export const SLAB_VALUE_MAX = 16 << 10;
/** A slab with less room than this is left; a value that does not fit costs a second look-up. */
const LEAST_ROOM = 4 << 10;

/** Aligned to 8, so that a decoder may look at numbers in place. */
export function aligned(bytes: number): number {
  return (bytes + 7) & ~7;
}

export class ValueMemory {
  memory = Buffer.allocUnsafeSlow(SLAB_BYTES);
  used = 0;

  /** Makes sure that there is room worth trying. */
  ready(): void {
    if (SLAB_BYTES - this.used < LEAST_ROOM) this.renew();
  }

  renew(): void {
    this.memory = Buffer.allocUnsafeSlow(SLAB_BYTES);
    this.used = 0;
  }
}
