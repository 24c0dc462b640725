/**
 * One run: servers and clients as processes, on hosts of their own where this machine lets us make them, a workload,
 * the faults of a seed, and the verdict on everything that the clients were told (judge.ts).
 */
import { appendFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts, ServerProcess } from '../support/cluster.js';
import { trustSource } from '../../net/tls.js';
import { TLS_OPTIONS, tlsTrust } from '../support/tls-files.js';
import { Random } from '../support/random.js';
import { ClientProcess, type Ended } from './client-process.js';
import { ControlClient } from '../../net/control-client.js';
import { EpochWatch, ledIn } from './epochs.js';
import { recordIn, storeEvidence } from './evidence.js';
import { allEnded, underLoad } from './all-ended.js';
import { levelOf, type CopyPolicy } from './copy-faults.js';
import { FaultLog } from './fault-log.js';
import { judge } from './judge.js';
import { Nemesis } from './nemesis.js';
import { canMakeNetworks, Network } from './network.js';
import { outagesOf, type Outages } from './outages.js';
import { overtakenIn, type Led } from './overtaken.js';
import { LATE, type Recorded } from './recorded.js';
import { drawSchedule, type Fault } from './schedule.js';
import { COUNTED_CLIENTS } from './tails.js';

/** How clients reach servers; both: half of the clients each. With verbs servers offer nothing else, to each other too. */
export type ClientTransports = 'shm' | 'tcp' | 'both' | 'verbs';

export interface RunOptions {
  readonly seed: number;
  readonly seconds: number;
  readonly servers: number;
  readonly clients: number;
  readonly transport: ClientTransports;
  /** Control and data ports have TLS. The certificate is of 127.0.0.1, so all hosts are this one and none is cut off. */
  readonly tls: boolean;
  /** Calls of the SDK, of all clients. */
  readonly operationsPerSecond: number;
  /**
   * Owners' leases. Shorter ones make more happen; but a server that its machine does not let run for so long loses its
   * shards, which nothing permits that the nemesis did.
   */
  readonly ownerLeaseMs: number;
  /** Servers that hear no leader for so long elect one. Default: ELECTION_MS. */
  readonly electionMs?: number;
  /**
   * Shards have copies, so many, in memory or on disks too, and nothing may be lost; undefined: each value is in one
   * server's memory.
   */
  readonly copies?: CopyPolicy | undefined;
  /** Of the servers. */
  readonly env?: Readonly<Record<string, string>>;
  /** Only these faults; by default all. */
  readonly only?: readonly Fault['kind'][] | undefined;
  /**
   * Fewer are a failure: a run that did nothing proves nothing. A busy machine does fewer in its seconds: there the
   * faults go on, with others of the same seed, until there are so many, though not for ever.
   */
  readonly operationsMin: number;
  /** The same for processes of servers that are ended; of durable values, for kills of all at once, under load. */
  readonly killsMin?: number;
  /** After so many no further fault is made. */
  readonly killsMax?: number;
  readonly say: (text: string) => void;
}

export interface Report {
  readonly operations: number;
  readonly keys: number;
  /** Kind and outcome of operations -> how many. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Calls of the SDK and the form of their keys -> how often they were answered. */
  readonly calls: Readonly<Record<string, number>>;
  /** Values that were looked at a second time. */
  readonly secondLooks: number;
  readonly scans: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly network: boolean;
  /** New epochs of shards, and how many of them went to another owner. */
  readonly epochs: number;
  readonly ownersChanged: number;
  /** Shards that changed hands with all values, and those that were permitted to lose them. */
  readonly moved: number;
  readonly permittedLosses: number;
  /** Shards whose last copy in sync was killed by the fault that it was promoted for (overtaken.ts). */
  readonly overtaken: number;
  readonly metadataVersions: number;
  readonly configurations: number;
  /** Processes of servers that were ended. */
  readonly kills: number;
  /** How often no server was left, and how often that was under load (all-ended.ts). */
  readonly allEnded: number;
  readonly underLoad: number;
  /** Changes of which clients were not told whether they took effect, though they lived on. */
  readonly indeterminate: number;
  /** Those of them whose time-out was longer than a failover: a second or more. */
  readonly indeterminateLate: number;
  /** Of shards with copies. */
  readonly outages?: Outages;
  /** Reads of a recorded history that were replaced by an older value, all of which must be refused. */
  readonly seededStaleReads: number;
  /** Empty: the run is good. */
  readonly failures: readonly string[];
  /** Where the histories and the servers' logs are; removed after a good run. */
  readonly directory: string;
}

