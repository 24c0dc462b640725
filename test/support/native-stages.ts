/**
 * A program that ends at one stage of a client's life: run as a child process or as a worker thread by
 * native/node/client-life.test.ts, with the stage's name as its argument. It prints what it has to say and must not
 * crash.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { CompletionField } from '../../native/native-client.js';
import { Driver, Plane, type PlaneOptions } from './native-pair.js';

const say = (text: string): void => {
  if (isMainThread) process.stdout.write(`${text}\n`);
  else parentPort?.postMessage(text);
};

const collect = (): void => (globalThis as { gc?: () => void }).gc?.();

interface Pair {
  readonly plane: Plane;
  readonly client: Driver;
}

async function pair(o: PlaneOptions = {}): Promise<Pair> {
  const plane = await Plane.start(o);
  return { plane, client: Driver.to(plane) };
}

export const stages: Readonly<Record<string, () => Promise<void>>> = {
  /** Made, never told of an owner. */
  made: () => {
    new Driver();
    say('made');
    return Promise.resolve();
  },
  'made and closed': () => {
    new Driver().close();
    say('closed');
    return Promise.resolve();
  },
  'made and collected': async () => {
    for (let i = 0; i < 20; i++) new Driver();
    for (let i = 0; i < 5; i++) {
      collect();
      await new Promise(setImmediate);
    }
    say('collected');
  },
  /** An idle client that is connected does not keep the process. */
  'connected and idle': async () => {
    const { plane, client } = await pair();
    await client.put('a', 'v');
    await plane.close();
    say('idle');
  },
  'trying to connect': async () => {
    const plane = await Plane.start();
    await plane.close();
    Driver.to(plane);
    say('trying');
  },
  /** An operation that is outstanding keeps the process until it has ended. */
  'outstanding until its time is over': async () => {
    const { plane, client } = await pair({ closed: true });
    await plane.close();
    // How far an operation comes in its time is a matter of the machine; once the reason is known, it ends with that.
    const ends = async (): Promise<void> => {
      const { status } = await client.get('a', 100);
      if (status === 'ERR_TIMEOUT') await ends();
      else say(status);
    };
    void ends();
  },
  'outstanding and exit': async () => {
    const { client } = await pair({ closed: true });
    for (let i = 0; i < 50; i++) {
      void client.get(`k${i}`);
      void client.put(`k${i}`, Buffer.alloc(i * 1000));
    }
    await new Promise(setImmediate);
    say('exiting');
    process.exit(0);
  },
  'in the middle of values and exit': async () => {
    const { client } = await pair({ provider: 'tcp', memoryBytes: 32 << 20 });
    await client.put('large', Buffer.alloc(4 << 20, 1));
    for (let i = 0; i < 20; i++) void client.get('large');
    client.native.flush();
    say('exiting');
    process.exit(0);
  },
  'an exception that nobody catches': async () => {
    const { client } = await pair();
    await client.put('a', 'v');
    void client.get('b');
    say('throwing');
    throw new Error('on purpose');
  },
  'closed and not drained': async () => {
    const { plane, client } = await pair({ closed: true });
    void client.get('a');
    void client.put('b', 'v');
    client.native.close();
    await plane.close();
    say('closed');
  },
  /**
   * What is held belongs to the lookup until it is taken; a client that is closed before copies it, for which there may
   * be no memory.
   */
  'closed with a held value and no memory left': async () => {
    const bytes = 48 << 20; // above what malloc serves from memory that it has already
    let ready = (): void => undefined;
    const ended = new Promise<void>((resolve) => (ready = resolve));
    const plane = await Plane.start({ provider: 'tcp', memoryBytes: 128 << 20 });
    const writer = Driver.to(plane);
    await writer.put('large', Buffer.alloc(bytes, 1));
    const { native } = Driver.to(plane, { onReady: () => ready() });
    native.get(0, 'large', undefined, 0, 60_000);
    native.flush();
    await ended;
    native.drain(Buffer.alloc(1));
    const id = native.completions[CompletionField.Id]!;
    const target = Buffer.alloc(bytes);
    // What is used changes by little from here on: V8 has no threads of its own in this program, and no garbage left.
    collect();
    const inUse = Number(/^VmSize:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]) * 1024;
    execFileSync('prlimit', [`--pid=${process.pid}`, `--as=${inUse + (bytes / 4) * 3}`]);
    native.close();
    try {
      native.take(id, target);
      say('taken');
    } catch (error) {
      say((error as { code: string }).code);
    }
    process.exit(0);
  },
  'methods outlive the client': async () => {
    const { plane, client } = await pair();
    await client.put('a', 'v');
    const methods = { ...client.native };
    client.native.close();
    await plane.close();
    for (let i = 0; i < 5; i++) {
      collect();
      await new Promise(setImmediate);
    }
    say(`${methods.get(0, 'a', undefined, 0, 10)} ${methods.drain(Buffer.alloc(1))} ${methods.stats().gets}`);
  },
  'arrays outlive the client': async () => {
    let info: Uint32Array;
    {
      const { plane, client } = await pair();
      await client.put('a', 'v');
      ({ info } = client.native);
      client.native.close();
      await plane.close();
    }
    for (let i = 0; i < 5; i++) {
      collect();
      await new Promise(setImmediate);
    }
    info[0] = 7;
    say(String(info[0]));
  },
  'works until it is ended': async () => {
    const { client } = await pair();
    await client.put('a', 'v');
    say('working');
    for (let i = 0; ; i++) {
      await Promise.all([
        client.put(`k${i % 100}`, 'v'),
        client.get(`k${i % 100}`),
        client.delete(`k${(i + 50) % 100}`),
      ]);
    }
  },
  'a whole life': async () => {
    const { plane, client } = await pair();
    for (let i = 0; i < 200; i++) await client.put(`k${i}`, `v${i}`);
    for (let i = 0; i < 200; i++) {
      const { value } = await client.get(`k${i}`);
      if (value.toString() !== `v${i}`) throw new Error(`k${i} is ${value.toString()}`);
    }
    client.close();
    await plane.close();
    say('lived');
  },
};

const stage = isMainThread ? process.argv[2] : (workerData as string);
await stages[stage ?? '']?.();
