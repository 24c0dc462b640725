/**
 * Makes the faults of a schedule happen to the processes of a run, and takes them back; writes down what it does
 * (fault-log.ts). One that finds its victim gone already is not counted.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { ControlClient } from '../../net/control-client.js';
import type { TrustSource } from '../../net/tls.js';
import type { ClusterStatus } from '../../server/status.js';
import type { ServerProcess } from '../support/cluster.js';
import { served } from '../support/status.js';
import { CopyFaults, levelOf, type CopyPolicy, type Witness } from './copy-faults.js';
import type { FaultLog } from './fault-log.js';
import { Filling } from './filling.js';
import type { Network, Way } from './network.js';
import { isInTurn, STALL_MS, type DiskFault, type Fault, type Level, type Planned } from './schedule.js';

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
  /** Of servers with TLS. */
  readonly trust: TrustSource | undefined;
  readonly log: FaultLog;
  readonly say: (text: string) => void;
  /** Shards have copies. Where these are in memory alone, faults of servers come one after the other. */
  readonly copies?: CopyPolicy | undefined;
  /** Milliseconds until clients begin their next burst of calls. */
  readonly untilBurst: () => number;
  readonly witness: Witness;
  /** The run is to fail, for this reason. */
  readonly failed: (why: string) => void;
  /** A server was to be disturbed and had ended by itself. */
  readonly died: (server: ServerProcess) => void;
  /** Before what the server has said is forgotten. */
  readonly stopped: (server: ServerProcess) => void;
}

const CALL_MS = 3000;
/** A busy machine starts servers slowly. */
const SERVED_MS = 90_000;
const LOOK_MS = 20;
/** Clients are in the middle of their bursts so long after they have begun them. */
const INTO_BURST_MS = 20;
/** So often an operator says that a server is to have shards again. */
const DRAIN_TRIES = 100;

export class Nemesis {
  readonly #options: NemesisOptions;
  readonly #ended = new AbortController();
  readonly counts = new Map<Fault['kind'], number>();
  /** How often each direct way is cut: cuts overlap. */
  readonly #cuts = new Map<string, { count: number; readonly healed: () => void }>();
  #changes: Promise<unknown> = Promise.resolve();
  /** Servers that a fault has in its hands: an orderly end may take longer than the schedule thinks. */
  readonly #held = new Set<ServerProcess>();
  /** All servers are wanted for one fault: no other one takes any of them. */
  #allWanted = false;
  readonly #level: Level;

  #underWay: Promise<unknown> = Promise.resolve();
  readonly #copyFaults: CopyFaults | undefined;

  constructor(options: NemesisOptions) {
    this.#options = options;
    const { copies } = options;
    this.#level = levelOf(copies);
    if (copies !== undefined)
      this.#copyFaults = new CopyFaults(
        {
          ...options,
          over: () => this.#ended.signal.aborted,
          wait: (ms) => this.#wait(ms),
          status: (of) => this.#status(of),
          ask: (method, args) => this.#ask(method, args),
          fill: () =>
            Filling.begin({
              servers: options.servers.map(({ address }) => address),
              ...(options.trust === undefined ? {} : { tls: options.trust.value }),
            }),
          cut: async (one, other) => {
            const ways: Way[] = [
              [one, other],
              [other, one],
            ];
            await this.#cut(ways);
            return () => this.#heal(ways);
          },
        },
        copies,
      );
    setMaxListeners(0, this.#ended.signal);
  }

  /** Resolves when every copy is in sync. */
  async whole(): Promise<void> {
    await this.#copyFaults?.whole();
  }

