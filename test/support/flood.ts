/**
 * What a flood did to a cluster: hostile processes (hostile.ts) run beside an honest client and an operator (honest.ts),
 * and the report says what both saw. Tests assert what must hold whatever the machine does; latencies are for the log.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { ClusterStatus } from '../../server/status.js';
import type { Cluster } from './cluster.js';
import type { Honest, HonestReport } from './honest.js';
import type { HostileCounts, Hostility } from './hostile.js';
import { statusOf, type Access } from './status.js';

export interface FloodOptions {
  readonly seconds: number;
  readonly hostilities: readonly Hostility[];
  readonly client: Omit<Honest, 'as' | 'servers'>;
  readonly operator: Omit<Honest, 'as' | 'servers' | 'keys'>;
  /**
   * The attacker gets the CPU time that nobody else wants, as one with a machine of its own takes none of this one's.
   * What the kernel does for its packets is charged to whoever runs then all the same.
   */
  readonly attackerApart: boolean;
}

export interface FloodReport {
  readonly counts: readonly HostileCounts[];
  /** The epochs of all shards before and after: one that changed hands has another. */
  readonly before: readonly number[];
  readonly after: readonly number[];
  readonly gets: HonestReport;
  readonly statuses: HonestReport;
  /** The most that a server's resident memory was, MiB. */
  readonly memoryMb: number;
}

type Child = ChildProcessByStdio<Writable, Readable, null>;
const LOOK_MS = 100;

function start(program: string, words: readonly string[], launcher: readonly string[] = []): Child {
  const path = fileURLToPath(new URL(`./${program}.js`, import.meta.url));
  const [command = '', ...rest] = [...launcher, process.execPath, path, ...words];
  return spawn(command, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
}

/** One process for all of them. It ends by itself. */
async function hostile({ seconds, hostilities, attackerApart }: FloodOptions): Promise<HostileCounts[]> {
  const launcher = attackerApart ? ['chrt', '--idle', '0'] : [];
  const child = start('hostile', [String(seconds), JSON.stringify(hostilities)], launcher);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  await once(child, 'close');
  return JSON.parse(output) as HostileCounts[];
}

/** Resolves when it has begun, with what ends it. */
async function honest(who: Honest): Promise<() => Promise<HonestReport>> {
  const child = start('honest', [JSON.stringify(who)]);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const next: IteratorResult<string, unknown> = await lines.next();
    if (next.done === true) throw new Error(`the ${who.as} ended: ${String(child.exitCode ?? child.signalCode)}`);
    return next.value;
  };
  await line();
  return async () => {
    child.stdin.end();
    return JSON.parse(await line()) as HonestReport;
  };
}

function residentMb(pid: number): number {
  const kb = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Math.round(Number(kb) / 1024);
}

export function epochsOf(status: ClusterStatus): number[] {
  return status.shards.map((s) => s.epoch);
}

export async function flood(cluster: Cluster, options: FloodOptions): Promise<FloodReport> {
  const { client, operator } = options;
  const asked = cluster.server(1).address;
  const { caFile, token } = operator;
  const access: Access = { token, ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }) };
  const before = epochsOf(await statusOf(asked, access));
  const [endClient, endOperator] = await Promise.all([
    honest({ as: 'client', servers: cluster.addresses, ...client }),
    honest({ as: 'operator', servers: [asked], ...operator }),
  ]);
  let memoryMb = 0;
  const memory = setInterval(() => {
    for (const { pid } of cluster.servers) memoryMb = Math.max(memoryMb, residentMb(pid));
  }, LOOK_MS);
  const counts = await hostile(options).finally(() => clearInterval(memory));
  const [gets, statuses] = await Promise.all([endClient(), endOperator()]);
  return { counts, before, after: epochsOf(await statusOf(asked, access)), gets, statuses, memoryMb };
}
