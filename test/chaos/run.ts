/**
 * One run: servers and clients as processes, on hosts of their own where this machine lets us make them, a workload, the faults of a seed,
 * and the verdict on everything that the clients were told.
 */
import { appendFileSync, existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts, ServerProcess } from '../support/cluster.js';
import { Random } from '../support/random.js';
import { ClientProcess, type Ended } from './client-process.js';
import { EpochWatch, keptIn, lossesOf } from './epochs.js';
import { checkKey } from './linearizability.js';
import { Nemesis } from './nemesis.js';
import { canMakeNetworks, Network } from './network.js';
import type { Operation } from './operation.js';
import { addFile, emptyRecord, type Recorded } from './record.js';
import { drawSchedule } from './schedule.js';

export interface RunOptions {
  readonly seed: number;
  readonly seconds: number;
  readonly servers: number;
  readonly clients: number;
  readonly operationsPerSecond: number;
  /**
   * Fewer are a failure: a run that did nothing proves nothing. A busy machine does fewer in its seconds: there the faults go on, with others of the
   * same seed, until there are so many, though not for ever.
   */
  readonly operationsMin: number;
  readonly say: (text: string) => void;
}

export interface Report {
  readonly operations: number;
  readonly keys: number;
  /** Kind and outcome of operations -> how many. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly network: boolean;
  /** New epochs of shards, and how many of them went to another owner. */
  readonly epochs: number;
  readonly ownersChanged: number;
  /** Shards that changed hands with all values. */
  readonly moved: number;
  readonly metadataVersions: number;
  readonly configurations: number;
  /** Reads of a recorded history that were replaced by an older value, all of which must be refused. */
  readonly seededStaleReads: number;
  /** Empty: the run is good. */
  readonly failures: readonly string[];
  /** Where the histories and the servers' logs are; removed after a good run. */
  readonly directory: string;
}

const KEYS = 12;
const KEYS_FOR_MS = 15_000;
const READY_MS = 60_000;
const SHARDS_PER_SERVER = 2;
/** So many times the seconds that were asked for. */
const ROUNDS_MAX = 4;

export async function run(options: RunOptions): Promise<Report> {
  const { seed, seconds, say } = options;
  const directory = await mkdtemp(join(tmpdir(), 'farkv-chaos-'));
  const network = canMakeNetworks() ? Network.make(options.servers) : undefined;
  if (network === undefined) say('no namespaces without root: hosts are not cut off in this run');
  const failures: string[] = [];
  const servers = await makeServers(options.servers, directory, network);
  const kept = new Set<string>();
  const log = (s: ServerProcess): void => {
    for (const one of keptIn(s.stderr)) kept.add(one);
    appendFileSync(join(directory, `${s.id}.log`), `${s.stderr}---- ended\n`);
  };
  const watch = new EpochWatch(servers.map((s) => s.address));
  const clients: ClientProcess[] = [];
  let ended: Ended[] = [];
  const nemesis = new Nemesis({
    servers, clients, network, say, stopped: log,
    died: (s) => failures.push(`${s.id} ended by itself\n${s.stderr.slice(-4000)}`),
  });
  try {
    for (const s of servers) s.launch();
    await Promise.all(servers.map((s) => s.ready()));
    watch.start();
    const began = Number(process.hrtime.bigint());
    for (let i = 0; i < options.clients; i++) clients.push(makeClient(i, began, servers, directory, network, options));
    for (const c of clients) c.launch();
    const random = new Random(seed);
    for (let round = 1; round <= ROUNDS_MAX; round++) {
      if (round > 1) say('fewer operations so far than there must be: the faults go on');
      await nemesis.run(drawSchedule(random, { seconds, servers: servers.length, shards: SHARDS_PER_SERVER * servers.length, clients: clients.length, network: network !== undefined }));
      if (recordedIn(directory) >= options.operationsMin) break;
    }
    failures.push(...(await readyAgain(servers)));
    ended = (await Promise.all(clients.map((c) => c.finish()))).flat();
  } catch (error) {
    failures.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  } finally {
    await nemesis.end();
    await Promise.all(clients.map((c) => c.kill()));
    await Promise.all(servers.map((s) => s.kill()));
    for (const s of servers) log(s);
    watch.close();
    network?.remove();
  }
  for (const { name, exit, stderr } of ended) {
    if (exit === '3') failures.push(`client ${name}: a key was not answered after all faults were over`);
    else if (exit !== '0' && exit !== 'killed') failures.push(`client ${name} ended with ${exit}\n${stderr.slice(-4000)}`);
  }
  const record = emptyRecord();
  for (const { name, file } of ended) if (existsSync(file)) addFile(record, file, name);
  failures.push(...record.wrong.slice(0, 10));
  const verdict = judge(record, watch, kept, failures, say);
  const operations = operationsOf(record);
  if (operations < options.operationsMin) failures.push(`only ${operations} operations, fewer than ${options.operationsMin}`);
  if (failures.length === 0) await rm(directory, { recursive: true, force: true });
  const changes = servers.length === 0 ? [] : watch.all;
  return {
    operations, keys: record.keys.size, outcomes: sorted(record.counts), faults: sorted(nemesis.counts), network: network !== undefined,
    epochs: changes.length - SHARDS_PER_SERVER * servers.length,
    ownersChanged: changes.filter((e, i) => changes[i - 1]?.shard === e.shard && changes[i - 1]?.owner !== e.owner).length,
    moved: kept.size, metadataVersions: watch.maps, ...verdict, failures, directory,
  };
}

