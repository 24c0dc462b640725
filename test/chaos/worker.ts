/**
 * One client process of a run: `node worker.js JSON`, with a WorkerTask. It connects, does operations at random in several lanes (one at a time in
 * each) until its standard input says "finish", then reads every key of late until each one has been answered, and ends. Exit
 * codes: 0; 3: some key was not answered in FINAL_MS although nothing disturbs any more.
 *
 * All workers begin their bursts at the same moments and use the same few keys, so operations do meet. Keys change from time to time: what
 * became of a key is clear the sooner the fewer operations on it are without an answer.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createInterface } from 'node:readline';
import { connect, FarkvError, type BufferValue, type Client, type TransportChoice } from '../../client/index.js';
import { Random } from '../support/random.js';
import { Recorder, type Asked, type ChangeOutcome } from './record.js';
import { makeValue, readValue } from './values.js';

export interface WorkerTask {
  /** Unique in the run. */
  readonly name: string;
  readonly file: string;
  readonly servers: readonly string[];
  readonly transport: TransportChoice;
  readonly seed: number;
  readonly lanes: number;
  /** Of all lanes together. */
  readonly operationsPerSecond: number;
  /** CLOCK_MONOTONIC, when the run began. */
  readonly beganNs: number;
  readonly keys: number;
  readonly keysForMs: number;
}

const BURST_MS = 200;
const FINAL_MS = 60_000;
const TIMEOUTS = [30, 200, 1000, 3000] as const;
/** These say that a mechanism failed, not that a server is away. */
const NEVER = new Set(['ERR_CORRUPT', 'ERR_INTERNAL', 'ERR_PROTOCOL', 'ERR_ARGUMENT', 'ERR_KEY_INVALID', 'ERR_UNAUTHORIZED', 'ERR_REMOTE_ACCESS', 'ERR_VALUE_TOO_LARGE', 'ERR_UNSUPPORTED']);

const now = (): number => Number(process.hrtime.bigint());

class Worker {
  readonly #task: WorkerTask;
  readonly #kv: Client<BufferValue, Buffer>;
  readonly #record: Recorder;
  readonly #finish: AbortSignal;
  #values = 0;

  constructor(task: WorkerTask, kv: Client<BufferValue, Buffer>, record: Recorder, finish: AbortSignal) {
    this.#task = task;
    this.#kv = kv;
    this.#record = record;
    this.#finish = finish;
  }

  async lane(lane: number): Promise<void> {
    const { seed, operationsPerSecond, lanes, beganNs } = this.#task;
    const random = new Random(seed * 1000 + lane);
    const burst = (operationsPerSecond / lanes) * (BURST_MS / 1000);
    let known = { key: '', version: 0n };
    while (!this.#over()) {
      for (let i = 0; i < burst && !this.#over(); i++) known = await this.#operation(lane, random, known);
      this.#record.flush();
      const sinceMs = (now() - beganNs) / 1e6;
      await sleep(BURST_MS - (sinceMs % BURST_MS));
    }
  }

  #over(): boolean {
    return this.#finish.aborted;
  }

