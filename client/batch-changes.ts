/**
 * putMany and deleteMany: one crossing into the native side for up to PUTS_MAX changes, which are operations of one
 * batch. What has a time to live or flags of its own, and what a signal may end, goes the way of a change by itself.
 *
 * A long batch is handed over in pieces, as there is room (batch-line.ts) and time (turn.ts). Pieces that cross come one
 * batch after the other, in the order of their calls, so that of two that change one key the later one is the last. What
 * goes by itself begins at once, and may overtake them.
 */
import { PENDING_BASE, PUTS_MAX, type NativeClient } from '../native/native-client.js';
import { Batch, type Failures } from './batch.js';
import { Status, statusError } from './errors.js';
import { KeyText } from './key-text.js';
import type { Limits, Operations } from './operations.js';
import { abortError, ownKey, type Key } from './pending.js';

/** Some changes of a call, in their order. */
export interface Piece {
  readonly keys: readonly Key[];
  /** Of puts. */
  readonly values: readonly Uint8Array[];
  /** keys[i] is number places[i] of the call. */
  readonly places: readonly number[];
  /** Set: they go alone; resolves when all have ended. */
  readonly alone?: () => Promise<unknown>;
}

/** What a call changes: taken piece by piece, so that a long one never lies encoded in memory as a whole. */
export interface Pieces {
  readonly failures: Failures;
  /** It is known that there are no more. */
  readonly done: boolean;
  /** At most `most` more changes; undefined: there are no more. Throws what ends the call. */
  next(most: number): Piece | undefined;
  /** None of the rest is taken any more: each has failed with this error. */
  fail(error: unknown): void;
}

/** How the changes of one kind cross. */
interface Kind {
  readonly space: number;
  readonly post: (keys: readonly Key[], values: readonly Uint8Array[]) => void;
  /** Called with what a change that was sent ended with; throws FarkvError. */
  readonly ended: (status: number) => void;
}

/** A piece that is on its way: those before `at` have been handed over. */
interface Handed {
  keys: readonly Key[];
  values: readonly Uint8Array[];
  readonly places: readonly number[];
  at: number;
  /** Its bytes are the client's own. */
  owned: boolean;
}

export class BatchChanges {
  readonly #native: NativeClient;
  readonly #operations: Operations;
  readonly #answers = new Uint32Array(PUTS_MAX);
  readonly #text = new KeyText(PUTS_MAX);

  constructor(native: NativeClient, operations: Operations) {
    this.#native = native;
    this.#operations = operations;
  }

  /** Resolves when all have ended; what failed is in `pieces.failures`. Rejects with what `pieces.next` throws. */
  put(space: number, pieces: Pieces, codec: number, limits: Limits): Promise<void> {
    const { failures } = pieces;
    const post = (keys: readonly Key[], values: readonly Uint8Array[]): void => {
      const text = this.#text.join(keys);
      this.#native.putMany(space, keys, values, codec, this.#answers, limits.timeoutMs, text, this.#text.lengths);
    };
    const ended = (status: number): void => {
      if (status !== Status.ok) throw failures.share(status, () => statusError(status));
    };
    return this.#change({ space, post, ended }, pieces, limits);
  }

  /** As put; `found` is called for each key that was there. */
  delete(space: number, pieces: Pieces, limits: Limits, found: () => void): Promise<void> {
    const { failures } = pieces;
    const post = (keys: readonly Key[]): void => {
      const text = this.#text.join(keys);
      this.#native.deleteMany(space, keys, this.#answers, limits.timeoutMs, text, this.#text.lengths);
    };
    const ended = (status: number): void => {
      if (status === Status.ok) found();
      else if (status !== Status.notFound) throw failures.share(status, () => statusError(status));
    };
    return this.#change({ space, post, ended }, pieces, limits);
  }

