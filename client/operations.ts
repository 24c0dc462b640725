/**
 * The engine of a client: gives operations to the native side, and settles them when it answers. Every view of a client
 * shares one.
 *
 *   at once      the native call returned the answer (a GET over shared memory, a put whose reply came while it was
 *                polled for)
 *   outstanding  the native side works on it; its completion record comes with `drain`
 *   gathered     a GET that waits for the next doorbell, so that many are posted in one crossing (gathered-reads.ts)
 *   queued       the native side had no room (ERR_BUSY); posted, in order, as soon as something completes
 *   not handed   the rest of a batch, which waits for room with the others of its kind (batch-line.ts)
 *
 * Doorbells are rung once for all that was posted in one microtask; completions are drained many at a time. Time-outs,
 * retries and leases are the native side's. An operation's time-out counts from when it is posted; what waits to be
 * posted ends when no server answers (patient-queue.ts).
 *
 * A loop that awaits answers which are there already never leaves the microtask queue, and would starve the program's
 * timers and sockets. So one in so many comes in a later turn (yield-budget.ts).
 *
 * Invariants: an id is in #outstanding from the call that returned it until its record was drained. Bytes in the slab
 * that were handed to a caller are not written again (value-memory.ts).
 *
 * Not for: GETs that spin until they are answered, which are never outstanding (spun-reads.ts), nor what an error says
 * (operation-errors.ts).
 */
import {
  CompletionField,
  PENDING_BASE,
  type NativeClient,
  type NativeClientStats,
  type PreparedKey,
} from '../native/native-client.js';
import { AbortWatch } from './abort-watch.js';
import type { BatchOperation } from './batch.js';
import { BatchLine, type Places } from './batch-line.js';
import { AnswerAtOnce, COMPLETION_WORDS, DrainCursor } from './completion.js';
import { FarkvError, keyError, rejected, Status, statusError } from './errors.js';
import { GatheredReads } from './gathered-reads.js';
import { OperationErrors, type Explanations } from './operation-errors.js';
import { abortError, tooSmall, type Key, type Pending, PendingInto, PendingRead } from './pending.js';
import { OutstandingTable, type Outstanding } from './outstanding-table.js';
import { Turn } from './turn.js';
import { SLAB_VALUE_MAX, type ValueMemory } from './value-memory.js';
import { valueAtOnce, type ValueReader } from './value-reader.js';
import { WaitingQueue } from './waiting-queue.js';
import { inNextTurn, YieldBudget } from './yield-budget.js';

const ID: number = CompletionField.Id;
const STATUS: number = CompletionField.Status;
const BYTES: number = CompletionField.Bytes;

/** Memory with its end as the place for a value: the native side takes no empty memory. */
const NO_ROOM = Buffer.alloc(1);

/** How long an operation may take, and what may end it earlier. */
export interface Limits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface OperationsOptions extends Explanations {
  /** Operations that are posted at once, at most. */
  readonly maxOutstanding: number;
  readonly maxQueued: number;
  readonly access?: { readonly readOnly: boolean };
}

/** While something waits for room, it is looked at so often. */
const TICK_MS = 10;
/** So much is counted between two looks, at most. */
const TICK_MAX_MS = 100;

export class Operations implements Places {
  /** Between the pieces of long work. */
  readonly turn = new Turn();
  /** Batches of GETs, and of changes. */
  readonly reads: BatchLine;
  readonly changes: BatchLine;
  readonly most: number;
  readonly errors: OperationErrors;
  /** Milliseconds in which something waited and the event loop turned: what a program holds it for does not count. */
  clock = 0;
  answeredAt = 0;
  readonly #native: NativeClient;
  readonly #outstanding = new OutstandingTable();
  readonly #queue: WaitingQueue;
  readonly #values: ValueMemory;
  readonly #cursor: DrainCursor;
  readonly #atOnce: AnswerAtOnce;
  readonly #access: { readonly readOnly: boolean };
  readonly #aborts = new AbortWatch<Pending<unknown>>((operation) => this.#abort(operation));
  readonly #atEnd = new Set<(error: FarkvError) => void>();
  readonly #gathered: GatheredReads;
  #flushing = false;
  readonly #budget = new YieldBudget();
  #closed = false;
  /** Closed, and nothing is left. */
  #ended = false;
  /** The records of a drain are being read. */
  #draining = false;
  #tick: NodeJS.Timeout | undefined;
  #lookedAt = 0;