  /**
   * Resolves when all faults were made and taken back, or `end` was called. Once `enough` is true after a fault, none is
   * begun.
   */
  async run(schedule: readonly Planned[], seconds: number, enough: () => boolean = () => false): Promise<void> {
    const began = performance.now();
    const over = new AbortController();
    const until = AbortSignal.any([this.#ended.signal, over.signal]);
    setMaxListeners(0, until);
    let before: Promise<unknown> = Promise.resolve();
    const all = schedule.map(async ({ atMs, fault }) => {
      const mine = this.#comesInTurn(fault) ? before : undefined;
      let done = (): void => undefined;
      if (mine !== undefined) before = new Promise<void>((resolve) => (done = resolve));
      try {
        await this.#wait(atMs - (performance.now() - began), until);
        await mine;
        // Those that waited for copies may have taken the time of others.
        if (until.aborted || performance.now() - began > 1000 * seconds) return;
        await this.#inflict(fault);
        if (enough()) over.abort();
      } finally {
        done();
      }
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
    const end = this.#options.log.note(text(fault));
    const done = await this.#do(fault);
    end();
    if (done) this.counts.set(fault.kind, (this.counts.get(fault.kind) ?? 0) + 1);
  }

  async #do(fault: Fault): Promise<boolean> {
    const { servers, clients } = this.#options;
    switch (fault.kind) {
      case 'kill':
      case 'restart': {
        if (isInTurn(this.#level)) return (await this.#copyFaults?.make(fault)) ?? false;
        const { forMs, kind } = fault;
        return await this.#hold(servers[fault.server]!, async (server) => {
          await this.#end([server], kind === 'kill' ? 'SIGKILL' : 'SIGTERM', kind === 'kill' ? forMs : 0);
        });
      }
      case 'kill-returning': {
        const { forMs, againMs } = fault;
        return await this.#hold(servers[fault.server]!, async (server) => {
          await this.#end([server], 'SIGKILL', forMs);
          await this.#wait(againMs);
          await this.#end([server], 'SIGKILL', forMs);
        });
      }
      case 'kill-all':
        return await this.#endAll(fault);
      case 'kill-owner-and-leader':
      case 'kill-backup-then-owner':
      case 'stop-backup-kill-owner':
      case 'cut-backup-kill-owner':
      case 'kill-joiner':
      case 'kill-in-handover':
      case 'kill-grower':
      case 'kill-all-copies':
        return (await this.#copyFaults?.make(fault)) ?? false;
      case 'pause': {
        const { forMs } = fault;
        return await this.#hold(servers[fault.server]!, (server) => this.#stop([server], forMs));
      }
      case 'pause-majority':
        return await this.#pauseMajority(fault.forMs);
      case 'suspend':
        return await this.#holdAll(servers, fault.forMs);
      case 'stall-leader': {
        const leader = await this.#leader();
        return (
          leader !== undefined &&
          (await this.#hold(leader, async (server) => {
            for (let leftMs = fault.forMs; leftMs > 0 && !this.#ended.signal.aborted; leftMs -= 1000) {
              await this.#stop([server], STALL_MS);
              await this.#wait(1000 - STALL_MS);
            }
          }))
        );
      }
      case 'cut':
      case 'mute':
      case 'deafen': {
        const ways = this.#ways(fault.hosts, fault.kind);
        await this.#cut(ways);
        await this.#wait(fault.forMs);
        await this.#heal(ways);
        return true;
      }
      case 'move':
        return await this.#ask('shard-move', { shard: fault.shard, to: servers[fault.server]!.id });
      case 'drain': {
        const { id } = servers[fault.server]!;
        const begun = await this.#ask('drain', { id, draining: true });
        await this.#wait(fault.forMs);
        // Also where the answer got lost: it may have come to pass.
        for (let tries = 0; tries < DRAIN_TRIES && !(await this.#ask('drain', { id, draining: false })); tries++)
          await this.#wait(CALL_MS / 10);
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

  /** They end at once, and are started again. */
  async #end(servers: readonly ServerProcess[], signal: 'SIGKILL' | 'SIGTERM', forMs: number): Promise<void> {
    for (const server of servers) if (!server.running) this.#options.died(server);
    const backs = servers.map(({ id }) => this.#options.log.begin({ server: id, kind: 'dead' }));
    await Promise.all(servers.map((server) => server.kill(signal)));
    for (const server of servers) this.#options.stopped(server);
    await this.#wait(forMs);
    for (const back of backs) back();
    for (const server of servers) server.launch();
  }

  /** Under load: all shards are served, and clients are in the middle of their calls. */
  async #endAll({ loadMs, forMs, againMs }: Extract<DiskFault, { kind: 'kill-all' }>): Promise<boolean> {
    const { servers, failed, untilBurst } = this.#options;
    this.#allWanted = true;
    const until = performance.now() + SERVED_MS;
    while (this.#held.size > 0 || !(await this.#isServed())) {
      if (this.#ended.signal.aborted) return false;
      if (performance.now() > until) {
        failed(`not every shard was served ${SERVED_MS} ms after all servers were there`);
        break;
      }
      await this.#wait(LOOK_MS);
    }
    await this.#wait(loadMs);
    await this.#wait(untilBurst() + INTO_BURST_MS);
    this.#allWanted = false;
    if (this.#ended.signal.aborted) return false;
    for (const server of servers) this.#held.add(server);
    await this.#end(servers, 'SIGKILL', forMs);
    if (againMs !== undefined) {
      await this.#wait(againMs);
      await this.#end(servers, 'SIGKILL', forMs);
    }
    for (const server of servers) this.#held.delete(server);
    return true;
  }

  async #isServed(): Promise<boolean> {
    const status = await this.#status();
    return status !== undefined && served(status);
  }

  /** Behind those before it, which may take longer than the schedule thinks. */
  #comesInTurn(fault: Fault): boolean {
    if (this.#level === 'durable') return fault.kind === 'kill-all';
    return isInTurn(this.#level) && !isOfClient(fault);
  }

  /** Those that run are no majority then. */
  async #pauseMajority(forMs: number): Promise<boolean> {
    const { servers } = this.#options;
    const leader = await this.#leader();
    if (leader === undefined) return false;
    const at = servers.indexOf(leader);
    const others = Math.ceil(servers.length / 2) - 1;
    return await this.#holdAll(
      Array.from({ length: others + 1 }, (_, i) => servers[(at + i) % servers.length]!),
      forMs,
    );
  }

  /** All of them or none. */
  async #holdAll(servers: readonly ServerProcess[], forMs: number): Promise<boolean> {
    if (this.#allWanted || servers.some((server) => this.#held.has(server) || !server.running)) return false;
    for (const server of servers) this.#held.add(server);
    await this.#stop(servers, forMs);
    for (const server of servers) this.#held.delete(server);
    return true;
  }

  async #stop(servers: readonly ServerProcess[], forMs: number): Promise<void> {
    const goOn = servers.map((server) => this.#options.log.begin({ server: server.id, kind: 'stopped' }));
    for (const server of servers) server.signal('SIGSTOP');
    await this.#wait(forMs);
    for (const server of servers) server.signal('SIGCONT');
    for (const end of goOn) end();
  }

  async #hold(server: ServerProcess, disturb: (server: ServerProcess) => Promise<void>): Promise<boolean> {
    if (this.#allWanted || this.#held.has(server)) return false;
    if (!server.running) {
      this.#options.died(server);
      return false;
    }
    this.#held.add(server);
    await disturb(server);
    this.#held.delete(server);
    return true;
  }

  /**
   * The metadata leader, as the first server says that knows one; undefined: nobody does, or a fault has it in its
   * hands.
   */
  async #leader(): Promise<ServerProcess | undefined> {
    let leader: string | undefined;
    await this.#ask('status', {}, (answer) => (leader = (answer as ClusterStatus).leader) !== undefined);
    return this.#options.servers.find((s) => s.id === leader && !this.#held.has(s));
  }

  async #status(of?: string): Promise<ClusterStatus | undefined> {
    let status: ClusterStatus | undefined;
    await this.#ask('status', {}, (answer) => (status = answer as ClusterStatus).leader !== undefined, of);
    return status;
  }

  /** What an operator asks for, of one server or any. False: no server that could be asked did it. */
  async #ask(
    method: string,
    args: unknown,
    good: (answer: unknown) => boolean = () => true,
    of?: string,
  ): Promise<boolean> {
    for (const server of this.#options.servers) {
      if (this.#held.has(server) || !server.running || (of !== undefined && server.id !== of)) continue;
      const signal = this.#ended.signal;
      try {
        const client = await ControlClient.open({
          address: server.address,
          trust: this.#options.trust,
          timeoutMs: CALL_MS,
          hello: { role: 'admin' },
          signal,
        });
        try {
          if (good(await client.call(method, args, CALL_MS))) return true;
        } finally {
          client.close();
        }
      } catch (error) {
        if (signal.aborted) return false;
        // One that was just started does not answer yet.
        if (method === 'status' && this.#copyFaults !== undefined) continue;
        this.#options.say(
          `${method} ${JSON.stringify(args)} at ${server.id}: ${error instanceof Error ? error.message : String(error)}`,
        );
      }
    }
    return false;
  }

  #ways(hosts: readonly number[], kind: 'cut' | 'mute' | 'deafen'): Way[] {
    const others = this.#options.servers.map((_, i) => i).filter((i) => !hosts.includes(i));
    const out = hosts.flatMap((a) => others.map((b) => [a, b] as const));
    const back = out.map(([a, b]) => [b, a] as const);
    return kind === 'cut' ? [...out, ...back] : kind === 'mute' ? out : back;
  }

  async #cut(ways: readonly Way[]): Promise<void> {
    const { log, servers, network } = this.#options;
    const fresh = ways.filter(([from, to]) => {
      const cut = this.#cuts.get(`${from} ${to}`);
      if (cut !== undefined) cut.count++;
      else
        this.#cuts.set(`${from} ${to}`, {
          count: 1,
          healed: log.begin({ from: servers[from]!.id, to: servers[to]!.id }),
        });
      return cut === undefined;
    });
    await this.#inOrder(() => network?.cut(fresh.map(host)));
  }

  async #heal(ways: readonly Way[]): Promise<void> {
    const over = ways.filter((way) => --this.#cuts.get(way.join(' '))!.count === 0);
    const ends = over.map((way) => this.#cuts.get(way.join(' '))!.healed);
    for (const way of over) this.#cuts.delete(way.join(' '));
    await this.#inOrder(() => this.#options.network?.heal(over.map(host)));
    for (const healed of ends) healed();
  }

  /** A way that is cut while it is being healed is cut in the end. */
  async #inOrder(change: () => Promise<void> | undefined): Promise<void> {
    const mine = this.#changes.then(change);
    this.#changes = mine.catch(() => undefined);
    await mine;
  }

  async #wait(ms: number, signal: AbortSignal = this.#ended.signal): Promise<void> {
    if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => undefined);
  }
}