  async #change(kind: Kind, pieces: Pieces, limits: Limits): Promise<void> {
    const { closed, changes } = this.#operations;
    if (closed) throw statusError(Status.closed);
    const since = this.#operations.clock;
    const batch = new Batch(kind.space, changes, pieces.failures, (_, status) => kind.ended(status));
    let thrown: { readonly error: unknown } | undefined;
    const take = (most: number): Piece | undefined => {
      try {
        return pieces.next(most);
      } catch (error) {
        thrown = { error };
        return undefined;
      }
    };
    // The first piece is taken over before the call returns.
    let piece = take(PUTS_MAX);
    // What goes alone begins at once: its own operations take over what the caller may use again.
    const isWhole = piece?.alone !== undefined && pieces.done;
    let alone = isWhole || changes.taken ? piece?.alone?.() : undefined;
    if (isWhole) {
      await alone;
      return;
    }
    let handed = changes.taken && piece !== undefined ? owned(begun(piece)) : undefined;
    const before = changes.enter(since, limits);
    let isTurn = before === undefined;
    try {
      if (before !== undefined) await before;
      isTurn = true;
      while (piece !== undefined) {
        if (piece.alone === undefined) {
          handed ??= begun(piece);
          while (!this.#hand(batch, kind, handed)) {
            owned(handed);
            await changes.room(since, limits);
          }
        } else {
          await (alone ?? piece.alone());
          alone = undefined;
        }
        handed = undefined;
        if (pieces.done) break;
        await this.#mayGoOn(limits, since);
        piece = take(Math.min(PUTS_MAX, Math.max(1, limits.signal === undefined ? changes.free : PUTS_MAX)));
      }
    } catch (error) {
      // What was handed over ends by itself, the rest has not begun.
      if (handed !== undefined)
        for (let i = handed.at; i < handed.places.length; i++) pieces.failures.add(handed.places[i] ?? -1, error);
      pieces.fail(error);
    } finally {
      if (isTurn) changes.leave();
    }
    await alone;
    await batch.ended();
    if (thrown !== undefined) throw thrown.error;
  }

  /** Between two pieces: room, and time. */
  async #mayGoOn(limits: Limits, since: number): Promise<void> {
    const { changes, turn } = this.#operations;
    if (turn.over) await turn.next();
    if (limits.signal?.aborted === true) throw abortError(limits.signal);
    while (limits.signal === undefined && changes.free < 1) await changes.room(since, limits);
    if (this.#operations.closed) throw statusError(Status.closed);
  }

  /** Hands over what there is room for. True: that was all of it. */
  #hand(batch: Batch, kind: Kind, handed: Handed): boolean {
    const { changes } = this.#operations;
    const { keys, values, places } = handed;
    if (this.#operations.closed) throw statusError(Status.closed);
    while (handed.at < keys.length) {
      const from = handed.at;
      const count = Math.min(changes.free, keys.length - from);
      if (count < 1) return false;
      const whole = count === keys.length;
      const chunk = whole ? keys : keys.slice(from, from + count);
      kind.post(chunk, whole ? values : values.slice(from, from + count));
      let refused = false;
      for (let i = 0; i < count; i++) {
        const answer = this.#answers[i] ?? 0;
        refused = answer === Status.busy;
        if (refused) break;
        handed.at++;
        const place = places[from + i] ?? -1;
        const key = chunk[i] ?? '';
        if (answer >= PENDING_BASE) this.#operations.adoptOne(batch.operation(place, key), answer - PENDING_BASE);
        else batch.failures.add(place, this.#operations.errors.sharedFailure(batch.failures, answer, kind.space, key));
      }
      // Where nothing is under way, nothing will make room.
      if (refused && this.#operations.unsettled === 0) throw statusError(Status.busy);
      if (refused) return false;
    }
    return true;
  }
}

function begun({ keys, values, places }: Piece): Handed {
  return { keys, values, places, at: 0, owned: false };
}

/** From now on the caller may use its memory again: of what was not handed over, copies are. */
function owned(handed: Handed): Handed {
  if (handed.owned) return handed;
  handed.owned = true;
  const { at } = handed;
  handed.keys = handed.keys.map((key, i) => (i < at ? key : ownKey(key)));
  handed.values = handed.values.map((value, i) => (i < at ? value : Buffer.from(value))); // mutation: client/values-of-the-caller
  return handed;
}
