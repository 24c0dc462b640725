/**
 * Client processes that GET over shm when they are told to. This file is the parent's side and, started as a program,
 * the child's.
 */
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { connect } from '../../client/index.js';
import { drawingNumbers, meanNs } from './loops.js';
import { LineProcess } from './line-process.js';
import { keyOf } from './stores.js';

const SELF = fileURLToPath(import.meta.url);
const SLICE = 5000;
/**
 * Processes that start at once: sixteen together would share two cores for longer than a server waits for a word of
 * each.
 */
const STARTING = 2;
const CONNECT_MS = 60_000;

export class Readers {
  readonly #readers: readonly LineProcess[];

  private constructor(readers: readonly LineProcess[]) {
    this.#readers = readers;
  }

  /** Resolves when all are connected. */
  static async start(count: number, address: string, keys: number, valueBytes: number): Promise<Readers> {
    const readers: LineProcess[] = [];
    const started = new Readers(readers);
    try {
      while (readers.length < count) {
        const some = Array.from(
          { length: Math.min(STARTING, count - readers.length) },
          () => new LineProcess(process.execPath, [SELF, address, String(keys), String(valueBytes)]),
        );
        readers.push(...some);
        await Promise.all(some.map((reader) => reader.heard()));
      }
      return started;
    } catch (error) {
      await started.stop();
      throw error;
    }
  }

  /** The first `processes` of them read for so long; how many GETs that were. */
  async read(processes: number, ms: number): Promise<number> {
    const gets = await Promise.all(this.#readers.slice(0, processes).map((reader) => reader.ask(String(ms))));
    return gets.reduce((sum, text) => sum + Number(text), 0);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.stop()));
  }
}

async function child(address: string, keys: number, valueBytes: number): Promise<void> {
  const client = await connect({ servers: address, transport: 'shm', strict: true, connectTimeoutMs: CONNECT_MS });
  const target = Buffer.alloc(valueBytes + 64);
  const some = Array.from(drawingNumbers(keys, process.pid)(20 * SLICE), keyOf);
  process.stdout.write('ready\n');
  for await (const line of createInterface({ input: process.stdin })) {
    const end = performance.now() + Number(line);
    let gets = 0;
    while (performance.now() < end) {
      const from = gets % some.length;
      await meanNs(some.slice(from, from + SLICE), (key) => client.getInto(key, target));
      gets += SLICE;
    }
    process.stdout.write(`${gets}\n`);
  }
  await client.close();
}

if (process.argv[1] === SELF) await child(process.argv[2] ?? '', Number(process.argv[3]), Number(process.argv[4]));
