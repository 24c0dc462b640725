/**
 * A server's data plane, opened and listening: on which transports, with how many workers, and what happens when the
 * device of one is gone.
 */
import { FarkvError } from '../core/errors.js';
import type { FabricAddress, MetadataState, Provider } from '../core/metadata/state.js';
import { tenantRanges } from '../core/metadata/tenants.js';
import { isSameHost, needsDevice } from '../core/providers.js';
import type { Addon } from '../native/addon.js';
import type { DataPlane, Listening } from '../native/data-plane.js';
import { shmHost } from '../native/host.js';
import { errnoText } from '../net/regular-file.js';
import type { Found } from '../core/shards/index.js';
import type { ServerSettings } from './config/settings.js';
import { fewDescriptors } from './descriptors.js';
import { reportEnds } from './ended-connections.js';
import { describeError, type Log } from './log.js';
import { watchMemory } from './memory-watch.js';
import { removeSockets, socketPaths } from './runtime-directory.js';
import { isTraced, reportSlow } from './slow-lines.js';
import type { NodeStatus } from './status.js';
import { reportTransports } from './transport-lines.js';
import { attempts, fabricAddresses, listenList, portTaken } from './transports.js';
import { startsWith } from './values-aside.js';
import type { Others } from './values-elsewhere.js';
import { logFailure, recover, type Values } from './values-log.js';

export interface OpenDataPlaneOptions {
  readonly settings: ServerSettings;
  readonly native: Pick<Addon, 'DataPlane' | 'rdmaAddresses' | 'rdmaTrafficClass'>;
  readonly state: () => MetadataState;
  readonly transports: readonly Provider[];
  /** Where the sockets of transports for the same host lie. */
  readonly dataDir: string;
  readonly incarnation: bigint;
  readonly log: Log;
  readonly layoutChanged: (shard: number) => void;
  readonly copyNoticed: NonNullable<DataPlane['onCopy']>;
  readonly ownerSuspected: NonNullable<DataPlane['onSuspicion']>;
  readonly fatal: (error: FarkvError) => void;
  /** Rejects when the server cannot go on, or is stopped: what is being recovered is given up. */
  readonly failure: Promise<never>;
  /** Who may have what is in a damaged log. */
  readonly others: Others;
  /** Of durable shards; undefined: there are none. */
  readonly values: Values | undefined;
}

export interface OpenedDataPlane {
  readonly plane: DataPlane;
  /** Of the status of its server. */
  readonly figures: () => Promise<Pick<NodeStatus, 'dataPlane' | 'changesRefusedAgoMs'>>;
  /** Copies that were on the disk. */
  readonly found: readonly Found[];
  /** Its addresses as clients may use them. */
  readonly fabric: readonly FabricAddress[];
  /** Resolves with whether the disk has all that was answered. */
  readonly close: () => Promise<boolean>;
}

type Bound = ReturnType<DataPlane['start']>;
interface Started {
  readonly plane: DataPlane;
  readonly bound: Bound;
  readonly found: readonly Found[];
}

export async function openDataPlane(options: OpenDataPlaneOptions): Promise<OpenedDataPlane> {
  const { settings, transports, dataDir, log, values } = options;
  const state = options.state();
  const servers = Math.max(1, state.servers.length, state.voters.length);
  const wanted = Math.min(settings.dataPlaneThreads, Math.ceil(state.shards.length / servers));
  const workers = Math.max(1, wanted, values?.threads ?? 0);
  const sockets = transports.some(isSameHost) ? socketPaths(dataDir, workers) : [];
  removeSockets(sockets);
  const started = await startsOver(options, { workers, sockets });
  const { plane, bound, found } = started;
  plane.onLayout = options.layoutChanged;
  plane.onCopy = options.copyNoticed;
  plane.onSuspicion = options.ownerSuspected;
  reportEnds(plane, log);
  let left: readonly Listening[] = bound;
  plane.onUnreachable = (provider, device) => {
    const isLost = (b: Listening): boolean => b.provider === provider && (b.device ?? 0) === device;
    const gone = left.filter(isLost);
    if (gone.length === 0) return;
    left = left.filter((b) => !isLost(b));
    transportLost(options, provider, gone, left);
  };
  if (settings.hugePages !== 'off') logPages(plane, log);
  const few = fewDescriptors(settings.memoryBytes, state.shards.length);
  if (few !== undefined) log.warn(few.text, { event: 'descriptors-few', limit: few.limit, needed: few.needed });
  const memory = watchMemory(plane, log);
  const data = bound.map((b) => `${b.provider} ${b.address}`);
  log.info(`data on ${data.join(', ')}`, { event: 'data-listening', data: data.join() });
  return {
    plane,
    figures: async () => {
      const dataPlane = await plane.stats();
      const changesRefusedAgoMs = memory.refusedAgoMs(dataPlane);
      return { dataPlane, ...(changesRefusedAgoMs === undefined ? {} : { changesRefusedAgoMs }) };
    },
    found,
    fabric: fabricAddresses(bound, settings, shmHost()),
    close: async () => {
      const isSynced = await plane.close();
      removeSockets(sockets);
      return isSynced;
    },
  };
}

interface Listens {
  readonly workers: number;
  readonly sockets: readonly string[];
}

