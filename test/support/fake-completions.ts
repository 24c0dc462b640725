/**
 * The operations of a client without a network, from their posting to their record: for fake-native-client.ts, which has
 * the entries. Nothing completes until a test says so. The contract of native/native-client.ts is kept, also where that is
 * awkward: a record's arrays are reused, a slab that is full stops a drain, a large value is held until taken, more than
 * maxOutstanding operations are refused.
 */
import { CompletionField, NO_VALUE, PENDING_BASE, type Answer } from '../../native/native-client.js';
import { Status } from '../../client/errors.js';

const Words: number = CompletionField.Words;

export interface Stored {
  readonly value: Uint8Array;
  readonly version: bigint;
  readonly codec: number;
  readonly flags: number;
  /** What a change answers beside the version. */
  readonly result?: bigint;
}

export interface Operation {
  readonly id: number;
  /** Done when it completes, not when it is posted. */
  readonly run: () => { readonly status: number; readonly entry?: Stored | undefined; readonly bytes?: Uint8Array };
}

interface Ready {
  readonly id: number;
  readonly status: number;
  readonly entry: Stored | undefined;
  readonly bytes: Uint8Array | undefined;
}

export class FakeCompletions {
  readonly info = new Uint32Array(Words);
  readonly completions: Uint32Array;
  maxOutstanding = 1000;
  outstanding: Operation[] = [];
  ready: Ready[] = [];
  flushes = 0;
  /** What is cancelled is a change that was sent already. */
  sent = false;
  readonly #held = new Map<number, Uint8Array>();
  #ids = 0;

  constructor(records = 64) {
    this.completions = new Uint32Array(records * Words);
  }

  /** Finishes the first `count` outstanding operations; the caller drains. */
  complete(count = Number.POSITIVE_INFINITY): void {
    for (const { id, run } of this.outstanding.splice(0, count)) {
      const { status, entry, bytes } = run();
      this.ready.push({ id, status, entry, bytes });
    }
  }

  fail(status: number): void {
    for (const { id } of this.outstanding.splice(0))
      this.ready.push({ id, status, entry: undefined, bytes: undefined });
  }

  cancel(id: number): void {
    const at = this.outstanding.findIndex((operation) => operation.id === id);
    if (at < 0) return;
    this.outstanding.splice(at, 1);
    this.ready.push({
      id,
      status: this.sent ? Status.indeterminate : Status.aborted,
      entry: undefined,
      bytes: undefined,
    });
  }

  flush(): number {
    this.flushes++;
    return this.ready.length;
  }

  drain(slab: Uint8Array): number {
    let used = 0;
    let count = 0;
    while (this.ready.length > 0 && (count + 1) * Words <= this.completions.length) {
      const [first] = this.ready;
      if (first === undefined) break;
      // As the native side has it: a change, and a reply without a body, have no value.
      const bytes = first.bytes ?? new Uint8Array(0);
      if (bytes.length > slab.length - used && bytes.length <= slab.length) break;
      this.ready.shift();
      const held = bytes.length > slab.length;
      if (held) this.#held.set(first.id, bytes);
      else slab.set(bytes, used);
      this.record(
        this.completions,
        count * Words,
        first.id,
        held ? Status.bufferTooSmall : first.status,
        bytes.length,
        held || first.bytes === undefined ? NO_VALUE : used,
        first.entry,
      );
      if (!held) used += bytes.length;
      count++;
    }
    this.info[0] = this.ready.length > 0 ? 1 : 0;
    this.info[CompletionField.Bytes] = used;
    return count;
  }

  take(id: number, target: Uint8Array): void {
    const bytes = this.#held.get(id);
    if (bytes === undefined) throw new Error(`nothing is held under ${id}`);
    target.set(bytes);
    this.#held.delete(id);
  }

  get held(): number {
    return this.#held.size;
  }

  protected post(run: Operation['run']): Answer {
    if (this.outstanding.length >= this.maxOutstanding) return -Status.busy;
    const id = ++this.#ids;
    this.outstanding.push({ id, run });
    return PENDING_BASE + id;
  }

  protected record(
    words: Uint32Array,
    at: number,
    id: number,
    status: number,
    bytes: number,
    offset: number,
    entry: Stored | undefined,
  ): void {
    const version = entry?.version ?? 0n;
    const result = entry?.result ?? 0n;
    words.set(
      [
        id,
        status,
        bytes,
        offset,
        entry?.codec ?? 0,
        entry?.flags ?? 0,
        Number(version & 0xffffffffn),
        Number(version >> 32n),
        Number(result & 0xffffffffn),
        Number(result >> 32n),
      ],
      at,
    );
  }
}
