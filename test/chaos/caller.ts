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
import type { PreparedKey } from '../../native/native-client.js';
import type { Random } from '../support/random.js';
import type { HeldValues } from './held.js';
import { drawKey, keyOf, MSGPACK_NAMESPACE, type ChaosKey, type Form } from './keys.js';
import type { Asked, ChangeOutcome, Recorder } from './record.js';
import { makeTiny, makeValue, readTiny, readValue, TINY_MAX, type Seen } from './values.js';

export type View = Keyspace<Buffer, Buffer>;

export interface ClientState {
  readonly name: string;
  readonly kv: Client<BufferValue, Buffer>;
  /** For clients beside that one. */
  readonly connection: ConnectOptions;
  readonly record: Recorder;
  readonly held: HeldValues;
  /** Shared memory, where a GET is answered at once and may be spun for. */
  readonly shm: boolean;
  readonly generation: () => number;
  /** No value has more bytes. */
  readonly valueMax: number;
  readonly views: Map<number, View>;
  readonly prepared: Map<string, PreparedKey>;
  /** Numbers of writes. */
  written: number;
}

/** These say that a mechanism failed, not that a server is away. */
const NEVER = new Set([
  'ERR_CORRUPT',
  'ERR_INTERNAL',
  'ERR_PROTOCOL',
  'ERR_ARGUMENT',
  'ERR_KEY_INVALID',
  'ERR_UNAUTHORIZED',
  'ERR_REMOTE_ACCESS',
  'ERR_VALUE_TOO_LARGE',
  'ERR_UNSUPPORTED',
]);
const TIMEOUTS = [30, 200, 1000, 3000] as const;
const TTLS = [60, 200, 500, 1500, 6000, 10_000] as const;
const PREPARED_MAX = 5000;

export const now = (): number => Number(process.hrtime.bigint());

/** Something to write: the bytes, and how they are stored. */
export interface Written {
  readonly id: string;
  readonly bytes: Buffer;
  readonly ttlMs: number | undefined;
  readonly flags: number | undefined;
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

  limits(): ReadOptions {
    return this.random.below(40) === 0
      ? { ...this.timeout(), signal: AbortSignal.timeout(1 + this.random.below(20)) }
      : this.timeout();
  }

  // ---------------------------------------------------------------- values

  /** A new value for the key. */
  value(key: ChaosKey): Written {
    const number = this.client.written++;
    const id = `${this.client.name}-${number}`;
    if (key.of === 'y')
      return { id, bytes: makeTiny(key.id, this.random.below(TINY_MAX + 1)), ttlMs: undefined, flags: undefined };
    return {
      id,
      bytes: makeValue(key.id, id, Math.min(this.client.valueMax, this.#size(key))),
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
  saw(
    via: string,
    key: ChaosKey,
    value: Uint8Array | undefined,
    call: number,
    end: number,
    entry?: { readonly version: bigint; readonly flags: number },
  ): void {
    const { record, held } = this.client;
    const by = { lane: this.lane, via };
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
    if (key.of === 'y') return;
    if (entry !== undefined && entry.flags !== (flagsOf(seen.id) ?? 0))
      record.wrong(by, {
        what: `${via} gave ${key.id} by ${seen.id} with the flags ${entry.flags}`,
        key: key.id,
        call,
        end,
      });
    record.read(by, key.id, call, end, seen.id, entry?.version);
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
 * The flags that a write stores beside its value; undefined: none. Only some, since an item of a putMany that has any
 * goes another way.
 */
export function flagsOf(id: string): number | undefined {
  const number = Number(id.slice(id.lastIndexOf('-') + 1));
  return number % 4 === 3 ? (number * 2_654_435_761) % 2 ** 32 : undefined;
}