  /** One operation; answers with the version that the next compare-and-swap may use. */
  async #operation(lane: number, random: Random, known: { readonly key: string; readonly version: bigint }): Promise<{ key: string; version: bigint }> {
    const key = this.#key(random);
    const timeoutMs = random.pick(TIMEOUTS);
    const kind = random.below(100);
    if (kind < 22) await this.#get(lane, key, random, timeoutMs);
    else if (kind < 27) await this.#getMany(lane, [key, this.#key(random), this.#key(random)], timeoutMs);
    else if (kind < 47) return { key, version: await this.#getEntry(lane, key, timeoutMs) };
    else if (kind < 69) await this.#put(lane, key, random, timeoutMs);
    else if (kind < 76) await this.#delete(lane, key, timeoutMs);
    else {
      // Mostly by what was just read, else by what has had time to grow old.
      const fresh = random.below(3) > 0 || known.key === '';
      const by = fresh ? { key, version: await this.#getEntry(lane, key, timeoutMs) } : known;
      if (by.version < 0n) return known;
      await this.#swap(lane, by.key, by.version, random, timeoutMs);
      return by;
    }
    return known;
  }

  #key(random: Random): string {
    const generation = Math.floor((now() - this.#task.beganNs) / 1e6 / this.#task.keysForMs);
    return this.#named(generation, random.below(this.#task.keys));
  }

  #named(generation: number, number: number): string {
    const key = `g${generation}-${number}`;
    this.#record.key(key, this.#kv.shardOf(key));
    return key;
  }

  async #get(lane: number, key: string, random: Random, timeoutMs: number): Promise<void> {
    const synchronous = this.#task.transport === 'shm' && random.below(2) === 0;
    const call = now();
    await this.#read(async () => {
      const value = synchronous ? this.#kv.getSync(key, { timeoutMs }) : await this.#kv.get(key, { timeoutMs });
      this.#record.read(lane, key, call, now(), this.#idOf(value), undefined);
    });
  }

  async #getMany(lane: number, keys: readonly string[], timeoutMs: number): Promise<void> {
    const call = now();
    await this.#read(async () => {
      const values = await this.#kv.getMany(keys, { timeoutMs });
      const end = now();
      for (const [i, value] of values.entries()) this.#record.read(lane, keys[i]!, call, end, this.#idOf(value), undefined);
    });
  }

  /** The version; 0n: absent, -1n: nobody knows. */
  async #getEntry(lane: number, key: string, timeoutMs: number): Promise<bigint> {
    const call = now();
    let version = -1n;
    await this.#read(async () => {
      const entry = await this.#kv.getEntry(key, { timeoutMs });
      version = entry?.version ?? 0n;
      this.#record.read(lane, key, call, now(), this.#idOf(entry?.value), entry?.version);
    });
    return version;
  }

  async #put(lane: number, key: string, random: Random, timeoutMs: number): Promise<void> {
    const { id, bytes } = this.#value(random);
    const signal = random.below(50) === 0 ? { signal: AbortSignal.timeout(1 + random.below(20)) } : {};
    await this.#change(lane, key, { kind: 'put', value: id }, () => this.#kv.put(key, bytes, { timeoutMs, ...signal }).then(() => 'stored'));
  }

  async #delete(lane: number, key: string, timeoutMs: number): Promise<void> {
    await this.#change(lane, key, { kind: 'delete' }, () => this.#kv.delete(key, { timeoutMs }).then((found) => (found ? 'deleted' : 'absent')));
  }

  async #swap(lane: number, key: string, expected: bigint, random: Random, timeoutMs: number): Promise<void> {
    if (expected !== 0n && random.below(6) === 0) {
      await this.#change(lane, key, { kind: 'swap', expected, value: undefined }, () => this.#kv.compareAndDelete(key, expected, { timeoutMs }));
      return;
    }
    const { id, bytes } = this.#value(random);
    await this.#change(lane, key, { kind: 'swap', expected, value: id }, () => this.#kv.compareAndSwap(key, expected, bytes, { timeoutMs }));
  }

  #value(random: Random): { id: string; bytes: Buffer } {
    const size = random.below(200);
    const id = `${this.#task.name}-${this.#values++}`;
    return { id, bytes: makeValue(id, size === 0 ? 200_000 + random.below(200_000) : size < 10 ? 2000 + random.below(30_000) : 20 + random.below(300)) };
  }

  async #read(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#record.failed(this.#codeOf(error));
    }
  }

  async #change(lane: number, key: string, asked: Asked, work: () => Promise<ChangeOutcome>): Promise<void> {
    const id = this.#record.ask(lane, key, now(), asked);
    try {
      const outcome = await work();
      this.#record.told(id, now(), outcome);
    } catch (error) {
      const code = this.#codeOf(error);
      this.#record.told(id, now(), code === 'ERR_INDETERMINATE' ? 'open' : 'no-effect', code);
    }
  }

  #idOf(value: Buffer | undefined): string | undefined {
    if (value === undefined) return undefined;
    const id = readValue(value);
    if (id === undefined) this.#record.wrong(`a value that is not whole: ${value.length} bytes, ${value.subarray(0, 60).toString('latin1')}`);
    return id;
  }

  #codeOf(error: unknown): string {
    if (!(error instanceof FarkvError)) {
      this.#record.wrong(error instanceof Error ? (error.stack ?? error.message) : String(error));
      return 'not an error of farkv';
    }
    if (NEVER.has(error.code)) this.#record.wrong(`${error.code}: ${error.message}`);
    return error.code;
  }

  /** Every key of late, until it was answered. False: the time is over. */
  async last(): Promise<boolean> {
    const generation = Math.floor((now() - this.#task.beganNs) / 1e6 / this.#task.keysForMs);
    const until = now() + FINAL_MS * 1e6;
    for (const g of [generation - 1, generation].filter((one) => one >= 0)) {
      for (let i = 0; i < this.#task.keys; i++) {
        const key = this.#named(g, i);
        while ((await this.#getEntry(0, key, 1000)) < 0n) {
          if (now() > until) return false;
          await sleep(20);
        }
      }
    }
    return true;
  }
}

async function connected({ servers, transport }: WorkerTask): Promise<Client<BufferValue, Buffer>> {
  for (;;) {
    try {
      return await connect({ servers, transport, strict: true });
    } catch (error) {
      if (!(error instanceof FarkvError)) throw error;
      await sleep(50);
    }
  }
}

const task = JSON.parse(process.argv[2] ?? '') as WorkerTask;
const record = new Recorder(task.file);
const input = createInterface({ input: process.stdin });
const finish = new AbortController();
// Closed before that: whoever wanted to know is gone.
input.on('line', () => finish.abort()).on('close', () => (finish.signal.aborted ? undefined : process.exit(4)));
const kv = await connected(task);
const worker = new Worker(task, kv, record, finish.signal);
await Promise.all(Array.from({ length: task.lanes }, (_, lane) => worker.lane(lane)));
const answered = await worker.last();
record.close();
await kv.close();
input.close();
process.exitCode = answered ? 0 : 3;