const KEYS_FOR_MS = 15_000;
const BURST_MS = 200;
const READY_MS = 60_000;
export const ELECTION_MS = 500;
const SHARDS_PER_SERVER = 2;
/** So many times the seconds that were asked for. */
const ROUNDS_MAX = 4;
/**
 * Where this user may, servers run before what else the machine has to do: what it keeps from running loses its lease.
 */
const PRIORITY = -10;

export async function run(options: RunOptions): Promise<Report> {
  const { seed, seconds, say, only, ownerLeaseMs, killsMin = 0, killsMax = Infinity } = options;
  const directory = await mkdtemp(join(tmpdir(), 'farkv-chaos-'));
  // The certificate is of 127.0.0.1, and an RDMA device belongs to one namespace.
  const oneHost = options.tls || options.transport === 'verbs';
  const network = canMakeNetworks() && !oneHost ? Network.make(options.servers) : undefined;
  if (network === undefined)
    say('no namespaces without root, with --tls or over verbs: hosts are not cut off in this run');
  const failures: string[] = [];
  const servers = await makeServers(options, directory, network);
  const faults = new FaultLog(servers.map((s) => s.id));
  const kept = new Set<string>();
  const led: Led[] = [];
  const log = (s: ServerProcess): void => {
    const endedNs = Number(process.hrtime.bigint());
    for (const name of ledIn(s.id, s.stderr)) {
      kept.add(name);
      led.push({ name, endedNs });
    }
    appendFileSync(join(directory, `${s.id}.log`), `${s.stderr}---- ended\n`);
  };
  const trust = options.tls ? trustSource(tlsTrust()) : undefined;
  const watch = new EpochWatch(
    servers.map((s) => s.address),
    trust,
  );
  const clients: ClientProcess[] = [];
  let ended: Ended[] = [];
  let beganNs = 0;
  const nemesis = new Nemesis({
    servers,
    clients,
    network,
    trust,
    log: faults,
    say,
    stopped: log,
    copies: options.copies,
    untilBurst: () => BURST_MS - (((Number(process.hrtime.bigint()) - beganNs) / 1e6) % BURST_MS),
    witness: { latest: (shard) => watch.of(shard).at(-1), overtaken: () => overtakenIn(faults, led) },
    failed: (why) => failures.push(why),
    died: (s) => failures.push(`${s.id} ended by itself\n${s.stderr.slice(-4000)}`),
  });
  try {
    for (const s of servers) s.launch();
    await Promise.all(servers.map((s) => s.ready()));
    if (options.copies !== undefined) {
      await replicate(servers[0]!.address, trust, options.copies);
      await nemesis.whole();
    }
    watch.start();
    beganNs = Number(process.hrtime.bigint());
    for (let i = 0; i < options.clients; i++)
      clients.push(makeClient(i, beganNs, servers, directory, network, options));
    for (const c of clients) c.launch();
    const random = new Random(seed);
    const allAtOnce = levelOf(options.copies) === 'durable';
    const wanted = Math.min(killsMax, killsMin === 0 ? Infinity : killsMin);
    const counted = (): number => {
      if (!allAtOnce) return killsIn(faults);
      const all = allEnded(faults);
      return all.length < wanted ? 0 : underLoad(all, recordIn(directory)).length;
    };
    // A run that has failed makes no further fault: the logs end where it went wrong.
    for (let round = 1; round <= ROUNDS_MAX; round++) {
      if (round > 1) say('fewer operations or kills so far than there must be: the faults go on');
      await nemesis.run(
        drawSchedule(random, {
          seconds,
          servers: servers.length,
          shards: SHARDS_PER_SERVER * servers.length,
          clients: clients.length,
          ownerLeaseMs,
          only,
          network: network !== undefined,
          level: levelOf(options.copies),
        }),
        seconds,
        () => failures.length > 0 || counted() >= killsMax,
      );
      const kills = counted();
      if (failures.length > 0 || kills >= killsMax) break;
      if (operationsOf(recordIn(directory)) >= options.operationsMin && kills >= killsMin) break;
    }
    failures.push(...(await readyAgain(servers)));
    await nemesis.whole();
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
    if (exit === '3')
      failures.push(`client ${name}: a key was not answered after all faults were over\n${stderr.slice(-4000)}`);
    else if (exit !== '0' && exit !== 'killed')
      failures.push(`client ${name} ended with ${exit}\n${stderr.slice(-4000)}`);
  }
  const { replicas, durable } = options.copies ?? {};
  storeEvidence(directory, watch.all, { kept, led, faults, ownerLeaseMs, beganNs, replicas, durable });
  const record = recordIn(directory);
  const { violations, ...verdicts } = await judge({
    record,
    epochsOf: (shard) => watch.of(shard),
    kept,
    led,
    faults,
    ownerLeaseMs,
    beganNs,
    replicas,
    durable,
  });
  failures.push(...violations);
  say(
    `${record.keys.size} keys and ${record.scans.length} scans were checked, ${record.looks} values were looked at a second time`,
  );
  const operations = operationsOf(record);
  if (operations < options.operationsMin)
    failures.push(`only ${operations} operations, fewer than ${options.operationsMin}`);
  const counted = (text: string): number =>
    [...record.counts].reduce((sum, [what, n]) => sum + (what.includes(text) ? n : 0), 0);
  const kills = killsIn(faults);
  const ends = allEnded(faults);
  const loaded = underLoad(ends, record).length;
  const enough = levelOf(options.copies) === 'durable' ? loaded : kills;
  if (enough < killsMin) failures.push(`only ${enough} kills, fewer than ${killsMin}`);
  if (failures.length === 0) await rm(directory, { recursive: true, force: true });
  const changes = watch.all;
  return {
    operations,
    keys: record.keys.size,
    outcomes: sorted(record.counts),
    calls: sorted(record.calls),
    secondLooks: record.looks,
    scans: record.scans.length,
    faults: sorted(nemesis.counts),
    network: network !== undefined,
    epochs: changes.length - SHARDS_PER_SERVER * servers.length,
    ownersChanged: changes.filter((e, i) => changes[i - 1]?.shard === e.shard && changes[i - 1]?.owner !== e.owner)
      .length,
    moved: kept.size,
    metadataVersions: watch.maps,
    kills,
    allEnded: ends.length,
    underLoad: loaded,
    overtaken: overtakenIn(faults, led).length,
    indeterminate: counted('ERR_INDETERMINATE'),
    indeterminateLate: counted(`ERR_INDETERMINATE${LATE}`),
    ...(replicas === undefined ? {} : { outages: outagesOf(record, faults) }),
    ...verdicts,
    failures,
    directory,
  };
}

