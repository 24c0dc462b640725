/**
 * A NativeClient without a network: a Map of entries, and a switch for when answers come. For tests of client/ that
 * must decide in which order things happen. Operations under way: fake-completions.ts.
 */
import {
  CompletionField,
  NO_VALUE,
  PENDING_BASE,
  PENDING_STATUS,
  type Answer,
  type NativeClient,
  type NativeClientStats,
  type NativeStep,
  type PreparedKey,
} from '../../native/native-client.js';
import { Status } from '../../client/errors.js';
import { addon } from '../../native/addon.js';
import { FakeCompletions, type Operation, type Stored } from './fake-completions.js';

const Words: number = CompletionField.Words;

const statusOf = (name: string): number => addon.constants.statusNames.indexOf(name);

const NO_POLLING = { share: 0, found: 0, vain: 0, yields: 0, lateYields: 0, sleeps: 0, backOffs: 0 };

export class FakeNativeClient extends FakeCompletions implements NativeClient {
  readonly entries = new Map<string, Stored>();
  /** True: GETs are answered at once, as over shared memory, but for those of keys that are late. */
  direct = true;
  /** Names of keys as in `entries`. */
  readonly late = new Set<string>();
  readonly log: string[] = [];
  /** Batches whose keys came as one text. */
  texts = 0;
  /** How many posted keys one is rung for, as batches were told. */
  readonly doorbells: number[] = [];
  closed = false;
  /** Every call about a key is answered with this status at once. */
  refusal: number | undefined;
  scanBodies: { readonly body: Uint8Array; readonly next: bigint }[] = [];
  #versions = 1n;

  store(key: string, value: Uint8Array, codec = 0, flags = 0): bigint {
    const version = this.#versions++;
    this.entries.set(`0/${key}`, { value: Uint8Array.from(value), version, codec, flags });
    return version;
  }

  get(space: number, key: string | Uint8Array, target: Uint8Array | undefined, offset: number): Answer {
    const refused = this.#refuse(key);
    if (refused !== undefined) return refused;
    const name = this.#name(space, key);
    if (target !== undefined && !this.#isLate(space, key)) return this.#answer(this.entries.get(name), target, offset);
    return this.post(() => this.#found(name));
  }

  getSync(space: number, key: string | Uint8Array, target: Uint8Array, offset: number): Answer {
    const refused = this.#refuse(key);
    return refused ?? this.#answer(this.entries.get(this.#name(space, key)), target, offset);
  }

  getMany(
    space: number,
    keys: readonly (string | Uint8Array)[],
    target: Uint8Array,
    offset: number,
    records: Uint32Array,
    _timeoutMs?: number,
    text?: string,
    lengths?: Uint32Array,
    doorbell?: number,
  ): number {
    if (doorbell !== undefined) this.doorbells.push(doorbell);
    let used = offset;
    let pending = 0;
    const named = this.#named(keys, text, lengths);
    // Posted in order, but laid out from the last key to the first: only a record's offset says where a value lies.
    const answers = named.map((key) => (this.#isLate(space, key) ? this.get(space, key, undefined, 0) : undefined));
    for (let i = named.length - 1; i >= 0; i--) {
      const at = i * Words;
      const posted = answers[i];
      if (posted !== undefined) this.info.fill(0);
      const answer = posted ?? this.get(space, named[i] ?? '', target.subarray(used), 0);
      records.set(this.info, at);
      records[at + CompletionField.Id] = i;
      records[at + CompletionField.Offset] = NO_VALUE;
      if (answer >= PENDING_BASE) {
        pending++;
        records[at + CompletionField.Id] = answer - PENDING_BASE;
        records[at + CompletionField.Status] = PENDING_STATUS;
      } else if (answer >= 0) {
        records[at + CompletionField.Offset] = used;
        used += answer;
      } else {
        records[at + CompletionField.Status] = -answer;
      }
    }
    this.info[CompletionField.Bytes] = used;
    return pending;
  }

  put(
    space: number,
    key: string | Uint8Array,
    value: Uint8Array,
    ttlMs: number,
    userFlags: number,
    codec: number,
  ): Answer {
    const refused = this.#refuse(key);
    if (refused !== undefined) return refused;
    const name = this.#name(space, key);
    const copy = Uint8Array.from(value);
    const answer = this.post(() => {
      const entry = { value: copy, version: this.#versions++, codec, flags: userFlags };
      this.entries.set(name, entry);
      return { status: Status.ok, entry: { ...entry, value: new Uint8Array(0) } };
    });
    if (answer >= PENDING_BASE) this.log.push(`put ${name} ttl ${ttlMs} flags ${userFlags} codec ${codec}`);
    return answer;
  }

  /** The keys of a batch, out of its text where it has one. */
  #named(
    keys: readonly (string | Uint8Array)[],
    text: string | undefined,
    lengths: Uint32Array | undefined,
  ): readonly (string | Uint8Array)[] {
    if (text === undefined || lengths === undefined) return keys;
    this.texts++;
    let at = 0;
    return keys.map((_, i) => text.slice(at, (at += lengths[i] ?? 0)));
  }

  putMany(
    space: number,
    keys: readonly (string | Uint8Array)[],
    values: readonly Uint8Array[],
    codec: number,
    answers: Uint32Array,
    _timeoutMs?: number,
    text?: string,
    lengths?: Uint32Array,
  ): number {
    return this.#changeMany(keys, answers, text, lengths, (key, i) =>
      this.put(space, key, values[i] ?? new Uint8Array(0), 0, 0, codec),
    );
  }

  deleteMany(
    space: number,
    keys: readonly (string | Uint8Array)[],
    answers: Uint32Array,
    _timeoutMs?: number,
    text?: string,
    lengths?: Uint32Array,
  ): number {
    return this.#changeMany(keys, answers, text, lengths, (key) => this.delete(space, key));
  }

  #changeMany(
    keys: readonly (string | Uint8Array)[],
    answers: Uint32Array,
    text: string | undefined,
    lengths: Uint32Array | undefined,
    change: (key: string | Uint8Array, i: number) => Answer,
  ): number {
    let pending = 0;
    this.#named(keys, text, lengths).forEach((key, i) => {
      const answer = change(key, i);
      answers[i] = Math.abs(answer);
      if (answer >= PENDING_BASE) pending++;
    });
    return pending;
  }

