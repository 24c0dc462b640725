/**
 * What all calls of a client share (calls.ts): the SDK's views, keys in their forms, and how each answer is looked at
 * and written down. A lane has one of its own; the client, the record and the held values are the process's.
 */
import {
  FarkvError,
  type BufferValue,
  type Client,
  type ConnectOptions,
  type Keyspace,
  type ReadOptions,
  type WriteOptions,
} from '../../client/index.js';
import type { Key } from '../../client/pending.js';
import { PUTS_MAX, type PreparedKey } from '../../native/native-client.js';
import type { Random } from '../support/random.js';
import type { HeldValues } from './held.js';
import { CROSSING, drawKey, isTail, keyOf, MSGPACK_NAMESPACE, type ChaosKey, type Form } from './keys.js';
import type { Expiry } from './operation.js';
import type { Asked, AskedOfTail, ChangeOutcome, Recorder, TailOutcome } from './record.js';
import { makeTiny, makeValue, readTiny, readValue, TINY_MAX, type Seen } from './values.js';

export type View = Keyspace<Buffer, Buffer>;

export interface ClientState {
  readonly name: string;
  /** Which of the run's clients at a time it is: those that come after one another have the same. */
  readonly number: number;
  readonly kv: Client<BufferValue, Buffer>;
  /** For clients beside that one. */
  readonly connection: ConnectOptions;
  readonly record: Recorder;
  readonly held: HeldValues;
  /** Shared memory, where a GET is answered at once and may be spun for. */
  readonly shm: boolean;
  readonly generation: () => number;
  readonly views: Map<number, View>;
  readonly prepared: Map<string, PreparedKey>;
  /** Numbers of writes. */
  written: number;
}

/** These say that a mechanism failed, not that a server is away. */
const NEVER = new Set([
  'ERR_CORRUPT',
  'ERR_CODEC',
  'ERR_INTERNAL',
  'ERR_PROTOCOL',
  'ERR_ARGUMENT',
  'ERR_KEY_INVALID',
  'ERR_UNAUTHORIZED',
  'ERR_REMOTE_ACCESS',
  'ERR_VALUE_TOO_LARGE',
  'ERR_NOT_INTEGER',
  'ERR_UNSUPPORTED',
]);
const TIMEOUTS = [30, 200, 1000, 3000] as const;
const TTLS = [60, 200, 500, 1500, 6000, 10_000] as const;
const PREPARED_MAX = 5000;

export const now = (): number => Number(process.hrtime.bigint());

/** When it is that time of the wall clock, which all processes of a machine share too. */
function atWallClock(ms: number): Expiry {
  const from = now();
  const wall = Date.now();
  const left = (ms - wall) * 1e6;
  return { from: from + left - 1e6, to: now() + left };
}

/** Something to write: the bytes, and how they are stored. */
export interface Written {
  readonly id: string;
  readonly bytes: Buffer;
  readonly ttlMs: number | undefined;
  readonly flags: number | undefined;
}

/** What comes with a value where it is asked for. */
interface Entry {
  readonly version: bigint;
  readonly flags: number;
  readonly expiresAtMs?: number | undefined;
}

/**
 * What a call answered. The call has returned, so the keys and values that it was given are the program's own again,
 * which writes over them at once.
 */
export function overwriting<T>(answer: T, ...given: readonly unknown[]): T {
  for (const bytes of given.flat()) if (bytes instanceof Uint8Array) bytes.fill(OVERWRITTEN);
  return answer;
}
const OVERWRITTEN = 0xee;

/** Of a long batch, what is the client's own when the call returns; the rest is the caller's until it has ended. */
export function takenOver<T>(batch: readonly T[]): readonly T[] {
  return batch.slice(0, PUTS_MAX);
}

export class Caller {
  readonly client: ClientState;
  readonly lane: number;
  readonly random: Random;
  /** The last version that this lane was told of. */
  known: { readonly key: ChaosKey; readonly version: bigint } | undefined;

  constructor(client: ClientState, lane: number, random: Random) {
    this.client = client;
    this.lane = lane;
    this.random = random;
  }

  // ---------------------------------------------------------------- keys

  key(): ChaosKey {
    return drawKey(this.random, this.client.generation());
  }

  /** One whose values are unique and lie in the store as they were given. */
  plainKey(): ChaosKey {
    const drawn = this.key();
    return drawn.of === 'y' || drawn.of === 'm' ? keyOf('g', this.client.generation(), this.random.below(18)) : drawn;
  }