const sorted = (counts: ReadonlyMap<string, number>): Record<string, number> =>
  Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));

async function makeServers(
  { servers, ownerLeaseMs, electionMs = ELECTION_MS, tls, transport, copies, env = {} }: RunOptions,
  directory: string,
  network: Network | undefined,
): Promise<ServerProcess[]> {
  const ports = network === undefined ? await freePorts(2 * servers) : undefined;
  const at = (i: number, port: number): string => `${network?.address(i + 1) ?? '127.0.0.1'}:${port}`;
  const addresses = Array.from({ length: servers }, (_, i) => ({
    address: at(i, ports?.[2 * i] ?? 7400),
    peer: at(i, ports?.[2 * i + 1] ?? 9400),
  }));
  const peers = addresses.map(({ peer }, i) => `s${i + 1}=${peer}`).join(',');
  return addresses.map(({ address, peer }, i) => {
    const id = `s${i + 1}`;
    const dataDir = join(directory, id);
    const server = new ServerProcess(
      id,
      { address, peer },
      dataDir,
      [
        '--id',
        id,
        '--listen',
        address,
        '--peers',
        peers,
        '--data-dir',
        dataDir,
        '--memory',
        '96mb',
        '--shards',
        String(SHARDS_PER_SERVER * servers),
        '--lease-ms',
        '500',
        '--owner-lease-ms',
        String(ownerLeaseMs),
        '--election-ms',
        String(electionMs),
        '--data-plane-threads',
        '1',
        '--level',
        copies?.durable === true ? 'durable' : levelOf(copies),
        ...(copies?.syncMs === undefined ? [] : ['--sync', `${copies.syncMs}ms`]),
        // Links between servers are cut by a cut of the network only where they do not go through shared memory.
        ...(transport === 'tcp' || transport === 'verbs' ? ['--transport', transport] : []),
        ...(transport === 'verbs' ? ['--rdma-device', rdmaDevice()] : []),
        ...(network === undefined && transport !== 'verbs' ? [] : ['--insecure']),
        ...(tls ? TLS_OPTIONS : []),
      ],
      env,
    );
    // Who may make networks may also do this. A run that was begun with `nice` is to leave the machine to others.
    if (network !== undefined)
      server.launcher = [
        ...(getPriority() > 0 ? [] : ['nice', '-n', String(PRIORITY - getPriority())]),
        ...network.launcher(i + 1),
      ];
    return server;
  });
}

