/**
 * Real server processes for integration tests: start N of them, wait until each says that it is ready, kill them, start
 * them again, and take everything away at the end whatever happened. They are run as an operator would run them: `farkv
 * server ...` from dist, on loopback, each with a data directory of its own under the system's temporary directory.
 *
 *     const cluster = await Cluster.start(t, { servers: 3 });
 *     ... cluster.addresses for connect() ...
 *     await cluster.servers[0].kill();          // SIGKILL, and waits for the end
 *     await cluster.servers[0].start();         // again, same directory, same port; waits for its ready line
 *
 * Not for: tests of one function; they need no process.
 */
import type { ExecutionContext } from 'ava';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** dist/server/cli/main.js */
export const CLI = fileURLToPath(new URL('../../server/cli/main.js', import.meta.url));

/** What `farkv server --json` prints when it is ready. */
export interface ReadyLine {
  readonly event: 'ready';
  readonly id: string;
  readonly clusterId: string;
  readonly control: readonly string[];
  readonly peer: readonly string[];
  readonly http: readonly string[];
  readonly fabric: readonly { readonly provider: string; readonly address: string; readonly worker: number }[];
  readonly shards: readonly number[];
  readonly dataDir: string;
  readonly pid: number;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ClusterOptions {
  /** Default 1. */
  readonly servers?: number;
  /** Default 4 for each server. */
  readonly shards?: number;
  /** Default 64mb. */
  readonly memory?: string;
  /** Default: the product's, replicated with three servers or more. */
  readonly level?: 'cache' | 'replicated' | 'durable';
  /** Where data directories lie; default: the system's temporary directory. */
  readonly within?: string;
  /** More options of `farkv server`, for every server. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Wait for the ready lines of those that were started; default true. */
  readonly ready?: boolean;
  /** Servers of the list that are not started: the others wait for them as long as the product does. */
  readonly absent?: readonly number[];
}

/** Ports of one process of tests; its first one is held as long as the process lives. */
const RANGE = 200;
const RANGES = 60;
let range: Promise<number> | undefined;
let taken = 0;

/** A listener at this port of loopback; undefined: there is one already. */
export async function listens(port: number): Promise<Server | undefined> {
  const server = createServer();
  return await new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

async function claimRange(): Promise<number> {
  for (let i = 0; i < RANGES; i++) {
    const first = 20_000 + RANGE * ((process.pid + i) % RANGES);
    const held = await listens(first);
    if (held !== undefined) {
      held.unref();
      return first;
    }
  }
  throw new Error(`no range of ports from 20000 to ${20_000 + RANGE * RANGES} is free`);
}

/**
 * Loopback ports below the range that the kernel gives to outgoing connections, so that nothing takes them between two
 * starts; and of a range that no other process of tests draws from.
 */
export async function freePorts(count: number): Promise<number[]> {
  range ??= claimRange();
  const first = await range;
  const found: number[] = [];
  for (let i = 0; i < RANGE && found.length < count; i++) {
    const port = first + 1 + (taken++ % (RANGE - 1));
    const server = await listens(port);
    if (server === undefined) continue;
    server.close();
    await once(server, 'close');
    found.push(port);
  }
  if (found.length < count) throw new Error(`no ${count} ports from ${first} on are free`);
  return found;
}

/** Any free ports: those that follow from a control port may be another test's. */
const dataPorts = (given: readonly string[]): readonly string[] =>
  given.includes('--fabric-listen') ? [] : ['--fabric-listen', '127.0.0.1:0'];

export class ServerProcess {
  readonly id: string;
  /** host:port of the control port. */
  readonly address: string;
  /** host:port of the port between servers. */
  readonly peer: string;
  readonly dataDir: string;
  args: readonly string[];
  /**
   * What the command line begins with, such as `nsenter ...`; it must become the server without a process in between.
   */
  launcher: readonly string[] = [];
  /** More options of Node.js. */
  nodeOptions: readonly string[] = [];
  stdout = '';
  stderr = '';
  readyLine: ReadyLine | undefined;
  readonly #env: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #exit: Promise<Exit> = Promise.resolve({ code: null, signal: null });
  #watchers: (() => void)[] = [];

  constructor(
    id: string,
    { address, peer }: { readonly address: string; readonly peer: string },
    dataDir: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ) {
    this.id = id;
    this.address = address;
    this.peer = peer;
    this.dataDir = dataDir;
    this.args = args;
    this.#env = env;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error(`${this.id} is not running`);
    return pid;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** How the process that was started last ended; waits for it. */
  get exit(): Promise<Exit> {
    return this.#exit;
  }

  /** Starts the process without waiting for anything but its id. Earlier output is forgotten. */
  launch(): void {
    if (this.running) throw new Error(`${this.id} is running already`);
    this.stdout = '';
    this.stderr = '';
    this.readyLine = undefined;
    const [command = '', ...words] = [
      ...this.launcher,
      process.execPath,
      '--enable-source-maps',
      ...this.nodeOptions,
      CLI,
      'server',
      '--json',
      '--stop-with-stdin',
      ...this.args,
    ];
    const child = spawn(command, words, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...this.#env } });
    this.#child = child;
    child.stdin.on('error', () => undefined);
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
      this.#changed();
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.stdout += `${line}\n`;
      if (line.startsWith('{"event":"ready"')) this.readyLine = JSON.parse(line) as ReadyLine;
      this.#changed();
    });
    this.#exit = new Promise((resolve) => {
      child.once('error', () => resolve({ code: null, signal: null }));
      child.once('close', (code, signal) => {
        resolve({ code, signal });
        this.#changed();
      });
    });
  }

