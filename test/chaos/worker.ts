/**
 * One client process of a run: `node worker.js JSON`, with a WorkerTask. It connects, makes every call of calls.ts once
 * in every form of a key, then calls at random in several lanes until its standard input says "finish", then reads
 * every key of late, or of the run, until each one has been answered, and ends. Exit codes: 0; 3: some key was not answered in FINAL_MS
 * although nothing disturbs any more; 4: whoever started it is gone.
 *
 * All workers begin their bursts at the same moments and use the same few keys, so operations do meet. Mostly a lane
 * has one call under way, now and then it begins several in one turn of the event loop, whose answers then come
 * together.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createInterface } from 'node:readline';
import {
  connect,
  FarkvError,
  type BufferValue,
  type Client,
  type ConnectOptions,
  type TransportChoice,
} from '../../client/index.js';
import { Random } from '../support/random.js';
import { CALLS, type Call } from './calls.js';
import { get, getEntry, getMany } from './calls-reads.js';
import { Caller, now, type ClientState } from './caller.js';
import { tlsTrust } from '../support/tls-files.js';
import { HeldValues } from './held.js';
import { FORMS, keysOfGeneration, tailKeysOf, wideKeys, type ChaosKey } from './keys.js';
import { Recorder } from './record.js';

export interface WorkerTask {
  /** Unique in the run. */
  readonly name: string;
  /** 0 to COUNTED_CLIENTS - 1; a client that comes in the place of another has its number. */
  readonly number: number;
  readonly file: string;
  readonly servers: readonly string[];
  readonly transport: TransportChoice;
  readonly tls: boolean;
  readonly seed: number;
  readonly lanes: number;
  /** Calls of all lanes together. */
  readonly operationsPerSecond: number;
  /** CLOCK_MONOTONIC, when the run began. */
  readonly beganNs: number;
  readonly keysForMs: number;
  /** Calls come in bursts, one of all clients in each such time. */
  readonly burstMs: number;
  /** Every key of the run is read at the end; else those of late. */
  readonly readsAll: boolean;
}

const FINAL_MS = 60_000;
const FEW_OUTSTANDING = 16;

/** Weighted draws; what spins is only for transports that can. */
class Draw {
  readonly #calls: readonly Call[];
  readonly #sum: number;

  constructor(shm: boolean) {
    this.#calls = CALLS.filter((call) => shm || call.synchronous !== true);
    this.#sum = this.#calls.reduce((sum, { weight }) => sum + weight, 0);
  }

  get all(): readonly Call[] {
    return this.#calls;
  }

  one(random: Random): Call {
    let at = (random.below(1_000_000) / 1_000_000) * this.#sum;
    return this.#calls.find(({ weight }) => (at -= weight) < 0) ?? this.#calls[0]!;
  }
}

class Worker {
  readonly #task: WorkerTask;
  readonly #client: ClientState;
  readonly #finish: AbortSignal;
  readonly #draw: Draw;

  constructor(task: WorkerTask, client: ClientState, finish: AbortSignal) {
    this.#task = task;
    this.#client = client;
    this.#finish = finish;
    this.#draw = new Draw(client.shm);
  }

  /** Every call in every form: no run is without any. */
  async tour(): Promise<void> {
    const caller = this.#caller(99);
    for (const call of this.#draw.all) {
      for (const form of call.plain ? FORMS : FORMS.slice(0, 1)) if (!this.#over()) await call.run(caller, form);
    }
  }

  #over(): boolean {
    return this.#finish.aborted;
  }