/** Hosts of the network are numbered from 1. */
const host = ([from, to]: Way): Way => [from + 1, to + 1];

const isOfClient = ({ kind }: Fault): boolean => kind === 'kill-client' || kind === 'pause-client';

function text(fault: Fault): string {
  if (fault.kind === 'kill-all')
    return `kill all servers for ${fault.forMs} ms${fault.againMs === undefined ? '' : `, and again after ${fault.againMs} ms`}`;
  if (fault.kind === 'kill-returning')
    return `kill s${fault.server + 1} for ${fault.forMs} ms, and again after ${fault.againMs} ms`;
  if (fault.kind === 'kill-in-handover')
    return `kill the ${fault.whom} of shard ${fault.shard} ${fault.afterMs} ms after its handover was asked for, for ${fault.forMs} ms`;
  if (fault.kind === 'kill-grower') return `kill an owner whose table grows for ${fault.forMs} ms`;
  if (fault.kind === 'kill-owner-and-leader') return `kill an owner and the leader for ${fault.forMs} ms`;
  if (
    fault.kind === 'kill-backup-then-owner' ||
    fault.kind === 'stop-backup-kill-owner' ||
    fault.kind === 'cut-backup-kill-owner'
  )
    return `${fault.kind} of shard ${fault.shard} for ${fault.forMs} ms`;
  if (fault.kind === 'kill-all-copies')
    return `kill all copies of shard ${fault.shard} for ${fault.forMs} ms, onLoss ${fault.onLoss}`;
  if (fault.kind === 'move') return `move shard ${fault.shard} to s${fault.server + 1}`;
  if (fault.kind === 'pause-majority') return `pause the leader and others, a majority, for ${fault.forMs} ms`;
  if (fault.kind === 'suspend') return `suspend all servers for ${fault.forMs} ms`;
  if (fault.kind === 'stall-leader') return `stall the leader for ${STALL_MS} ms of each second for ${fault.forMs} ms`;
  const who =
    'hosts' in fault
      ? `hosts ${fault.hosts.map((h) => `s${h + 1}`).join(' and ')}`
      : 'server' in fault
        ? `s${fault.server + 1}`
        : `client ${fault.client}`;
  return `${fault.kind} ${who} for ${fault.forMs} ms`;
}