  /** Launches and waits for the ready line. Fails with what the server said when it ends instead. */
  async start(): Promise<ReadyLine> {
    this.launch();
    return await this.ready();
  }

  async ready(): Promise<ReadyLine> {
    await this.waitUntil(() => this.readyLine !== undefined, 'its ready line');
    if (this.readyLine === undefined) throw new Error('unreachable');
    return this.readyLine;
  }

  /** Waits until `text` (or a match) has been written to standard error since the launch. */
  async said(text: string | RegExp): Promise<void> {
    await this.waitUntil(
      () => (typeof text === 'string' ? this.stderr.includes(text) : text.test(this.stderr)),
      String(text),
    );
  }

  async waitUntil(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      if (!this.running) throw new Error(`${this.id} ended while ${what} was waited for\n${this.stdout}${this.stderr}`);
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    }
  }

  /** Sends the signal and waits for the end; `stop` is the graceful one. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> {
    if (this.running) this.#child?.kill(signal);
    return await this.#exit;
  }

  async stop(): Promise<Exit> {
    return await this.kill('SIGTERM');
  }

  /** Ends the server's standard input, as the end of this process would. */
  closeInput(): void {
    this.#child?.stdin?.end();
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  #changed(): void {
    const waiting = this.#watchers;
    this.#watchers = [];
    for (const wake of waiting) wake();
  }
}

/**
 * Tests share their machine with others: a server that is late by seconds there is no dead one. Tests of what happens
 * to dead ones say how long they wait.
 */
const PATIENCE = ['--owner-lease-ms', '60000'];
/** And servers that are started together own shards alike, however late one of them is. */
const PATIENT_ASSIGNMENT = ['--import', import.meta.resolve('./patient-assignment.js')];

export class Cluster {
  readonly servers: ServerProcess[] = [];
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** Control addresses, for connect(). */
  get addresses(): string[] {
    return this.servers.map((s) => s.address);
  }

  server(index: number): ServerProcess {
    const one = this.servers[index];
    if (one === undefined) throw new RangeError(`there is no server ${index}`);
    return one;
  }

