/**
 * Builds bench/micro/region_loop.c, the floor under a GET over shared memory on this machine, and asks it for one round
 * after the other. It attaches the memory of farkv's running servers, as the SDK does, and reads it without the SDK.
 */
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { Routes } from '../../client/routes.js';
import { localCapabilities } from '../../client/transport.js';
import { MapAssembler, type ClientMap } from '../../core/protocol/index.js';
import { ControlClient } from '../../net/control-client.js';
import { inRepository } from '../repository.js';
import { LineProcess } from './line-process.js';

const MAP_TIMEOUT_MS = 10_000;

export interface RegionLoop {
  /**
   * Mean nanoseconds a GET of a plain C loop, which checks nothing and prefetches nothing, over the keys of these
   * numbers, in this order.
   */
  plainNs(order: Uint32Array): Promise<number>;
  stop(): Promise<void>;
}

function built(): string {
  const program = inRepository('build/region_loop');
  const sources = ['region_loop.c', 'running.h', 'rig.h'].map((name) => inRepository('bench/micro', name));
  const library = inRepository('build/native/libfarkv.a');
  execFileSync('make', ['-s', '-C', inRepository('native'), '../build/native/libfarkv.a'], { stdio: 'inherit' });
  const newest = Math.max(...[...sources, library].map((path) => statSync(path).mtimeMs));
  if ((statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0) < newest) {
    execFileSync('gcc', ['-O2', '-D_GNU_SOURCE', '-o', program, sources[0] ?? '', library, '-pthread', '-ldl', '-lm'], {
      stdio: 'inherit',
    });
  }
  return program;
}

/** What the servers tell each client: where all shards are, and a ticket for their data planes. */
async function mapOf(address: string): Promise<{ readonly map: ClientMap; readonly ticket: Uint8Array }> {
  const assembler = new MapAssembler();
  let timer: NodeJS.Timeout | undefined;
  let taken: (map: ClientMap) => void = () => undefined;
  const map = new Promise<ClientMap>((resolve, reject) => {
    taken = resolve;
    timer = setTimeout(
      () => reject(new Error(`${address} sent no map within ${MAP_TIMEOUT_MS / 1000} s`)),
      MAP_TIMEOUT_MS,
    );
  });
  map.catch(() => undefined);
  let pushed: Uint8Array | undefined;
  try {
    const client = await ControlClient.open({
      address,
      trust: undefined,
      timeoutMs: MAP_TIMEOUT_MS,
      hello: { role: 'client' },
      frame: (frame) => {
        if (frame.t !== 'map') return;
        pushed = frame.ticket ?? pushed;
        const whole = assembler.push(frame);
        if (whole !== undefined) taken(whole);
      },
    });
    const whole = await map;
    client.close();
    const ticket = pushed ?? client.welcome.ticket;
    if (ticket === undefined) throw new Error(`${address} gave no ticket`);
    return { map: whole, ticket };
  } finally {
    clearTimeout(timer);
  }
}

/** The lines that bench/micro/running.h reads. */
export function description(map: ClientMap, ticket: Uint8Array, value: Uint8Array, here = localCapabilities()): string {
  const { owners, routes } = new Routes({ choice: 'shm', strict: true, secure: false }, here).update(map);
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
  const lines = [`seed ${map.hashSeed}`, `ticket ${hex(ticket)}`, `value ${hex(value)}`];
  for (const { owner, serverIncarnation, addresses } of owners) {
    const [first] = addresses;
    if (first === undefined) throw new Error('the C loop needs servers that can be reached over shm');
    lines.push(`owner ${owner} ${serverIncarnation.toString(16)} ${first.address}`);
  }
  for (const { shard, owner } of routes) {
    if (owner < 0) throw new Error(`shard ${shard} has no owner`);
    lines.push(`route ${shard} ${owner}`);
  }
  return [...lines, 'end'].join('\n');
}

/**
 * `address`: a farkv server whose cluster has been loaded with keys 0 to `keys` - 1 (keyOf), each with `value`.
 * Resolves when all of them were read once.
 */
export async function regionLoop(address: string, keys: number, value: Uint8Array): Promise<RegionLoop> {
  const program = built();
  const { map, ticket } = await mapOf(address);
  const loop = new LineProcess(program, [String(keys), 'running']);
  try {
    if ((await loop.ask(description(map, ticket, value))) !== 'ready')
      throw new Error('region_loop is another one than expected');
  } catch (error) {
    await loop.stop();
    throw error;
  }
  return {
    plainNs: async (order) =>
      Number(await loop.ask(String(order.length), new Uint8Array(order.buffer, order.byteOffset, order.byteLength))),
    stop: () => loop.stop(),
  };
}
