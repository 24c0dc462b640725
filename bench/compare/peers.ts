/**
 * The stores that farkv is compared with, started on loopback and stopped again; without persistence, unless a row
 * wants it. Nothing is installed: a missing program is named with the Debian package that brings it.
 */
import { tmpdir } from 'node:os';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '../../test/support/cluster.js';

const STOP_MS = 10_000;

export interface Peer {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Programs that are not npm packages, with the Debian package that brings each. */
const PROGRAMS = {
  'redis-server': 'redis-server',
  'redis-benchmark': 'redis-tools',
  memcached: 'memcached',
  etcd: 'etcd-server',
  gcc: 'gcc',
  make: 'make',
} as const;
export type Program = keyof typeof PROGRAMS;

/** What a program prints of its version: its number, or undefined when it is not installed. */
export function versionOf(program: Program): string | undefined {
  const { error, stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return error === undefined ? (/\d+(?:\.\d+)+/.exec(stdout)?.[0] ?? 'unknown') : undefined;
}

/** One line for each program that is not installed. */
export function missingPrograms(programs: readonly Program[]): string[] {
  return programs
    .filter((program) => versionOf(program) === undefined)
    .map((program) => `${program} is needed and is not installed: apt-get install ${PROGRAMS[program]}`);
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

export async function startPeer(program: Program, args: (port: number) => string[]): Promise<Peer> {
  const [port = 0] = await freePorts(1);
  const child: ChildProcess = spawn(program, args(port), { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const exited = once(child, 'exit');
  // Whatever ends this process, the program ends with it.
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  const deadline = Date.now() + 10_000;
  while (!(await accepts(port))) {
    if (child.exitCode !== null || Date.now() > deadline)
      throw new Error(`${program} did not start on port ${port}: ${said}`);
    await delay(20);
  }
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const timer = setTimeout(kill, STOP_MS);
    await exited;
    clearTimeout(timer);
    process.removeListener('exit', kill);
  };
  return { port, pid: child.pid ?? 0, stop };
}

/** PEM files of 127.0.0.1. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

export interface RedisOptions {
  readonly tls?: Certificate | undefined;
  /** A replica of the server on this port. */
  readonly replicaOf?: number;
  /**
   * Every change is appended to a file in the directory, which is synced as `fsync` says. The file is never rewritten:
   * that would be work beside what is measured.
   */
  readonly appendOnly?: { readonly directory: string; readonly fsync: 'always' | 'everysec' };
}

export function startRedis({ tls, replicaOf: of, appendOnly }: RedisOptions = {}): Promise<Peer> {
  return startPeer('redis-server', (port) => [
    ...(tls === undefined ? ['--port', String(port)] : ['--port', '0', '--tls-port', String(port)]),
    ...(tls === undefined
      ? []
      : ['--tls-cert-file', tls.cert, '--tls-key-file', tls.key, '--tls-ca-cert-file', tls.ca]),
    ...(tls === undefined ? [] : ['--tls-auth-clients', 'no', '--tls-ciphersuites', 'TLS_AES_128_GCM_SHA256']),
    '--bind',
    '127.0.0.1',
    // What a replica is sent is written there first.
    '--dir',
    appendOnly?.directory ?? tmpdir(),
    '--rdb-del-sync-files',
    'yes',
    '--save',
    '',
    ...(appendOnly === undefined
      ? ['--appendonly', 'no']
      : ['--appendonly', 'yes', '--appendfsync', appendOnly.fsync, '--auto-aof-rewrite-percentage', '0']),
    '--daemonize',
    'no',
    '--loglevel',
    'warning',
    ...(of === undefined ? [] : ['--replicaof', '127.0.0.1', String(of)]),
  ]);
}

export function startMemcached(memoryMb: number, tls?: Certificate): Promise<Peer> {
  const user = process.getuid?.() === 0 ? ['-u', 'root'] : [];
  return startPeer('memcached', (port) => [
    '-l',
    '127.0.0.1',
    '-p',
    String(port),
    '-U',
    '0',
    '-m',
    String(memoryMb),
    ...(tls === undefined ? [] : ['-Z', '-o', `ssl_chain_cert=${tls.cert},ssl_key=${tls.key}`]),
    ...user,
  ]);
}

/** Connections of redis-benchmark, and requests that each sends at once. */
export interface Pipelines {
  readonly clients: number;
  readonly depth: number;
}

/**
 * `redis-benchmark -c 1 -P 100`, or as many as `pipelines` says, of one command; requests per second as it prints them. In `command` the text
 * __rand_int__ stands for a number below `keys`, in 12 digits, so that user__rand_int__ is a key that was loaded.
 */
export async function redisBenchmark(
  port: number,
  keys: number,
  requests: number,
  command: readonly string[],
  { clients, depth }: Pipelines = { clients: 1, depth: 100 },
): Promise<number> {
  const args = [
    '-h',
    '127.0.0.1',
    '-p',
    String(port),
    '--csv',
    '-c',
    String(clients),
    '-P',
    String(depth),
    '-n',
    String(requests),
    '-r',
    String(keys),
    ...command,
  ];
  const child = spawn('redis-benchmark', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await once(child, 'close');
  // "test","rps",...  then one line a test: "SET","123456.78",...
  const rate = /^"(?:SET|GET)[^"]*","([\d.]+)"/m.exec(text)?.[1];
  if (rate === undefined) throw new Error(`redis-benchmark printed no rate: ${text}`);
  return Number(rate);
}
