/**
 * The errors that operations end with: what a status means for the key or the shard that an operation is about, and what
 * the client knows beside it, in words for a person. Not for: errors of a status or an argument alone (errors.ts), nor
 * how a batch collects its failures (batch.ts).
 */
import type { NativeClient } from '../native/native-client.js';
import type { Failures } from './batch.js';
import { keyError, Status, statusError, type FarkvError } from './errors.js';
import type { Key } from './pending.js';

/** More than any status. */
const STATUSES = 256;

/** What a client knows of a shard whose operations fail. */
export interface Explanations {
  /** Why nobody answers for a shard, for a person. */
  readonly explain: (shard: number) => string;
  /** Why the shard's owner ended its connection lately, for a person. */
  readonly ended?: ((shard: number) => string | undefined) | undefined;
  /** An operation has ended because nobody answers for its shard, or none did in its time. */
  readonly unavailable?: (() => void) | undefined;
}

export class OperationErrors {
  readonly #native: NativeClient;
  readonly #explain: (shard: number) => string;
  readonly #unavailable: () => void;
  readonly #ended: (shard: number) => string | undefined;

  constructor(native: NativeClient, { explain, ended, unavailable }: Explanations) {
    this.#native = native;
    this.#explain = explain;
    this.#unavailable = unavailable ?? (() => undefined);
    this.#ended = ended ?? (() => undefined);
  }

  /** The error of a status that a read of this key ended with. */
  failure(status: number, space: number, key: Key): FarkvError {
    return status === Status.shardUnavailable
      ? this.unavailable(this.#native.shardOf(space, key))
      : keyError(status, key);
  }

  /** The same, made once for all keys of a batch that it is true of. */
  sharedFailure(failures: Failures, status: number, space: number, key: Key): FarkvError {
    if (status === Status.keyInvalid) return keyError(status, key);
    const what = status === Status.shardUnavailable ? STATUSES + this.#native.shardOf(space, key) : status;
    return failures.share(what, () => this.failure(status, space, key));
  }

  /** No answer has come in time. Why the shard's owner ended its connection lately; undefined: it did not. */
  late(shard: number): string | undefined {
    this.#unavailable();
    return this.#ended(shard);
  }

  unavailable(shard: number): FarkvError {
    this.#unavailable();
    return statusError(Status.shardUnavailable, this.#explain(shard));
  }
}
