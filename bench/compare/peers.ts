/**
 * The stores that farkv is compared with, started on loopback without persistence and stopped again. Nothing is installed: a
 * missing program is named with the Debian package that brings it.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { AddressInfo } from 'node:net';

export interface Peer {
  readonly name: string;
  readonly version: string;
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

/** The first line that a program prints of its version. */
function versionOf(program: string, debianPackage: string): string {
  const r = spawnSync(program, ['--version'], { encoding: 'utf8' });
  if (r.error !== undefined) {
    throw new Error(`${program} is needed for the comparison and is not installed: apt-get install ${debianPackage}`, { cause: r.error });
  }
  return r.stdout.split('\n')[0]?.trim() ?? 'unknown';
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function start(name: string, version: string, program: string, args: (port: number) => string[]): Promise<Peer> {
  const port = await freePort();
  const child: ChildProcess = spawn(program, args(port), { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const exited = once(child, 'exit');
  const deadline = Date.now() + 10_000;
  while (!(await accepts(port))) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`${program} did not start on port ${port}: ${said}`);
    await delay(20);
  }
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
  };
  return { name, version, port, pid: child.pid ?? 0, stop };
}

export function startRedis(): Promise<Peer> {
  const version = versionOf('redis-server', 'redis-server redis-tools');
  return start('redis', version, 'redis-server', (port) => [
    '--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--daemonize', 'no', '--loglevel', 'warning',
  ]);
}

export function startMemcached(memoryMb: number): Promise<Peer> {
  const version = versionOf('memcached', 'memcached');
  const user = process.getuid?.() === 0 ? ['-u', 'root'] : [];
  return start('memcached', version, 'memcached', (port) => ['-l', '127.0.0.1', '-p', String(port), '-U', '0', '-m', String(memoryMb), ...user]);
}

/** `redis-benchmark` of one command; requests per second as it prints them. */
export async function redisBenchmark(port: number, args: readonly string[]): Promise<number> {
  const child = spawn('redis-benchmark', ['-h', '127.0.0.1', '-p', String(port), '--csv', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await once(child, 'close');
  // "test","rps",...  then one line a test: "SET","123456.78",...
  const rate = /^"(?:SET|GET)[^"]*","([\d.]+)"/m.exec(text)?.[1];
  if (rate === undefined) throw new Error(`redis-benchmark printed no rate: ${text}`);
  return Number(rate);
}
