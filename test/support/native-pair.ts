/**
 * A data plane and a client of it, both native, in one process, for tests of the Node-API layer: calls become promises
 * here, and nothing else is added.
 */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { addon } from '../../native/addon.js';
import type { DataPlane, ShardLayout } from '../../native/data-plane.js';
import {
  CompletionField,
  NO_VALUE,
  PENDING_BASE,
  type NativeClient,
  type NativeClientEvent,
  type NativeClientOptions,
  type ShardRoute,
} from '../../native/native-client.js';
import { isSameHost, type Provider } from '../../core/providers.js';
import type { Polling } from '../../core/polling.js';

export const SHARDS = 4;
export const SEED = Buffer.alloc(16, 0x5e);
export const SECRET = Buffer.alloc(16, 0x7c);
const WORDS: number = CompletionField.Words;

let sockets = 0;
/** Each has an id of its own. */
let clients = 0n;

export interface PlaneOptions {
  readonly provider?: Provider;
  readonly address?: string;
  readonly incarnation?: bigint;
  /** That its shards are opened in; default: the incarnation. */
  readonly epoch?: number;
  readonly leaseMs?: number;
  readonly memoryBytes?: number;
  readonly clientQuota?: number;
  readonly polling?: Polling;
  readonly backupSlowMs?: number;
  readonly replicaLeaseMs?: number;
  /** Opened but not served: answers ERR_SHARD_UNAVAILABLE. */
  readonly closed?: boolean;
}

/** An owner of all shards. */
export class Plane {
  private constructor(
    readonly provider: Provider,
    readonly address: string,
    readonly incarnation: bigint,
    readonly native: DataPlane,
    readonly layouts: readonly ShardLayout[],
  ) {}

  static async start(o: PlaneOptions = {}): Promise<Plane> {
    const provider = o.provider ?? 'shm';
    const incarnation = o.incarnation ?? 1n;
    const socket = join(tmpdir(), `farkv-pair-${process.pid}-${threadId}-${sockets++}.sock`);
    const wanted = o.address ?? (isSameHost(provider) ? `unix:${socket}` : '127.0.0.1:0');
    const native = new addon.DataPlane({
      serverIncarnation: incarnation,
      hashSeed: SEED,
      ticketSecret: SECRET,
      shards: SHARDS,
      leaseMs: o.leaseMs ?? 500,
      driftPpm: 200,
      listen: [{ provider, address: wanted, worker: 0 }],
      workers: 1,
      maxClients: 64,
      clientQuota: o.clientQuota ?? 1024,
      polling: o.polling ?? 'never',
      hugePages: 'off',
      ...(o.backupSlowMs === undefined ? {} : { backupSlowMs: o.backupSlowMs }),
      ...(o.replicaLeaseMs === undefined ? {} : { replicaLeaseMs: o.replicaLeaseMs }),
    });
    const [bound] = native.start();
    const layouts: ShardLayout[] = [];
    for (let shard = 0; shard < SHARDS; shard++) {
      const epoch = o.epoch ?? Number(incarnation);
      const own = { shard, worker: 0, epoch, incarnation: (incarnation << 16n) + BigInt(shard) };
      layouts.push(await native.openShard({ ...own, memoryBytes: o.memoryBytes ?? 16 << 20 }));
      if (o.closed !== true) await native.serveShard(shard);
    }
    return new Plane(provider, bound?.address ?? wanted, incarnation, native, layouts);
  }

  routes(): ShardRoute[] {
    return this.layouts.map((layout) => ({ ...layout, owner: 1 }));
  }

  close(): Promise<boolean> {
    return this.native.close();
  }
}

export interface Outcome {
  /** 'OK', 'NOT_FOUND', 'VERSION_MISMATCH' or an error code. */
  readonly status: string;
  readonly value: Buffer;
  readonly version: bigint;
  readonly userFlags: number;
  readonly codec: number;
  /** Whether it came by drain. */
  readonly later: boolean;
  readonly bytes: number;
  /** ResultLow and ResultHigh. */
  readonly result: bigint;
  /** The record says where a value lies: also one of no bytes does. */
  readonly hasValue: boolean;
}

/** A client whose pending operations are promises. */
export class Driver {
  readonly native: NativeClient;
  readonly events: NativeClientEvent[] = [];
  /** Set while a call of the native client is under way: a callback that comes then is a mistake. */
  inside = false;
  callbacksInside = 0;
  readyCalls = 0;
  readonly slab: Buffer;
  readonly #waiting = new Map<number, (o: Outcome) => void>();
  #flushing = false;
  /** Bytes of the slab that the last drain wrote. */
  #written = 0;

  constructor(options: Partial<NativeClientOptions> = {}, slabBytes = 1 << 20) {
    this.slab = Buffer.alloc(slabBytes);
    this.native = new addon.NativeClient({
      traced: false,
      hashSeed: SEED,
      shards: SHARDS,
      ticket: addon.makeTicket(
        { number: 0, secret: SECRET },
        { client: (clients += 1n), issuedMs: Date.now(), expiresMs: Date.now() + 3_600_000, tenant: 0, flags: 3 },
      ),
      timeoutMs: 10_000,
      maxOutstanding: 256,
      polling: 'never',
      cachedLocations: 1024,
      unavailableMs: 0,
      onReady: () => {
        this.readyCalls++;
        if (this.inside) this.callbacksInside++;
        this.drain();
      },
      onEvent: (event) => {
        if (this.inside) this.callbacksInside++;
        this.events.push(event);
      },
      ...options,
    });
  }