const sorted = (counts: ReadonlyMap<string, number>): Record<string, number> => Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));

async function makeServers(count: number, directory: string, network: Network | undefined): Promise<ServerProcess[]> {
  const ports = network === undefined ? await freePorts(count) : Array.from({ length: count }, () => 7400);
  const addresses = ports.map((port, i) => `${network?.address(i + 1) ?? '127.0.0.1'}:${port}`);
  const peers = addresses.map((address, i) => `s${i + 1}=${address}`).join(',');
  return addresses.map((address, i) => {
    const id = `s${i + 1}`;
    const dataDir = join(directory, id);
    const server = new ServerProcess(id, address, dataDir, [
      '--id', id, '--listen', address, '--peers', peers, '--data-dir', dataDir, '--memory', '96mb', '--shards', String(SHARDS_PER_SERVER * count),
      '--lease-ms', '500', '--election-ms', '500', '--data-plane-threads', '1', ...(network === undefined ? [] : ['--insecure']),
    ], {});
    if (network !== undefined) server.launcher = network.launcher(i + 1);
    return server;
  });
}

/** Shared memory and tcp in turn; each on the host of a server, with which it is cut off. */
function makeClient(i: number, beganNs: number, servers: readonly ServerProcess[], directory: string, network: Network | undefined, options: RunOptions): ClientProcess {
  const transport = i % 2 === 0 ? 'shm' : 'tcp';
  const host = i % servers.length;
  // Its own host's server first.
  const addresses = servers.map((_, at) => servers[(host + at) % servers.length]!.address);
  return new ClientProcess(network?.launcher(host + 1) ?? [], (start) => {
    const name = `${transport}${i}${start === 0 ? '' : `/${start}`}`;
    return {
      name, transport, servers: addresses, lanes: 4, beganNs, keys: KEYS, keysForMs: KEYS_FOR_MS, seed: options.seed * 100 + i + 17 * start,
      file: join(directory, `${name.replace('/', '-')}.jsonl`), operationsPerSecond: options.operationsPerSecond / options.clients,
    };
  });
}

const operationsOf = ({ counts }: Recorded): number => [...counts.values()].reduce((sum, n) => sum + n, 0);

/** Operations that clients have written down by now. */
function recordedIn(directory: string): number {
  const record = emptyRecord();
  for (const name of readdirSync(directory)) if (name.endsWith('.jsonl')) addFile(record, join(directory, name), name);
  return operationsOf(record);
}

/** What is wrong with those that do not come back. */
async function readyAgain(servers: readonly ServerProcess[]): Promise<string[]> {
  const given = setTimeout(() => {
    for (const s of servers) if (s.readyLine === undefined) s.signal('SIGKILL');
  }, READY_MS);
  const all = await Promise.allSettled(servers.map((s) => s.ready()));
  clearTimeout(given);
  return all.flatMap((one, i) => (one.status === 'rejected' ? [`${servers[i]!.id} was not ready ${READY_MS} ms after the last fault: ${String(one.reason).slice(-4000)}`] : []));
}

function judge(record: Recorded, watch: EpochWatch, kept: ReadonlySet<string>, failures: string[], say: (text: string) => void): Pick<Report, 'configurations' | 'seededStaleReads'> {
  const ofShard = new Map<number, Operation[]>();
  for (const { shard, operations } of record.keys.values()) ofShard.set(shard, [...(ofShard.get(shard) ?? []), ...operations]);
  const losses = new Map([...ofShard].map(([shard, operations]) => [shard, lossesOf(watch.of(shard), operations, kept)]));
  let configurations = 0;
  let seededStaleReads = 0;
  for (const [key, { shard, operations }] of record.keys) {
    const first = Math.min(...operations.map((o) => o.call));
    const last = Math.max(...operations.map((o) => (o.end === Infinity ? o.call : o.end)));
    // Those that can lie within the key's time.
    const history = [...operations, ...(losses.get(shard) ?? []).filter((l) => l.end >= first && l.call <= last)];
    const verdict = checkKey(history);
    if (!verdict.linearizable) {
      const epochs = watch.of(shard).map((e) => `${e.epoch} ${e.owner ?? 'nobody'} at ${((e.toldNs - first) / 1e6).toFixed(3)}`).join(', ');
      failures.push(`${key} of shard ${shard} is not linearizable${verdict.undecided ? ' (undecided)' : ''}: ${verdict.why}\nepochs of the shard: ${epochs}`);
      continue;
    }
    configurations += verdict.configurations;
    const stale = withStaleRead(history);
    if (stale === undefined) continue;
    seededStaleReads++;
    if (checkKey(stale).linearizable) failures.push(`${key}: a stale read that was put into its history is not refused`);
  }
  say(`${record.keys.size} keys were checked`);
  return { configurations, seededStaleReads };
}

/** The last read that can be made to tell a value that another acknowledged write had replaced before it. */
function withStaleRead(history: readonly Operation[]): Operation[] | undefined {
  const puts = history.filter((o) => o.kind === 'put' && o.outcome === 'stored').sort((a, b) => a.call - b.call);
  const reads = history.filter((o) => o.kind === 'get').sort((a, b) => b.call - a.call);
  for (const read of reads) {
    const later = puts.findLast((p) => p.end < read.call);
    const old = puts.findLast((p) => later !== undefined && p.end < later.call);
    if (old?.kind !== 'put' || old.value === read.value) continue;
    const { value } = old;
    return history.map((o) => (o === read ? { ...read, value, version: undefined } : o));
  }
  return undefined;
}
