/**
 * GETs that spin until they are answered: over transports where the thread that asks can see the answer come. They are
 * never outstanding, so neither a signal nor the end of the client reaches them. Not for: GETs that are awaited
 * (operations.ts).
 */
import { canSpin, PROVIDERS } from '../core/providers.js';
import { CompletionField, type NativeClient } from '../native/native-client.js';
import { Status, statusError, type FarkvError } from './errors.js';
import type { OperationErrors } from './operation-errors.js';
import { tooSmall, type Key } from './pending.js';
import type { ValueMemory } from './value-memory.js';
import { valueAtOnce, type ValueReader } from './value-reader.js';

const BYTES: number = CompletionField.Bytes;
const UNSPUN = `a GET can be spun for over ${PROVIDERS.filter(canSpin).join(' and ')} only, not over ${PROVIDERS.filter((p) => !canSpin(p)).join(' or ')}: await get or getInto`;

export class SpunReads {
  readonly #native: NativeClient;
  readonly #values: ValueMemory;
  readonly #errors: OperationErrors;

  constructor(native: NativeClient, values: ValueMemory, errors: OperationErrors) {
    this.#native = native;
    this.#values = values;
    this.#errors = errors;
  }

  /** The value, or undefined where there is none; throws what is wrong. */
  read<T>(space: number, key: Key, reader: ValueReader<T>, timeoutMs: number): T | undefined {
    const slab = this.#values.ready();
    let answer = this.#native.getSync(space, key, slab.memory, slab.used, timeoutMs);
    if (answer >= 0) return valueAtOnce(reader, slab, answer, this.#native.info);
    while (answer === -Status.bufferTooSmall) {
      const own = Buffer.allocUnsafeSlow(this.#native.info[BYTES] ?? 0);
      answer = this.#native.getSync(space, key, own, 0, timeoutMs);
      if (answer >= 0) return reader.read(own.subarray(0, answer), this.#native.info, 0);
    }
    if (answer === -Status.notFound) return undefined;
    throw this.#failure(-answer, space, key);
  }

  /** The length of the value, which lies in `target` from `offset` on; undefined where there is none. */
  readInto(space: number, key: Key, target: Uint8Array, offset: number, timeoutMs: number): number | undefined {
    const answer = this.#native.getSync(space, key, target, offset, timeoutMs);
    if (answer >= 0) return answer;
    if (answer === -Status.notFound) return undefined;
    if (answer === -Status.bufferTooSmall) throw tooSmall(this.#native.info[BYTES] ?? 0, target.length - offset);
    throw this.#failure(-answer, space, key);
  }

  #failure(status: number, space: number, key: Key): FarkvError {
    return status === Status.unsupported ? statusError(status, UNSPUN) : this.#errors.failure(status, space, key);
  }
}
