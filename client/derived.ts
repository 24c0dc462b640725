/**
 * The changes that an owner makes from the present entry (native/serve/derive.h): what each needs to be posted, and
 * what its answer says.
 */
import { APPEND_MAX, type Answer, type NativeClient } from '../native/native-client.js';
import { FarkvError, Status, statusError } from './errors.js';
import { PendingChange, type ChangeOutcome, type Key } from './pending.js';
import { resultOf } from './value-reader.js';

const incrementOutcome: ChangeOutcome<bigint> = (status, words, at) => {
  if (status !== Status.ok) throw statusError(status);
  return BigInt.asIntN(64, resultOf(words, at));
};
const appendOutcome: ChangeOutcome<number> = (status, words, at) => {
  if (status !== Status.ok) throw statusError(status);
  return Number(resultOf(words, at));
};
const touchOutcome: ChangeOutcome<boolean> = (status) => {
  if (status !== Status.ok && status !== Status.notFound) throw statusError(status);
  return status === Status.ok;
};

export class PendingIncrement extends PendingChange<bigint> {
  readonly #by: bigint;
  readonly #ttlMs: number;

  constructor(space: number, key: Key, by: bigint, ttlMs: number) {
    super(space, key, incrementOutcome);
    this.#by = by;
    this.#ttlMs = ttlMs;
  }

  post(native: NativeClient, timeoutMs: number): Answer {
    return native.increment(this.space, this.key, this.#by, this.#ttlMs, 0, timeoutMs);
  }
}

export class PendingAppend extends PendingChange<number> {
  #bytes: Uint8Array;
  readonly #ttlMs: number;

  constructor(space: number, key: Key, bytes: Uint8Array, ttlMs: number) {
    super(space, key, appendOutcome);
    if (bytes.length > APPEND_MAX)
      throw new FarkvError(
        'ERR_VALUE_TOO_LARGE',
        `append takes at most ${APPEND_MAX} bytes at a time, these are ${bytes.length}`,
      );
    this.#bytes = bytes;
    this.#ttlMs = ttlMs;
  }

  override own(): void {
    super.own();
    this.#bytes = Buffer.from(this.#bytes);
  }

  post(native: NativeClient, timeoutMs: number): Answer {
    return native.append(this.space, this.key, this.#bytes, this.#ttlMs, 0, timeoutMs);
  }
}

export class PendingTouch extends PendingChange<boolean> {
  readonly #ttlMs: number;

  constructor(space: number, key: Key, ttlMs: number) {
    super(space, key, touchOutcome);
    this.#ttlMs = ttlMs;
  }

  post(native: NativeClient, timeoutMs: number): Answer {
    return native.touch(this.space, this.key, this.#ttlMs, timeoutMs);
  }
}