  static async start(t: Pick<ExecutionContext, 'teardown'>, options: ClusterOptions = {}): Promise<Cluster> {
    const count = options.servers ?? 1;
    const cluster = new Cluster(await mkdtemp(join(options.within ?? tmpdir(), 'farkv-test-')));
    t.teardown(() => cluster.remove());
    const ports = await freePorts(2 * count);
    const addresses = Array.from({ length: count }, (_, i) => ({
      address: `127.0.0.1:${ports[2 * i]!}`,
      peer: `127.0.0.1:${ports[2 * i + 1]!}`,
    }));
    const peers = addresses.map(({ peer }, i) => `s${i + 1}=${peer}`).join(',');
    for (const [i, at] of addresses.entries()) {
      const id = `s${i + 1}`;
      const dataDir = join(cluster.directory, id);
      const given = options.args ?? [];
      const patience = given.includes('--owner-lease-ms') ? [] : PATIENCE;
      const args = [
        '--id',
        id,
        '--listen',
        at.address,
        ...dataPorts(given),
        '--peers',
        peers,
        '--data-dir',
        dataDir,
        '--memory',
        options.memory ?? '64mb',
        '--shards',
        String(options.shards ?? 4 * count),
        ...(options.level === undefined ? [] : ['--level', options.level]),
        ...patience,
        ...given,
      ];
      const server = new ServerProcess(id, at, dataDir, args, options.env ?? {});
      if (options.absent === undefined) server.nodeOptions = PATIENT_ASSIGNMENT;
      cluster.servers.push(server);
    }
    const present = cluster.servers.filter((_, i) => options.absent?.includes(i) !== true);
    for (const s of present) s.launch();
    if (options.ready !== false) await Promise.all(present.map((s) => s.ready()));
    return cluster;
  }

  /** A server of this name that comes to the cluster with --join and an empty directory; not started yet. */
  async joiner(id: string, args: readonly string[] = []): Promise<ServerProcess> {
    const [control, between] = await freePorts(2);
    const [address, peer] = [`127.0.0.1:${control!}`, `127.0.0.1:${between!}`];
    const dataDir = await mkdtemp(join(this.directory, `${id}-`));
    const joiner = new ServerProcess(
      id,
      { address, peer },
      dataDir,
      [
        '--id',
        id,
        '--listen',
        address,
        ...dataPorts(args),
        '--peer-listen',
        peer,
        '--join',
        this.servers.map((s) => s.peer).join(','),
        '--data-dir',
        dataDir,
        '--memory',
        '64mb',
        ...(args.includes('--owner-lease-ms') ? [] : PATIENCE),
        ...args,
      ],
      {},
    );
    this.servers.push(joiner);
    return joiner;
  }

  /** Ends every process, kindly first, and removes the directories. Safe to call again. */
  async remove(): Promise<void> {
    await Promise.all(
      this.servers.map(async (s) => {
        if (!s.running) return;
        const deadline = setTimeout(() => s.signal('SIGKILL'), 10_000);
        s.signal('SIGCONT');
        await s.stop();
        clearTimeout(deadline);
      }),
    );
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Runs `farkv ...` to its end. */
export async function farkv(
  args: readonly string[],
  options: { readonly env?: Readonly<Record<string, string>>; readonly input?: string } = {},
): Promise<Exit & { readonly stdout: string; readonly stderr: string }> {
  // The product's own 5 s are for users who would rather have an error.
  const patience = args.includes('--connect') && !args.includes('--timeout') ? ['--timeout', '2m'] : [];
  const child = spawn(process.execPath, ['--enable-source-maps', CLI, ...args, ...patience], {
    stdio: 'pipe',
    env: { ...process.env, ...options.env },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { code, signal, stdout, stderr };
}

/** Runs `farkv ...` against the cluster, which must succeed; gives what it printed. */
export async function succeeds(t: Pick<ExecutionContext, 'is'>, cluster: Cluster, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await farkv([...args, '--timeout', '2m', '--connect', cluster.addresses.join(',')]);
  t.is(code, 0, `${args.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}
