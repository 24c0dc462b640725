/**
 * What a read makes of a value's bytes and its record: the decoded value, or an entry with its version. One object of
 * each kind for a client's view, so that a get allocates nothing for saying what it wants.
 */
import { CompletionField } from '../native/native-client.js';
import { decodeWith, type Codec } from './codec.js';
import type { Slab } from './value-memory.js';

const CODEC: number = CompletionField.Codec;
const USER_FLAGS: number = CompletionField.UserFlags;
const VERSION_LOW: number = CompletionField.VersionLow;
const VERSION_HIGH: number = CompletionField.VersionHigh;
const RESULT_LOW: number = CompletionField.ResultLow;
const RESULT_HIGH: number = CompletionField.ResultHigh;

/** A value with what is stored beside it. */
export interface Entry<T> {
  readonly value: T;
  /** For compareAndSwap. Never the same for two writes, not even after a delete or a restart. */
  readonly version: bigint;
  /** The 32 bits given to put. */
  readonly flags: number;
  /** By the clock of its owner, milliseconds since 1970; undefined: it never expires. */
  readonly expiresAtMs?: number | undefined;
}

export interface ValueReader<T> {
  /** True: the result does not refer to the bytes. */
  readonly copies: boolean;
  /** words[at ...] is the completion record. Throws FarkvError. */
  read(bytes: Buffer, words: Uint32Array, at: number): T;
}

/** The value of `length` bytes that a call was told to write where the slab's free memory begins; `info`: its record. */
export function valueAtOnce<T>(reader: ValueReader<T>, slab: Slab, length: number, info: Uint32Array): T {
  const offset = slab.used;
  const bytes = slab.memory.subarray(offset, offset + length);
  // Before it is decoded: a codec may call the client.
  if (!reader.copies) {
    slab.hold(offset + length); // mutation: client/decoded-given-back
    return reader.read(bytes, info, 0);
  }
  slab.lend(offset + length);
  const value = reader.read(bytes, info, 0);
  slab.giveBack(offset);
  return value;
}

export function versionOf(words: Uint32Array, at: number): bigint {
  return (BigInt(words[at + VERSION_HIGH] ?? 0) << 32n) | BigInt(words[at + VERSION_LOW] ?? 0);
}

/** Of a change what it answers beside the version; of a read when the entry ends. */
export function resultOf(words: Uint32Array, at: number): bigint {
  return (BigInt(words[at + RESULT_HIGH] ?? 0) << 32n) | BigInt(words[at + RESULT_LOW] ?? 0);
}

/** Whether there is an entry: needs no byte of the value. */
export const presence: ValueReader<boolean> = { copies: true, read: () => true };

/** Milliseconds until the entry ends, by this host's clock; null: never. Needs no byte of the value. */
export const timeLeft: ValueReader<number | null> = {
  copies: true,
  read: (_, words, at) => {
    const ends = Number(resultOf(words, at));
    return ends === 0 ? null : Math.max(0, ends - Date.now());
  },
};

export class PlainReader<Out> implements ValueReader<Out> {
  readonly copies: boolean;
  readonly #codec: Codec<never, Out>;

  constructor(codec: Codec<never, Out>) {
    this.#codec = codec;
    this.copies = codec.copies === true;
  }

  read(bytes: Buffer, words: Uint32Array, at: number): Out {
    return decodeWith(this.#codec, bytes, words[at + CODEC] ?? 0);
  }
}

export class EntryReader<Out> implements ValueReader<Entry<Out>> {
  readonly copies: boolean;
  readonly #codec: Codec<never, Out>;

  constructor(codec: Codec<never, Out>) {
    this.#codec = codec;
    this.copies = codec.copies === true;
  }

  read(bytes: Buffer, words: Uint32Array, at: number): Entry<Out> {
    // The record first: a codec that calls the client has it overwritten.
    const version = versionOf(words, at);
    const flags = words[at + USER_FLAGS] ?? 0;
    const ends = Number(resultOf(words, at));
    const value = decodeWith(this.#codec, bytes, words[at + CODEC] ?? 0);
    return ends === 0 ? { value, version, flags } : { value, version, flags, expiresAtMs: ends };
  }
}
