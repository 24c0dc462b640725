/** Makes the faults of a schedule happen to the processes of a run, and takes them back. One that finds its victim gone already is not counted. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { ControlClient } from '../../server/control/client-connection.js';
import type { ServerProcess } from '../support/cluster.js';
import type { Network } from './network.js';
import type { Fault, Planned } from './schedule.js';

/** What the nemesis may do to a client process. */
export interface Victim {
  readonly running: boolean;
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  kill(): Promise<unknown>;
  /** A new process under a new name. */
  launch(): void;
}

export interface NemesisOptions {
  readonly servers: readonly ServerProcess[];
  readonly clients: readonly Victim[];
  readonly network: Network | undefined;
  readonly say: (text: string) => void;
  /** A server was to be disturbed and had ended by itself. */
  readonly died: (server: ServerProcess) => void;
  /** Before what the server has said is forgotten. */
  readonly stopped: (server: ServerProcess) => void;
}

const CALL_MS = 3000;
/** So often an operator says that a server is to have shards again. */
const DRAIN_TRIES = 100;

export class Nemesis {
  readonly #options: NemesisOptions;
  readonly #ended = new AbortController();
  readonly counts = new Map<Fault['kind'], number>();
  /** How often each direct way is cut: cuts overlap. */
  readonly #cuts = new Map<string, number>();
  /** Servers that a fault has in its hands: an orderly end may take longer than the schedule thinks. */
  readonly #held = new Set<ServerProcess>();

  #underWay: Promise<unknown> = Promise.resolve();

  constructor(options: NemesisOptions) {
    this.#options = options;
    setMaxListeners(0, this.#ended.signal);
  }

  /** Resolves when all faults were made and taken back, or `end` was called. */
  async run(schedule: readonly Planned[]): Promise<void> {
    const began = performance.now();
    const all = schedule.map(async ({ atMs, fault }) => {
      await this.#wait(atMs - (performance.now() - began));
      if (this.#ended.signal.aborted) return;
      await this.#inflict(fault);
    });
    this.#underWay = Promise.allSettled(all);
    await Promise.all(all);
  }

  /** What is under way is taken back at once, nothing else is begun. Afterwards nothing is started any more. */
  async end(): Promise<void> {
    this.#ended.abort();
    await this.#underWay;
  }

  async #inflict(fault: Fault): Promise<void> {
    this.#options.say(text(fault));
    const done = await this.#do(fault);
    if (done) this.counts.set(fault.kind, (this.counts.get(fault.kind) ?? 0) + 1);
  }

  async #do(fault: Fault): Promise<boolean> {
    const { servers, clients } = this.#options;
    switch (fault.kind) {
      case 'kill':
      case 'restart': {
        const { forMs, kind } = fault;
        return await this.#hold(servers[fault.server]!, async (server) => {
          await server.kill(kind === 'kill' ? 'SIGKILL' : 'SIGTERM');
          this.#options.stopped(server);
          if (kind === 'kill') await this.#wait(forMs);
          server.launch();
        });
      }
      case 'pause': {
        const { forMs } = fault;
        return await this.#hold(servers[fault.server]!, async (server) => {
          server.signal('SIGSTOP');
          await this.#wait(forMs);
          server.signal('SIGCONT');
        });
      }
      case 'cut':
      case 'mute':
      case 'deafen': {
        const ways = this.#ways(fault.hosts, fault.kind);
        for (const [from, to] of ways) this.#cut(from, to);
        await this.#wait(fault.forMs);
        for (const [from, to] of ways) this.#heal(from, to);
        return true;
      }
      case 'move': return await this.#ask('shard-move', { shard: fault.shard, to: servers[fault.server]!.id });
      case 'drain': {
        const { id } = servers[fault.server]!;
        const begun = await this.#ask('drain', { id, draining: true });
        await this.#wait(fault.forMs);
        // Also where the answer got lost: it may have come to pass.
        for (let tries = 0; tries < DRAIN_TRIES && !(await this.#ask('drain', { id, draining: false })); tries++) await this.#wait(CALL_MS / 10);
        return begun;
      }
      case 'kill-client': {
        const client = clients[fault.client]!;
        if (!client.running) return false;
        await client.kill();
        await this.#wait(fault.forMs);
        client.launch();
        return true;
      }
      case 'pause-client': {
        const client = clients[fault.client]!;
        if (!client.running) return false;
        client.signal('SIGSTOP');
        await this.#wait(fault.forMs);
        client.signal('SIGCONT');
        return true;
      }
    }
  }

  async #hold(server: ServerProcess, disturb: (server: ServerProcess) => Promise<void>): Promise<boolean> {
    if (this.#held.has(server)) return false;
    if (!server.running) {
      this.#options.died(server);
      return false;
    }
    this.#held.add(server);
    await disturb(server);
    this.#held.delete(server);
    return true;
  }

  /** What an operator asks for. False: no server that could be asked did it. */
  async #ask(method: string, args: unknown): Promise<boolean> {
    for (const server of this.#options.servers) {
      if (this.#held.has(server) || !server.running) continue;
      const signal = this.#ended.signal;
      try {
        const client = await ControlClient.open({ address: server.address, trust: undefined, timeoutMs: CALL_MS, hello: { role: 'admin' }, signal });
        try {
          await client.call(method, args, CALL_MS);
          return true;
        } finally {
          client.close();
        }
      } catch (error) {
        if (signal.aborted) return false;
        this.#options.say(`${method} ${JSON.stringify(args)} at ${server.id}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return false;
  }

  #ways(hosts: readonly number[], kind: 'cut' | 'mute' | 'deafen'): (readonly [number, number])[] {
    const others = this.#options.servers.map((_, i) => i).filter((i) => !hosts.includes(i));
    const out = hosts.flatMap((a) => others.map((b) => [a, b] as const));
    const back = out.map(([a, b]) => [b, a] as const);
    return kind === 'cut' ? [...out, ...back] : kind === 'mute' ? out : back;
  }

  #cut(from: number, to: number): void {
    const count = this.#cuts.get(`${from} ${to}`) ?? 0;
    this.#cuts.set(`${from} ${to}`, count + 1);
    if (count === 0) this.#options.network?.cut(from + 1, to + 1);
  }

  #heal(from: number, to: number): void {
    const count = (this.#cuts.get(`${from} ${to}`) ?? 0) - 1;
    this.#cuts.set(`${from} ${to}`, count);
    if (count === 0) this.#options.network?.heal(from + 1, to + 1);
  }

  async #wait(ms: number): Promise<void> {
    if (ms > 0) await sleep(ms, undefined, { signal: this.#ended.signal }).catch(() => undefined);
  }
}

function text(fault: Fault): string {
  if (fault.kind === 'move') return `move shard ${fault.shard} to s${fault.server + 1}`;
  const who = 'hosts' in fault ? `hosts ${fault.hosts.map((h) => `s${h + 1}`).join(' and ')}` : 'server' in fault ? `s${fault.server + 1}` : `client ${fault.client}`;
  return `${fault.kind} ${who} for ${fault.forMs} ms`;
}