  static to(plane: Plane, options: Partial<NativeClientOptions> = {}, slabBytes?: number): Driver {
    const driver = new Driver(options, slabBytes);
    driver.learn(plane);
    return driver;
  }

  learn(plane: Plane): void {
    const { provider, address, incarnation } = plane;
    this.native.setOwners([{ owner: 1, serverIncarnation: incarnation, addresses: [{ provider, address }] }]);
    this.native.setRoutes(plane.routes());
  }

  /** What a call returned, as an outcome; a value answered at once lies at the start of target. */
  outcome(call: () => number, target?: Buffer): Promise<Outcome> {
    this.inside = true;
    const answer = call();
    this.inside = false;
    if (answer >= PENDING_BASE) return this.adopt(answer - PENDING_BASE);
    const status = answer < 0 ? -answer : 0;
    const value = answer >= 0 && target !== undefined ? Buffer.from(target.subarray(0, answer)) : Buffer.alloc(0);
    return Promise.resolve({ ...this.#record(this.native.info, 0, value, false), status: name(status) });
  }

  adopt(id: number): Promise<Outcome> {
    if (!this.#flushing) {
      this.#flushing = true;
      queueMicrotask(() => {
        this.#flushing = false;
        this.inside = true;
        const ready = this.native.flush();
        this.inside = false;
        if (ready > 0) this.drain();
      });
    }
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  drain(): void {
    let more = true;
    while (more) {
      const records = this.native.drain(this.slab);
      more = this.native.info[0] === 1;
      this.#written = this.native.info[CompletionField.Bytes]!;
      for (let i = 0; i < records; i++) this.#settle(i * WORDS);
    }
  }

  #settle(at: number): void {
    const words = this.native.completions;
    const field = (f: number): number => words[at + f]!;
    const id = field(CompletionField.Id);
    const status = field(CompletionField.Status);
    const bytes = field(CompletionField.Bytes);
    const offset = field(CompletionField.Offset);
    const resolve = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (resolve === undefined) throw new Error(`nobody waits for ${id}`);
    let value: Buffer = Buffer.alloc(0);
    if (offset !== NO_VALUE && offset + bytes > this.#written)
      throw new Error(`a value of ${offset} to ${offset + bytes}, where ${this.#written} bytes were written`);
    if (name(status) === 'OK' && offset !== NO_VALUE) value = Buffer.from(this.slab.subarray(offset, offset + bytes));
    const outcome = this.#record(words, at, value, true);
    if (name(status) === 'ERR_BUFFER_TOO_SMALL') {
      const large = Buffer.alloc(bytes);
      this.native.take(id, large);
      resolve({ ...outcome, status: 'OK', value: large });
    } else {
      resolve(outcome);
    }
  }

  #record(words: Uint32Array, at: number, value: Buffer, later: boolean): Outcome {
    return {
      status: name(words[at + CompletionField.Status]!),
      value,
      version:
        (BigInt(words[at + CompletionField.VersionHigh]!) << 32n) | BigInt(words[at + CompletionField.VersionLow]!),
      userFlags: words[at + CompletionField.UserFlags]!,
      codec: words[at + CompletionField.Codec]!,
      later,
      bytes: words[at + CompletionField.Bytes]!,
      result: (BigInt(words[at + CompletionField.ResultHigh]!) << 32n) | BigInt(words[at + CompletionField.ResultLow]!),
      hasValue: words[at + CompletionField.Offset]! !== NO_VALUE,
    };
  }

  get(key: string | Uint8Array, timeoutMs = 10_000, target = Buffer.alloc(1 << 16)): Promise<Outcome> {
    return this.outcome(() => this.native.get(0, key, target, 0, timeoutMs), target);
  }

  put(key: string | Uint8Array, value: Uint8Array | string, timeoutMs = 10_000): Promise<Outcome> {
    const bytes = typeof value === 'string' ? Buffer.from(value) : value;
    return this.outcome(() => this.native.put(0, key, bytes, 0, 0, 0, timeoutMs));
  }

  delete(key: string, timeoutMs = 10_000): Promise<Outcome> {
    return this.outcome(() => this.native.delete(0, key, timeoutMs));
  }

  increment(key: string, by: bigint, ttlMs = 0, codec = 0): Promise<Outcome> {
    return this.outcome(() => this.native.increment(0, key, by, ttlMs, codec, 10_000));
  }

  append(key: string, value: string, ttlMs = 0): Promise<Outcome> {
    return this.outcome(() => this.native.append(0, key, Buffer.from(value), ttlMs, 0, 10_000));
  }

  touch(key: string, ttlMs: number): Promise<Outcome> {
    return this.outcome(() => this.native.touch(0, key, ttlMs, 10_000));
  }

  compareAndSwap(key: string, expected: bigint, value: string | undefined): Promise<Outcome> {
    const bytes = value === undefined ? undefined : Buffer.from(value);
    return this.outcome(() => this.native.compareAndSwap(0, key, expected, bytes, 0, 0, 0, 10_000));
  }

  close(): void {
    this.native.close();
    this.drain();
  }
}

function name(status: number): string {
  return addon.constants.statusNames[status] ?? `status ${status}`;
}