  view(space: number): View {
    const { kv, views } = this.client;
    // Views cost nothing: some are made anew for one call.
    const known = this.random.below(4) === 0 ? undefined : views.get(space);
    const view: View =
      known ??
      (space === MSGPACK_NAMESPACE
        ? kv.namespace(space).withCodec<Buffer>('msgpack')
        : space === 0
          ? kv
          : kv.namespace(space));
    views.set(space, view);
    return view;
  }

  /** The key as a program may write it. What is no text comes as bytes instead. */
  named(key: ChaosKey, form: Form): Key {
    this.client.record.key(key.id, () => this.view(key.space).shardOf(key.bytes));
    switch (form) {
      case 'text':
        return key.text ?? Buffer.from(key.bytes);
      case 'Buffer':
        return Buffer.from(key.bytes);
      case 'Uint8Array': {
        // In the middle of other bytes.
        const around = new Uint8Array(key.bytes.length + 16).fill(0x5a);
        around.set(key.bytes, 7);
        return around.subarray(7, 7 + key.bytes.length);
      }
      case 'prepared': {
        const { prepared } = this.client;
        const known =
          prepared.get(key.id) ?? this.view(this.random.below(8) === 0 ? 2 : key.space).key(key.text ?? key.bytes);
        if (prepared.size > PREPARED_MAX) prepared.clear();
        prepared.set(key.id, known);
        return known;
      }
    }
  }

  // ---------------------------------------------------------------- options

  timeout(): { readonly timeoutMs: number } {
    return { timeoutMs: this.random.pick(TIMEOUTS) };
  }

  /** One call in so many has a signal, too. */
  limits(oneIn = 40): ReadOptions {
    return this.random.below(oneIn) === 0
      ? { ...this.timeout(), signal: AbortSignal.timeout(1 + this.random.below(20)) }
      : this.timeout();
  }

  /** Those that go in pieces are few, and are to be ended between them, too. */
  batchLimits(keys: readonly ChaosKey[]): ReadOptions {
    return this.limits(keys.length > CROSSING ? 2 : undefined);
  }

  // ---------------------------------------------------------------- values

  /** A new value for the key. `keptFlags`: it is stored without any of its own, where these are. */
  value(key: ChaosKey, keptFlags?: number): Written {
    const number = this.client.written++;
    const id = `${this.client.name}-${number}${keptFlags === undefined ? '' : `k${keptFlags}`}`;
    if (key.of === 'y')
      return { id, bytes: makeTiny(key.id, this.random.below(TINY_MAX + 1)), ttlMs: undefined, flags: undefined };
    return {
      id,
      bytes: makeValue(key.id, id, this.#size(key)),
      ttlMs: key.of === 't' ? this.random.pick(TTLS) : undefined,
      flags: flagsOf(id),
    };
  }

  /** Mostly small; some are larger than what lies in a slab, than a slab, and than a message. */
  #size(key: ChaosKey): number {
    const draw = this.random.below(key.of === 'w' ? 100 : 200);
    if (key.of === 'w') return draw === 0 ? 2000 + this.random.below(8000) : 30 + this.random.below(150);
    if (draw === 0) return 200_000 + this.random.below(200_000);
    if (draw < 3) return 60_000 + this.random.below(20_000);
    if (draw < 24) return 2000 + this.random.below(30_000);
    return 30 + this.random.below(draw < 100 ? 60 : 500);
  }

  /** How a value is stored. */
  how({ ttlMs, flags }: Written, limits: ReadOptions): WriteOptions {
    return { ...limits, ...(ttlMs === undefined ? {} : { ttlMs }), ...(flags === undefined ? {} : { flags }) };
  }

  // ---------------------------------------------------------------- answers

  /** Looks at what a read gave, holds it for a second look, and writes it down. */
  saw(via: string, key: ChaosKey, value: Uint8Array | undefined, call: number, end: number, entry?: Entry): void {
    const { record, held } = this.client;
    const by = { lane: this.lane, via };
    if (isTail(key)) {
      record.readTail(by, key.id, call, end, value === undefined ? '' : Buffer.from(value).toString('latin1'));
      return;
    }
    if (value === undefined) {
      if (key.of !== 'y') record.read(by, key.id, call, end, undefined, undefined);
      return;
    }
    const look = (): Seen => (key.of === 'y' ? readTiny : readValue)(key.id, value);
    const seen = look();
    if ('wrong' in seen) {
      record.wrong(by, { what: `${via} gave ${seen.wrong}`, key: key.id, call, end });
      return;
    }
    held.add({ key: key.id, id: seen.id, by: `${this.lane} ${via}`, cameNs: end, look });
    const expiry = entry === undefined ? undefined : this.#expiryOf(via, key, entry, call);
    if (key.of === 'y') return;
    if (entry !== undefined && entry.flags !== (flagsOf(seen.id) ?? 0))
      record.wrong(by, {
        what: `${via} gave ${key.id} by ${seen.id} with the flags ${entry.flags}`,
        key: key.id,
        call,
        end,
      });
    record.read(by, key.id, call, end, seen.id, entry?.version, expiry);
  }