  async lane(lane: number): Promise<void> {
    const { operationsPerSecond, lanes, beganNs, burstMs } = this.#task;
    const { record, held } = this.#client;
    const caller = this.#caller(lane);
    const { random } = caller;
    const burst = (operationsPerSecond / lanes) * (burstMs / 1000);
    let due = 0;
    while (!this.#over()) {
      for (due = Math.min(due, 0) + burst; due > 0 && !this.#over();) due -= await this.#some(caller);
      held.lookAtSome(random);
      record.flush();
      const sinceMs = (now() - beganNs) / 1e6;
      await sleep(burstMs - (sinceMs % burstMs));
    }
  }

  /** One call, or several in one turn. Answers how many. */
  async #some(caller: Caller): Promise<number> {
    const { random } = caller;
    if (random.below(8) > 0) {
      await this.#draw.one(random).run(caller, random.pick(FORMS));
      return 1;
    }
    const calls = Array.from({ length: 2 + random.below(7) }, () => {
      const kind = random.below(4);
      const run = kind === 0 ? get : kind === 1 ? getMany : this.#draw.one(random).run;
      return run(caller, random.pick(FORMS));
    });
    await Promise.all(calls);
    return calls.length;
  }

  #caller(lane: number): Caller {
    return new Caller(this.#client, lane, new Random(this.#task.seed * 1000 + lane));
  }

  async #answered(caller: Caller, key: ChaosKey): Promise<boolean> {
    caller.known = undefined;
    await getEntry(caller, 'Buffer', key, { timeoutMs: 1000 });
    return (caller.known as Caller['known']) !== undefined;
  }

  #lastKeys(): readonly ChaosKey[] {
    const generation = this.#client.generation();
    const { readsAll } = this.#task;
    const late = Array.from({ length: generation + 1 }, (_, i) => i)
      .slice(readsAll ? 0 : -2)
      .flatMap((one) => [...keysOfGeneration(one), ...tailKeysOf(one)]);
    return [...late, ...(readsAll ? wideKeys() : [])].filter(({ of }) => of !== 'y');
  }

  /** Each of them, until it was answered. False: the time is over. */
  async last(): Promise<boolean> {
    const caller = this.#caller(98);
    const until = now() + FINAL_MS * 1e6;
    for (const key of this.#lastKeys()) {
      while (!(await this.#answered(caller, key))) {
        if (now() > until) return false;
        await sleep(20);
      }
    }
    return true;
  }
}

async function connected(options: ConnectOptions): Promise<Client<BufferValue, Buffer>> {
  for (;;) {
    try {
      return await connect(options);
    } catch (error) {
      if (!(error instanceof FarkvError)) throw error;
      await sleep(50);
    }
  }
}

const task = JSON.parse(process.argv[2] ?? '') as WorkerTask;
const { servers, transport } = task;
const record = new Recorder(task.file);
const input = createInterface({ input: process.stdin });
const finish = new AbortController();
// Closed before that: whoever wanted to know is gone.
input.on('line', () => finish.abort()).on('close', () => (finish.signal.aborted ? undefined : process.exit(4)));
// Of every other client most operations wait for room.
const maxOutstanding = task.seed % 2 === 0 ? FEW_OUTSTANDING : undefined;
const connection: ConnectOptions = {
  servers,
  transport,
  strict: true,
  ...(task.tls ? { tls: tlsTrust() } : {}),
  ...(maxOutstanding === undefined ? {} : { maxOutstanding }),
};
const held = new HeldValues(({ key, by, cameNs }, what) => {
  const [lane = '', via = ''] = by.split(/ (.*)/su);
  record.wrong({ lane: Number(lane), via }, { what, key, call: cameNs, end: now() });
});
const client: ClientState = {
  name: task.name,
  number: task.number,
  kv: await connected(connection),
  connection,
  record,
  held,
  shm: transport === 'shm',
  views: new Map(),
  prepared: new Map(),
  written: 0,
  generation: () => Math.floor((now() - task.beganNs) / 1e6 / task.keysForMs),
};
const worker = new Worker(task, client, finish.signal);
const tallying = setInterval(() => record.tally(held.looks), 2000);
await worker.tour();
await Promise.all(Array.from({ length: task.lanes }, (_, lane) => worker.lane(lane)));
const answered = await worker.last();
if (!answered)
  process.stderr.write(
    `${JSON.stringify({ transports: client.kv.transports(), stats: client.kv.stats() }, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))}\n`,
  );
clearInterval(tallying);
await client.kv.close();
held.lookAtAll();
record.tally(held.looks);
record.close();
input.close();
process.exitCode = answered ? 0 : 3;
