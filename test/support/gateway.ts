/** A `farkv gateway` for a test, alone or beside a real redis-server, and connections that send and compare bytes. */
import type { ExecutionContext } from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { CLI, Cluster, freePorts } from './cluster.js';
import { startRedis } from './redis-server.js';

export type Command = readonly (string | Buffer)[];

export function encode(command: Command): Buffer {
  const parts = command.map((word) => Buffer.from(word));
  return Buffer.concat([
    Buffer.from(`*${parts.length}\r\n`),
    ...parts.flatMap((part) => [Buffer.from(`$${part.length}\r\n`), part, Buffer.from('\r\n')]),
  ]);
}

/** A connection as a program has it that knows nothing of replies: bytes, up to what follows them. */
export class Raw {
  readonly #socket: Socket;
  #heard = Buffer.alloc(0);
  #ended = false;
  #changed: () => void = () => undefined;
  #markers = 0;

  constructor(t: ExecutionContext, port: number) {
    this.#socket = createConnection({ host: '127.0.0.1', port, noDelay: true });
    this.#socket
      .on('data', (bytes: Buffer) => {
        this.#heard = Buffer.concat([this.#heard, bytes]);
        this.#changed();
      })
      .on('close', () => {
        this.#ended = true;
        this.#changed();
      })
      .on('error', () => undefined);
    t.teardown(() => this.#socket.destroy());
  }

  /** What comes before the answer to a marker that is sent behind it, or before the end. */
  async ask(bytes: Buffer): Promise<string> {
    const marker = `marker-${++this.#markers}`;
    const answer = `$${marker.length}\r\n${marker}\r\n`;
    this.#socket.write(Buffer.concat([bytes, encode(['ECHO', marker])]));
    while (!this.#ended && !this.#heard.subarray(-answer.length).equals(Buffer.from(answer)))
      await new Promise<void>((resolve) => (this.#changed = resolve));
    const text = this.#heard.toString('latin1');
    this.#heard = Buffer.alloc(0);
    return text.endsWith(answer) ? text.slice(0, -answer.length) : text;
  }
}

export async function startGateway(t: ExecutionContext, ...more: readonly string[]) {
  const cluster = await Cluster.start(t, { servers: 1, memory: '256mb' });
  const args = [CLI, 'gateway', '--connect', cluster.addresses.join(','), '--listen', '127.0.0.1:0', ...more];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  const stop = async (): Promise<unknown> => {
    child.kill('SIGTERM');
    return await ended;
  };
  t.teardown(stop);
  for await (const line of createInterface({ input: child.stdout })) {
    const port = Number(/127\.0\.0\.1:(\d+)$/.exec(line)?.[1]);
    const signal = (name: NodeJS.Signals): boolean => child.kill(name);
    return { cluster, port, stop, signal };
  }
  throw new Error('the gateway ended');
}

export async function both(t: ExecutionContext, ...more: readonly string[]) {
  const [redisPort = 0] = await freePorts(1);
  await startRedis(t, redisPort);
  const { port, cluster } = await startGateway(t, ...more);
  return { cluster, port, redisPort, farkv: new Raw(t, port), redis: new Raw(t, redisPort) };
}