  compareAndSwap(
    space: number,
    key: string | Uint8Array,
    expected: bigint,
    value: Uint8Array | undefined,
    ttlMs: number,
    userFlags: number,
    codec: number,
  ): Answer {
    const refused = this.#refuse(key);
    if (refused !== undefined) return refused;
    const name = this.#name(space, key);
    this.log.push(`swap ${name} ttl ${ttlMs} flags ${userFlags}`);
    const copy = value && Uint8Array.from(value);
    return this.post(() => {
      const now = this.entries.get(name);
      if ((now?.version ?? 0n) !== expected)
        return {
          status: Status.versionMismatch,
          entry: { value: new Uint8Array(0), version: now?.version ?? 0n, codec: 0, flags: 0 },
        };
      const entry = { value: copy ?? new Uint8Array(0), version: this.#versions++, codec, flags: userFlags };
      if (copy === undefined) this.entries.delete(name);
      else this.entries.set(name, entry);
      return { status: Status.ok, entry: { ...entry, value: new Uint8Array(0) } };
    });
  }

  delete(space: number, key: string | Uint8Array): Answer {
    const refused = this.#refuse(key);
    if (refused !== undefined) return refused;
    const name = this.#name(space, key);
    return this.post(() => ({ status: this.entries.delete(name) ? Status.ok : Status.notFound }));
  }

  /** Of a present entry the codec decides; `make` gives the bytes of the next value and the answer. */
  #derive(
    space: number,
    key: string | Uint8Array,
    codec: number | undefined,
    make: (before: Uint8Array | undefined) => { readonly value: Uint8Array; readonly result: bigint } | number,
  ): Answer {
    const refused = this.#refuse(key);
    if (refused !== undefined) return refused;
    const name = this.#name(space, key);
    return this.post(() => {
      const now = this.entries.get(name);
      if (now !== undefined && codec !== undefined && now.codec !== codec) return { status: statusOf('ERR_CODEC') };
      const made = make(now?.value);
      if (typeof made === 'number') return { status: made };
      const { value, result } = made;
      const entry = { value, version: this.#versions++, codec: now?.codec ?? codec ?? 0, flags: now?.flags ?? 0 };
      this.entries.set(name, entry);
      return { status: Status.ok, entry: { ...entry, value: new Uint8Array(0), result } };
    });
  }

  increment(space: number, key: string | Uint8Array, by: bigint, ttlMs: number, codec: number): Answer {
    this.log.push(`increment ${this.#name(space, key)} by ${by} ttl ${ttlMs}`);
    return this.#derive(space, key, codec, (before) => {
      const text = Buffer.from(before ?? '0').toString();
      if (!/^(?:0|-?[1-9]\d*)$/u.test(text)) return statusOf('ERR_NOT_INTEGER');
      const sum = BigInt(text) + by;
      return BigInt.asIntN(64, sum) === sum
        ? { value: Buffer.from(String(sum)), result: BigInt.asUintN(64, sum) }
        : statusOf('ERR_NOT_INTEGER');
    });
  }

  append(space: number, key: string | Uint8Array, value: Uint8Array, ttlMs: number, codec: number): Answer {
    this.log.push(`append ${this.#name(space, key)} ttl ${ttlMs}`);
    const copy = Uint8Array.from(value);
    return this.#derive(space, key, codec, (before) => {
      const all = Buffer.concat([before ?? new Uint8Array(0), copy]);
      return { value: all, result: BigInt(all.length) };
    });
  }

  touch(space: number, key: string | Uint8Array, ttlMs: number): Answer {
    this.log.push(`touch ${this.#name(space, key)} ttl ${ttlMs}`);
    return this.#derive(space, key, undefined, (before) =>
      before === undefined ? Status.notFound : { value: before, result: 0n },
    );
  }

  scan(space: number, shard: number, cursor: bigint, maxEntries: number, withValues: boolean): Answer {
    this.log.push(`scan ${space} ${shard} ${cursor} ${maxEntries} ${withValues}`);
    const next = this.scanBodies.shift();
    return this.post(() => {
      if (next === undefined) return { status: Status.ok };
      const entry = { value: next.body, version: next.next, codec: 0, flags: 0 };
      return { status: Status.ok, entry, ...(next.body.length > 0 ? { bytes: next.body } : {}) };
    });
  }

  tally(): Answer {
    const next = this.scanBodies.shift();
    return this.post(() => {
      if (next === undefined) return { status: Status.ok };
      const result = BigInt(next.body.length);
      return { status: Status.ok, entry: { value: next.body, version: next.next, codec: 0, flags: 0, result } };
    });
  }

  hashOf(): bigint {
    return 0n;
  }

  shardOf(): number {
    return 0;
  }

  prepareKey(_ns: number, key: string | Uint8Array): PreparedKey {
    if (this.#refuse(key) !== undefined) throw new Error('no key');
    return Buffer.from(key) as unknown as PreparedKey;
  }

  setTicket(): void {
    return undefined;
  }

  setReplicated(): void {
    return undefined;
  }

  setOwners(): void {
    return undefined;
  }

  setRoutes(): void {
    return undefined;
  }

  takeSteps(): NativeStep[] {
    return [];
  }

  stats(): NativeClientStats {
    return {
      gets: 0,
      getHits: 0,
      getMisses: 0,
      reads: 0,
      readBytes: 0,
      followedReads: 0,
      retries: 0,
      twoSidedGets: 0,
      getPolling: NO_POLLING,
      changePolling: NO_POLLING,
      leaseRenewals: 0,
      lateDiscards: 0,
      tornReads: 0,
      foreignReads: 0,
      changes: 0,
      locationHits: 0,
      locationStale: 0,
      locationEvictions: 0,
      locationBypassed: 0,
      owners: [],
    };
  }

  /** Only the real one has a gateway. */
  listenRedis(): number {
    throw new Error('not a part of the fake');
  }

  endRedis(): number {
    throw new Error('not a part of the fake');
  }

  closeRedis(): void {
    throw new Error('not a part of the fake');
  }

  close(): void {
    this.closed = true;
    this.fail(Status.closed);
  }

  #name(space: number, key: string | Uint8Array): string {
    return `${space}/${Buffer.from(key).toString()}`;
  }

  #refuse(key: unknown): Answer | undefined {
    this.info.fill(0);
    if (this.closed) return -Status.closed;
    if (this.refusal !== undefined) return -this.refusal;
    const good =
      (typeof key === 'string' && key !== '' && Buffer.byteLength(key) <= 1024) ||
      (key instanceof Uint8Array && key.length > 0 && key.length <= 1024);
    return good ? undefined : -Status.keyInvalid;
  }

  #isLate(space: number, key: string | Uint8Array): boolean {
    return !this.direct || this.late.has(this.#name(space, key));
  }

  #found(name: string): ReturnType<Operation['run']> {
    const entry = this.entries.get(name);
    return entry === undefined ? { status: Status.notFound } : { status: Status.ok, entry, bytes: entry.value };
  }

  #answer(entry: Stored | undefined, target: Uint8Array, offset: number): Answer {
    if (entry === undefined) return -Status.notFound;
    const fits = entry.value.length <= target.length - offset;
    this.record(this.info, 0, 0, fits ? Status.ok : Status.bufferTooSmall, entry.value.length, NO_VALUE, entry);
    if (!fits) return -Status.bufferTooSmall;
    target.set(entry.value, offset);
    return entry.value.length;
  }
}