/** The one that the tests over RDMA run over. */
function rdmaDevice(): string {
  const device = process.env.FARKV_RDMA_DEVICE;
  if (device === undefined) throw new Error('--transport verbs: FARKV_RDMA_DEVICE is to name the device');
  return device;
}

/** Each on the host of a server, with which it is cut off. */
function makeClient(
  i: number,
  beganNs: number,
  servers: readonly ServerProcess[],
  directory: string,
  network: Network | undefined,
  options: RunOptions,
): ClientProcess {
  const transport = options.transport === 'both' ? (i % 2 === 0 ? 'shm' : 'tcp') : options.transport;
  const host = i % servers.length;
  // Its own host's server first.
  const addresses = servers.map((_, at) => servers[(host + at) % servers.length]!.address);
  return new ClientProcess(network?.launcher(host + 1) ?? [], (start) => {
    const name = `${transport}${i}${start === 0 ? '' : `/${start}`}`;
    return {
      name,
      number: i % COUNTED_CLIENTS,
      transport,
      servers: addresses,
      tls: options.tls,
      lanes: 4,
      beganNs,
      keysForMs: KEYS_FOR_MS,
      burstMs: BURST_MS,
      readsAll: options.copies?.durable === true,
      seed: options.seed * 100 + i + 17 * start,
      file: join(directory, `${name.replace('/', '-')}.jsonl`),
      operationsPerSecond: options.operationsPerSecond / options.clients,
    };
  });
}

const killsIn = (log: FaultLog): number => log.serverFaults.filter((f) => f.kind === 'dead').length;

const operationsOf = ({ counts }: Recorded): number => [...counts.values()].reduce((sum, n) => sum + n, 0);

async function replicate(
  address: string,
  trust: ReturnType<typeof trustSource> | undefined,
  { replicas, minInSync, ...copies }: CopyPolicy,
): Promise<void> {
  const client = await ControlClient.open({ address, trust, timeoutMs: READY_MS, hello: { role: 'admin' } });
  try {
    const policy = { level: copies.durable === true ? 'durable' : 'replicated', replicas, minInSync, onLoss: 'wait' };
    await client.call('replication-set', policy, READY_MS);
  } finally {
    client.close();
  }
}

/** What is wrong with those that do not come back. */
async function readyAgain(servers: readonly ServerProcess[]): Promise<string[]> {
  const given = setTimeout(() => {
    for (const s of servers) if (s.readyLine === undefined) s.signal('SIGKILL');
  }, READY_MS);
  const all = await Promise.allSettled(servers.map((s) => s.ready()));
  clearTimeout(given);
  return all.flatMap((one, i) =>
    one.status === 'rejected'
      ? [`${servers[i]!.id} was not ready ${READY_MS} ms after the last fault: ${String(one.reason).slice(-4000)}`]
      : [],
  );
}