  constructor(native: NativeClient, values: ValueMemory, options: OperationsOptions) {
    this.most = options.maxOutstanding;
    this.#access = options.access ?? { readOnly: false };
    this.errors = new OperationErrors(native, options);
    this.reads = new BatchLine(this, this.turn);
    this.changes = new BatchLine(this, this.turn);
    this.#native = native;
    this.#values = values;
    this.#cursor = new DrainCursor(native, values);
    this.#atOnce = new AnswerAtOnce(native.info);
    this.#gathered = new GatheredReads(native, {
      adopt: (operation, id) => {
        operation.id = id;
        this.#outstanding.put(operation);
      },
      alone: (operation, timeoutMs) => {
        if (!this.#post(operation, timeoutMs)) void this.#wait(operation, { timeoutMs });
      },
    });
    this.#queue = new WaitingQueue(
      options.maxQueued,
      (operation) => this.#hasPlace() && this.#post(operation, operation.timeoutMs),
      this.turn,
    );
  }

  // ---------------------------------------------------------------- reads

  /** A GET; undefined when there is no such key. */
  read<T>(space: number, key: Key, reader: ValueReader<T>, limits: Limits): Promise<T | undefined> {
    if (limits.signal?.aborted === true) return this.#failed(abortError(limits.signal));
    if (this.#gathered.on && typeof key === 'string' && limits.signal === undefined)
      return this.#gather(space, key, reader, limits.timeoutMs);
    const slab = this.#values.ready();
    const answer = this.#native.get(space, key, slab.memory, slab.used, limits.timeoutMs);
    if (answer >= PENDING_BASE) {
      if (this.#flushing) this.#gathered.another();
      return this.#outstand(new PendingRead(space, key, reader), answer, limits);
    }
    try {
      if (answer >= 0) return this.#resolved(valueAtOnce(reader, slab, answer, this.#native.info));
      if (answer === -Status.notFound) return this.#resolved(undefined);
      if (answer === -Status.bufferTooSmall) return this.#readLarge(space, key, reader, limits);
      if (answer === -Status.busy) return this.#wait(new PendingRead(space, key, reader), limits);
      return this.#failed(this.errors.failure(-answer, space, key));
    } catch (error) {
      return this.#failed(error);
    }
  }

  #gather<T>(space: number, key: string, reader: ValueReader<T>, timeoutMs: number): Promise<T | undefined> {
    const operation = new PendingRead(space, key, reader);
    if (this.#isCrowded()) return this.#wait(operation, { timeoutMs });
    this.#flushSoon();
    this.#gathered.add(operation as PendingRead<unknown>, key, timeoutMs);
    return operation.promise;
  }

  /** A GET for what is stored beside the value: where it is answered at once, none of the value is copied. */
  look<T>(space: number, key: Key, reader: ValueReader<T>, limits: Limits): Promise<T | undefined> {
    if (limits.signal?.aborted === true) return this.#failed(abortError(limits.signal));
    if (this.#gathered.on && typeof key === 'string' && limits.signal === undefined)
      return this.#gather(space, key, reader, limits.timeoutMs);
    const answer = this.#native.get(space, key, NO_ROOM, NO_ROOM.length, limits.timeoutMs);
    if (answer >= PENDING_BASE) return this.#outstand(new PendingRead(space, key, reader), answer, limits);
    if (answer >= 0 || answer === -Status.bufferTooSmall)
      return this.#resolved(reader.read(NO_ROOM, this.#native.info, 0));
    if (answer === -Status.notFound) return this.#resolved(undefined);
    if (answer === -Status.busy) return this.#wait(new PendingRead(space, key, reader), limits);
    return this.#failed(this.errors.failure(-answer, space, key));
  }

  /** A GET into the caller's memory; answers at once where it can, and then throws what is wrong. */
  readInto(
    space: number,
    key: Key,
    target: Uint8Array,
    offset: number,
    limits: Limits,
  ): number | undefined | Promise<number | undefined> {
    if (limits.signal?.aborted === true) throw abortError(limits.signal);
    const answer = this.#native.get(space, key, target, offset, limits.timeoutMs);
    if (answer >= PENDING_BASE) return this.#outstand(new PendingInto(space, key, target, offset), answer, limits);
    if (answer >= 0) return this.#budget.isOver(1) ? inNextTurn(answer) : answer;
    if (answer === -Status.notFound) return this.#budget.isOver(1) ? inNextTurn(undefined) : undefined;
    if (answer === -Status.bufferTooSmall) throw tooSmall(this.#native.info[BYTES] ?? 0, target.length - offset);
    if (answer === -Status.busy) return this.#wait(new PendingInto(space, key, target, offset), limits);
    throw this.errors.failure(-answer, space, key);
  }

  /** The value did not fit in the slab's rest: in a new slab, or in memory of its own. It may have grown meanwhile. */
  #readLarge<T>(space: number, key: Key, reader: ValueReader<T>, limits: Limits): Promise<T | undefined> {
    for (;;) {
      const bytes = this.#native.info[BYTES] ?? 0;
      const slab = bytes <= SLAB_VALUE_MAX ? this.#values.renew() : undefined;
      const memory = slab?.memory ?? Buffer.allocUnsafeSlow(bytes);
      const answer = this.#native.get(space, key, memory, 0, limits.timeoutMs);
      if (answer >= PENDING_BASE) return this.#outstand(new PendingRead(space, key, reader), answer, limits);
      if (answer >= 0 && slab !== undefined)
        return this.#resolved(valueAtOnce(reader, slab, answer, this.#native.info));
      if (answer >= 0) return this.#resolved(reader.read(memory.subarray(0, answer), this.#native.info, 0));
      if (answer === -Status.notFound) return this.#resolved(undefined);
      if (answer === -Status.busy) return this.#wait(new PendingRead(space, key, reader), limits);
      if (answer !== -Status.bufferTooSmall) throw this.errors.failure(-answer, space, key);
    }
  }

  // ---------------------------------------------------------------- changes, scans, batches

  /** Posts an operation; behind what is queued, so that changes keep the order of their calls. */
  submit<T>(operation: Pending<T>, limits: Limits): Promise<T> {
    if (limits.signal?.aborted === true) {
      operation.fail(abortError(limits.signal));
      return operation.promise;
    }
    if (this.#queue.length > 0 || this.#isCrowded()) return this.#wait(operation, limits);
    const answer = operation.post(this.#native, limits.timeoutMs);
    if (answer >= PENDING_BASE) return this.#outstand(operation, answer, limits);
    if (answer === -Status.busy) return this.#wait(operation, limits);
    operation.later = this.#budget.isOver(1);
    this.#settleAtOnce(operation, answer);
    return operation.promise;
  }

  /** Takes over an operation of a batch that a batch call posted under this id. */
  adoptOne(operation: BatchOperation, id: number): void {
    operation.id = id;
    this.#outstanding.put(operation);
    this.#flushSoon();
  }

  /** Takes over an operation that a batch call posted. */
  adopt<T>(operation: Pending<T>, id: number, limits: Limits): Promise<T> {
    return this.#outstand(operation, PENDING_BASE + id, limits);
  }

  // ---------------------------------------------------------------- the native side's answers

  /** Settles everything that is finished: the native side's onReady. */
  drain(): void {
    this.#draining = true;
    try {
      this.#settleAll();
    } finally {
      this.#draining = false;
    }
    if (this.#closed) this.#end();
    else this.#goOn();
  }

  /** There may be room for what waits. */
  #goOn(): void {
    if (this.#queue.length > 0) this.#queue.pump();
    this.reads.wake();
    this.changes.wake();
  }

  /** A single operation that waits may be posted: batches that wait too have their share kept for them. */
  #hasPlace(): boolean {
    let kept = 0;
    for (const line of [this.reads, this.changes]) kept += line.length > 0 ? line.share : line.outstanding;
    const others = this.reads.outstanding + this.changes.outstanding;
    return this.#outstanding.size - others < Math.max(1, this.most - kept);
  }

  /** What waits has come first, and the places that are free are kept for it. */
  #isCrowded(): boolean {
    return this.#tick !== undefined && !this.#hasPlace();
  }

  /** Something waits for room from now on. */
  waits(): void {
    if (this.#tick !== undefined) return;
    this.#lookedAt = performance.now();
    this.#tick = setInterval(() => this.#look(), TICK_MS);
  }

  #look(): void {
    // Answers that have come while the event loop was held are answers.
    this.drain();
    const now = performance.now();
    this.clock += Math.min(TICK_MAX_MS, now - this.#lookedAt);
    this.#lookedAt = now;
    this.#queue.expire(this.clock, this.answeredAt);
    this.reads.expire(this.answeredAt);
    this.changes.expire(this.answeredAt);
    if (this.#queue.length > 0 || this.reads.waits || this.changes.waits) return;
    clearInterval(this.#tick);
    this.#tick = undefined;
  }

  /** Places for operations that are not outstanding yet. */
  get free(): number {
    return this.most - this.#outstanding.size;
  }

  #settleAll(): void {
    const { completions, info } = this.#native;
    for (;;) {
      const records = this.#cursor.drain();
      const more = info[0] === 1;
      for (let i = 0; i < records; i++) {
        const at = i * COMPLETION_WORDS;
        const id = completions[at + ID] ?? 0;
        const operation = this.#outstanding.take(id);
        if (operation === undefined)
          throw new FarkvError('ERR_INTERNAL', `a completion for operation ${id}, which nobody waits for`);
        this.#cursor.at = at;
        this.#settle(operation, completions[at + STATUS] ?? 0);
      }
      this.#cursor.commit();
      if (!more) break;
      // Stopped for want of room in the slab, not of records.
      if (records * COMPLETION_WORDS < completions.length) this.#values.renew();
    }
  }

  #settle(operation: Outstanding, status: number): void {
    if (status !== Status.timeout && status !== Status.indeterminate && status !== Status.aborted)
      this.answeredAt = this.clock;
    if (status === Status.shardUnavailable) {
      operation.fail(this.errors.unavailable(operation.shard(this.#native)));
      return;
    }
    const isLate = status === Status.indeterminate || status === Status.timeout;
    const why =
      isLate && operation.signal?.aborted !== true ? this.errors.late(operation.shard(this.#native)) : undefined;
    if (why === undefined) operation.settle(this.#cursor);
    else operation.fail(statusError(status, why));
  }

  /** Operations that are not settled. */
  get unsettled(): number {
    return this.#outstanding.size + this.#gathered.length + this.#queue.length;
  }

  shardOf(space: number, key: Key): number {
    const answer = this.#native.shardOf(space, key);
    if (answer < 0) throw keyError(-answer, key);
    return answer;
  }

  /** Throws for a client whose changes every owner refuses: who may do what is theirs to say, here it is explained. */
  checkMayChange(): void {
    if (this.#access.readOnly)
      throw statusError(
        Status.unauthorized,
        'the token or certificate of this client is one of a reader: it may only read',
      );
  }

  get closed(): boolean {
    return this.#closed;
  }

  prepareKey(space: number, key: Key): PreparedKey {
    if (this.#closed) throw statusError(Status.closed);
    try {
      return this.#native.prepareKey(space, key);
    } catch {
      throw keyError(Status.keyInvalid, key);
    }
  }

  stats(): NativeClientStats {
    return this.#native.stats();
  }

  /**
   * Fails what is not settled with ERR_CLOSED and closes the native client; a codec that calls it within a drain has
   * that drain's records settled first.
   */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (!this.#draining) this.#end();
  }

  /** Calls `end` when the client is closed, until the answer is called. */
  whileOpen(end: (error: FarkvError) => void): () => void {
    if (this.#closed) end(statusError(Status.closed));
    else this.#atEnd.add(end);
    return () => this.#atEnd.delete(end);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#tick);
    for (const end of this.#atEnd) end(statusError(Status.closed));
    this.reads.end();
    this.changes.end();
    const gathered = this.#gathered.clear();
    const queued = this.#queue.clear();
    this.#native.close();
    this.drain();
    const error = statusError(Status.closed);
    for (const operation of this.#outstanding.clear()) if (!operation.settled) operation.fail(error);
    for (const operation of gathered) operation.fail(error);
    for (const operation of queued) operation.fail(error);
  }

  // ---------------------------------------------------------------- inside

  #outstand<T>(operation: Pending<T>, answer: number, limits: Limits): Promise<T> {
    operation.id = answer - PENDING_BASE;
    this.#outstanding.put(operation);
    this.#watch(operation, limits);
    this.#flushSoon();
    return operation.promise;
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(this.#flush);
  }

  readonly #flush = (): void => {
    this.#gathered.post();
    this.#gathered.pace(this.#outstanding.size);
    this.#flushing = false;
    if (this.#closed) return;
    const ready = this.#native.flush();
    if (ready === 0) return;
    if (this.#budget.isOver(ready)) setImmediate(this.#drainLater);
    else this.drain();
  };

  readonly #drainLater = (): void => {
    if (!this.#closed) this.drain();
  };

  #wait<T>(operation: Pending<T>, limits: Limits): Promise<T> {
    // Where nothing is under way, nothing will make room.
    if (this.#closed) operation.fail(statusError(Status.closed));
    else if (this.unsettled === 0) operation.fail(statusError(Status.busy));
    else this.#queue.push(operation as Pending<unknown>, this.clock, limits.timeoutMs);
    if (operation.settled) return operation.promise;
    this.#watch(operation, limits);
    this.waits();
    return operation.promise;
  }

  #post(operation: Pending<unknown>, timeoutMs: number): boolean {
    const answer = operation.post(this.#native, timeoutMs);
    if (answer >= PENDING_BASE) void this.#outstand(operation, answer, { timeoutMs });
    else if (answer === -Status.busy && this.#outstanding.size > 0) return false;
    else this.#settleAtOnce(operation, answer);
    return true;
  }

  #settleAtOnce<T>(operation: Pending<T>, answer: number): void {
    const status = answer < 0 ? -answer : Status.ok;
    this.#native.info[STATUS] = status;
    if (status === Status.keyInvalid) operation.fail(keyError(status, operation.key));
    else if (status === Status.shardUnavailable) operation.fail(this.errors.unavailable(operation.shard(this.#native)));
    else operation.settle(this.#atOnce);
  }

  #watch<T>(operation: Pending<T>, limits: Limits): void {
    if (limits.signal !== undefined && operation.signal === undefined) operation.watch(limits.signal, this.#aborts);
  }

  #abort(operation: Pending<unknown>): void {
    // The native side ends it with a completion record; what is still queued was never sent.
    if (operation.id >= 0) this.#native.cancel(operation.id);
    else if (operation.signal !== undefined) {
      operation.fail(abortError(operation.signal));
      this.#queue.cancelled();
    }
  }

  #resolved<T>(value: T): Promise<T> {
    return this.#budget.isOver(1) ? inNextTurn(value) : Promise.resolve(value);
  }

  /** A call that ended at once with what was thrown. */
  #failed<T>(error: unknown): Promise<T> {
    return this.#budget.isOver(1) ? inNextTurn(error).then(rejected<T>) : rejected(error);
  }

  /** A batch of so many keys was answered at once; where it is the turn of the program, a promise to be waited for. */
  answered(keys: number): Promise<void> | undefined {
    return this.#budget.isOver(Math.max(1, keys)) ? inNextTurn(undefined) : undefined;
  }
}
