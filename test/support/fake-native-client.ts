/**
 * A NativeClient without a network: a Map of entries, and a switch for when answers come. For tests of client/ that
 * must decide in which order things happen. It keeps the contract of native/native-client.ts, also where that is awkward: a
 * record's arrays are reused, a slab that is full stops a drain, a large value is held until taken, more than
 * maxOutstanding operations are refused.
 */
import {
  CompletionField,
  NO_VALUE,
  PENDING_BASE,
  PENDING_STATUS,
  type Answer,
  type NativeClient,
  type NativeClientStats,
  type PreparedKey,
} from '../../native/native-client.js';
import { Status } from '../../client/errors.js';

const Words: number = CompletionField.Words;

interface Stored {
  readonly value: Uint8Array;
  readonly version: bigint;
  readonly codec: number;
  readonly flags: number;
}

interface Operation {
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

export class FakeNativeClient implements NativeClient {
  readonly entries = new Map<string, Stored>();
  readonly info = new Uint32Array(Words);
  readonly completions: Uint32Array;
  /** True: GETs are answered at once, as over shared memory, but for those of keys that are late. */
  direct = true;
  /** Names of keys as in `entries`. */
  readonly late = new Set<string>();
  maxOutstanding = 1000;
  outstanding: Operation[] = [];
  ready: Ready[] = [];
  readonly log: string[] = [];
  flushes = 0;
  /** Batches whose keys came as one text. */
  texts = 0;
  /** How many posted keys one is rung for, as batches were told. */
  readonly doorbells: number[] = [];
  closed = false;
  /** Every call about a key is answered with this status at once. */
  refusal: number | undefined;
  /** What is cancelled is a change that was sent already. */
  sent = false;
  scanBodies: { readonly body: Uint8Array; readonly next: bigint }[] = [];
  readonly #held = new Map<number, Uint8Array>();
  #ids = 0;
  #versions = 1n;

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
    return this.#post(() => this.#found(name));
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
    const answer = this.#post(() => {
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
    let pending = 0;
    this.#named(keys, text, lengths).forEach((key, i) => {
      const answer = this.put(space, key, values[i] ?? new Uint8Array(0), 0, 0, codec);
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
    _ttlMs: number,
    userFlags: number,
    codec: number,
  ): Answer {
    const refused = this.#refuse(key);
    if (refused !== undefined) return refused;
    const name = this.#name(space, key);
    const copy = value && Uint8Array.from(value);
    return this.#post(() => {
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
    return this.#post(() => ({ status: this.entries.delete(name) ? Status.ok : Status.notFound }));
  }

  scan(space: number, shard: number, cursor: bigint, maxEntries: number, withValues: boolean): Answer {
    this.log.push(`scan ${space} ${shard} ${cursor} ${maxEntries} ${withValues}`);
    const next = this.scanBodies.shift();
    return this.#post(() => {
      if (next === undefined) return { status: Status.ok };
      const entry = { value: next.body, version: next.next, codec: 0, flags: 0 };
      return { status: Status.ok, entry, ...(next.body.length > 0 ? { bytes: next.body } : {}) };
    });
  }

  shardOf(): number {
    return 0;
  }

  prepareKey(_ns: number, key: string | Uint8Array): PreparedKey {
    if (this.#refuse(key) !== undefined) throw new Error('no key');
    return Buffer.from(key) as unknown as PreparedKey;
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
      this.#record(
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

  stats(): NativeClientStats {
    return {
      gets: 0,
      getHits: 0,
      reads: 0,
      readBytes: 0,
      followedReads: 0,
      retries: 0,
      twoSidedGets: 0,
      leaseRenewals: 0,
      lateDiscards: 0,
      tornReads: 0,
      changes: 0,
      locationHits: 0,
      locationStale: 0,
      locationEvictions: 0,
      locationBypassed: 0,
      owners: [],
    };
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
    this.#record(this.info, 0, 0, fits ? Status.ok : Status.bufferTooSmall, entry.value.length, NO_VALUE, entry);
    if (!fits) return -Status.bufferTooSmall;
    target.set(entry.value, offset);
    return entry.value.length;
  }

  #post(run: Operation['run']): Answer {
    if (this.outstanding.length >= this.maxOutstanding) return -Status.busy;
    const id = ++this.#ids;
    this.outstanding.push({ id, run });
    return PENDING_BASE + id;
  }

  #record(
    words: Uint32Array,
    at: number,
    id: number,
    status: number,
    bytes: number,
    offset: number,
    entry: Stored | undefined,
  ): void {
    const version = entry?.version ?? 0n;
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
      ],
      at,
    );
  }
}