  /** What a look that gives no value gave: whether the key is there, and when it expires where that was told. */
  sawPresence(via: string, key: ChaosKey, present: boolean, call: number, end: number, expiry?: Expiry): void {
    if (!present) this.saw(via, key, undefined, call, end);
    else if (key.of !== 'y') this.client.record.has({ lane: this.lane, via }, key.id, call, end, expiry);
  }

  /**
   * What a scan that gives no values gave. Of keys whose values expire alone, the search for an order has enough without
   * such long looks.
   */
  sawListed(via: string, key: ChaosKey, entry: Pick<Entry, 'expiresAtMs'>, call: number): void {
    const expiry = this.#expiryOf(via, key, entry, call);
    if (key.of === 't') this.sawPresence(via, key, true, call, now(), expiry);
  }

  /** Of a class of keys either every value has a time to live or none. */
  #expiryOf(via: string, key: ChaosKey, { expiresAtMs }: Pick<Entry, 'expiresAtMs'>, call: number): Expiry | undefined {
    if ((expiresAtMs !== undefined) !== (key.of === 't'))
      this.wrong(via, call, `${via} gave ${key.id} with the expiry ${String(expiresAtMs)}`, key);
    return expiresAtMs === undefined ? undefined : atWallClock(expiresAtMs);
  }

  wrong(via: string, call: number, what: string, key?: ChaosKey): void {
    this.client.record.wrong({ lane: this.lane, via }, { what, key: key?.id, call, end: now() });
  }

  /** A call that changes nothing. Answers whether it succeeded. `small`: its memory may have no room for the values. */
  async read(via: string, work: () => unknown, small = false): Promise<boolean> {
    const call = now();
    try {
      await work();
      this.client.record.count(via);
      return true;
    } catch (error) {
      const code = this.codeOf(via, call, error);
      this.client.record.failed({ lane: this.lane, via }, code);
      if (code === 'ERR_BUFFER_TOO_SMALL' && !small)
        this.wrong(via, call, `${code}: ${String(error)}, for memory with room for any value`);
      return false;
    }
  }

  /** A change: on record before it is asked for. Tiny values are not unique, and have no history. */
  async change(via: string, key: ChaosKey, asked: Asked, work: () => Promise<ChangeOutcome>): Promise<void> {
    const { record } = this.client;
    const call = now();
    const id = key.of === 'y' ? undefined : record.ask({ lane: this.lane, via }, key.id, call, asked);
    record.flush();
    try {
      const outcome = await work();
      if (id !== undefined) record.told(id, now(), outcome);
      record.count(via);
    } catch (error) {
      const code = this.codeOf(via, call, error);
      if (id !== undefined) record.told(id, now(), code === 'ERR_INDETERMINATE' ? 'open' : 'no-effect', code);
    }
  }

  /** A change of a counter or a list. */
  async changeTail(via: string, key: ChaosKey, asked: AskedOfTail, work: () => Promise<TailOutcome>): Promise<void> {
    const { record } = this.client;
    const call = now();
    const id = record.askTail({ lane: this.lane, via }, key.id, call, asked);
    record.flush();
    try {
      const outcome = await work();
      record.toldTail(id, now(), outcome);
      record.count(via);
    } catch (error) {
      const code = this.codeOf(via, call, error);
      record.toldTail(id, now(), code === 'ERR_INDETERMINATE' ? 'open' : 'no-effect', code);
    }
  }

  codeOf(via: string, call: number, error: unknown): string {
    if (!(error instanceof FarkvError)) {
      this.wrong(via, call, error instanceof Error ? (error.stack ?? error.message) : String(error));
      return 'not an error of farkv';
    }
    if (NEVER.has(error.code)) this.wrong(via, call, `${error.code}: ${error.message}`);
    return error.code;
  }
}

/**
 * The flags that a write stores beside its value, or leaves there; undefined: none. Only some, since an item of a
 * putMany that has any goes another way.
 */
export function flagsOf(id: string): number | undefined {
  const [own, kept] = id.slice(id.lastIndexOf('-') + 1).split('k');
  if (kept !== undefined) return Number(kept);
  const number = Number(own);
  return number % 4 === 3 ? (number * 2_654_435_761) % 2 ** 32 : undefined;
}
