/**
 * The state machine that the simulated members run, behind an interface so that another can take its place
 * (metadata-application.ts). This one is a chain of hashes: equal digests mean that the same entries were applied in
 * the same order.
 */
import type { Random } from '../support/random.js';
import type { Mistake } from './mistakes.js';

export interface Machine {
  apply(index: number, data: Uint8Array): void;
  snapshot(): Uint8Array;
  restore(bytes: Uint8Array): void;
  /** Equal for machines that have applied the same. Called after each batch, so it is cheap. */
  digest(): number;
}

/** What the simulated group is for: its state machine, and what is proposed to it. */
export interface Application {
  machine(): Machine;
  /** Data of a proposal, behind the four bytes of its number (checker.ts), which a machine must pass over. */
  command(random: Random): Uint8Array;
  /** The members own shards under leases (owners.ts); `mistake`: what is left out to see it found; `replicated`: with copies. */
  readonly owners?: { readonly mistake: Mistake | undefined; readonly replicated?: boolean };
}

/** The number before a command. */
export const NUMBER_BYTES = 4;

/**
 * Snapshots are padded to several chunks, with bytes that follow from the digest, so that a chunk in the wrong place is
 * seen.
 */
const PADDING_MAX = 1500;

export class HashChain implements Machine {
  #digest = 0x811c9dc5;

  apply(index: number, data: Uint8Array): void {
    let hash = this.#digest ^ index;
    for (const byte of data) hash = Math.imul(hash ^ byte, 0x01000193);
    this.#digest = (hash ^ (hash >>> 15)) >>> 0;
  }

  snapshot(): Uint8Array {
    const bytes = new Uint8Array(4 + (this.#digest % PADDING_MAX));
    new DataView(bytes.buffer).setUint32(0, this.#digest);
    for (let i = 4; i < bytes.length; i++) bytes[i] = (this.#digest + i) & 0xff;
    return bytes;
  }

  restore(bytes: Uint8Array): void {
    this.#digest = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
    const again = this.snapshot();
    if (again.length !== bytes.length || !again.every((byte, i) => byte === bytes[i]))
      throw new Error('a snapshot arrived changed');
  }

  digest(): number {
    return this.#digest;
  }
}

export const hashChain: Application = {
  machine: () => new HashChain(),
  command: (random) => new Uint8Array(random.below(32) === 0 ? random.below(900) : random.below(20)),
};