/** An RDMA device that is there and does not work costs the others nothing. */
async function startsOver(options: OpenDataPlaneOptions, { workers, sockets }: Listens): Promise<Started> {
  const { settings, native, log } = options;
  const addresses = options.transports.some(needsDevice) ? native.rdmaAddresses() : [];
  let first: unknown;
  const all = attempts(settings, options.transports, addresses, log);
  for (const [i, { transports, devices }] of all.entries()) {
    const listen = listenList(settings, transports, workers, sockets, devices, addresses);
    try {
      return await startsOf(options, workers, listen);
    } catch (error) {
      first ??= error;
      const { message } = error as Error;
      // The address is named at which it failed.
      const failed = listen.filter((l) => needsDevice(l.provider)).find(({ address }) => message.includes(address));
      if (error instanceof FarkvError || failed === undefined) throw error;
      if (i === all.length - 1) break;
      log.warn(`${failed.provider} on ${devices.join(', ')} cannot be offered: ${describeError(error)}`, {
        event: 'transport-failed',
        transport: failed.provider,
      });
    }
  }
  throw first;
}

function startsOf(options: OpenDataPlaneOptions, workers: number, listen: readonly Listening[]): Promise<Started> {
  const { values, others, log, settings } = options;
  const begin = (): Promise<Started> => start(options, workers, listen);
  return values === undefined ? begin() : startsWith(values, { id: settings.id, others, log }, begin);
}

async function start(options: OpenDataPlaneOptions, workers: number, listen: readonly Listening[]): Promise<Started> {
  const { settings, native, incarnation, values, log, fatal, failure } = options;
  const state = options.state();
  const { leaseMs, driftPpm, maxClients, clientQuota, polling, hugePages, memoryBytes, scrubMs, slowMs } = settings;
  if (settings.rdmaTrafficClass !== undefined) native.rdmaTrafficClass(settings.rdmaTrafficClass);
  const plane = new native.DataPlane({
    serverIncarnation: incarnation,
    hashSeed: Buffer.from(state.hashSeed, 'hex'),
    ticketSecret: Buffer.from(state.ticketSecret, 'hex'),
    shards: state.shards.length,
    tenants: tenantRanges(state).map(({ count }, i) => ({
      shards: count,
      maxClients: settings.tenants[i - 1]?.maxClients ?? 0,
    })),
    listen,
    leaseMs,
    driftPpm,
    workers,
    maxClients,
    clientQuota,
    polling,
    hugePages,
    memoryBytes,
    scrubMs,
    ...(isTraced() ? { slowNs: 1, tracedSlowNs: slowMs * 1e6 } : { slowNs: slowMs * 1e6 }),
    ...(values === undefined ? {} : { log: values.log }),
  });
  reportTransports(plane, log);
  reportSlow(plane, options.state, log);
  // Who asks before this start has its first lease is told nothing.
  plane.setGrantUntil(0n);
  let recovering = true;
  try {
    if (values === undefined) return { plane, bound: plane.start(), found: [] };
    const { directory } = values.log;
    plane.onLogFailed = (...failure) => fatal(logFailure(directory, ...failure));
    plane.onSnapshotFailed = (shard, operation, file, errno) =>
      log.error(
        `shard ${shard}: no snapshot in ${directory}: ${operation} ${file} failed: ${errnoText(errno)}. Nothing is lost; it is tried again in a minute, and the log grows until then`,
        { event: 'snapshot-failed', shard, file, errno },
      );
    failure.catch(() => void (recovering && plane.close()));
    const { addresses, found } = await recover(plane, values, log);
    return { plane, bound: addresses, found };
  } catch (error) {
    await plane.close();
    throw (error as { code?: unknown }).code === 'ERR_ADDRESS_IN_USE' ? portTaken(describeError(error), error) : error;
  } finally {
    recovering = false;
  }
}

const addressesOf = (bound: readonly Listening[]): string => bound.map((b) => b.address).join(', ');

/**
 * A device is gone. As at the start: that costs the others nothing, unless it was the last one and this transport was
 * asked for or is the only one for other hosts.
 */
function transportLost(
  { settings: { transportAuto, strict }, log, fatal }: OpenDataPlaneOptions,
  provider: Provider,
  lost: readonly Listening[],
  left: readonly Listening[],
): void {
  const others = left.filter((b) => b.provider === provider);
  const [device, over] =
    others.length === 0
      ? [`the device of ${provider}`, provider]
      : [`the device of ${provider} at ${addressesOf(lost)}`, 'it'];
  const gone = `${device} is gone, and with it every client that came over ${over}`;
  const names = [...new Set(left.map((b) => b.provider))].map((p) =>
    p === provider ? `${provider} at ${addressesOf(others)}` : p,
  );
  if (others.length > 0 || (transportAuto && !strict && left.some((b) => !isSameHost(b.provider))))
    log.error(
      `${gone}: this server is reached over ${names.join(' and ')} until it is restarted (farkv doctor tells when ${provider} would work again)`,
      { event: 'transport-lost', transport: provider, address: addressesOf(lost), left: names.join() },
    );
  else fatal(new FarkvError('ERR_UNSUPPORTED', `${gone}: start this server again when farkv doctor finds the device`));
}

function logPages(plane: DataPlane, log: Log): void {
  plane.stats().then(
    ({ pages }) =>
      log.info(
        pages === 'small'
          ? 'huge pages: the system gives none, tables are in small ones; farkv doctor says how to have them'
          : `huge pages: ${pages} ones for tables`,
        { event: 'huge-pages', pages },
      ),
    () => undefined, // It has been closed.
  );
}
