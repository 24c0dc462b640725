/**
 * A server's data plane, opened and listening: on which transports, with how many workers, and what happens when the
 * device of one is gone.
 */
import { FarkvError } from '../core/errors.js';
import type { FabricAddress, MetadataState, Provider } from '../core/metadata/state.js';
import { tenantRanges } from '../core/metadata/tenants.js';
import { isSameHost, needsDevice } from '../core/providers.js';
import type { Addon } from '../native/addon.js';
import type { DataPlane } from '../native/data-plane.js';
import { shmHost } from '../native/host.js';
import type { ServerSettings } from './config/settings.js';
import { describeError, type Log } from './log.js';
import { removeSockets, socketPaths } from './runtime-directory.js';
import { fabricAddresses, listenList } from './transports.js';

export interface OpenDataPlaneOptions {
  readonly settings: ServerSettings;
  readonly native: Pick<Addon, 'DataPlane' | 'rdmaAddresses'>;
  readonly state: MetadataState;
  readonly transports: readonly Provider[];
  /** Where the sockets of transports for the same host lie. */
  readonly dataDir: string;
  readonly incarnation: bigint;
  readonly log: Log;
  readonly layoutChanged: (shard: number) => void;
  readonly copyNoticed: NonNullable<DataPlane['onCopy']>;
  readonly copyOrphaned: NonNullable<DataPlane['onOrphan']>;
  readonly fatal: (error: FarkvError) => void;
}

export interface OpenedDataPlane {
  readonly plane: DataPlane;
  /** Its addresses as clients may use them. */
  readonly fabric: readonly FabricAddress[];
  readonly close: () => Promise<void>;
}

type Bound = ReturnType<DataPlane['start']>;

export function openDataPlane(options: OpenDataPlaneOptions): OpenedDataPlane {
  const { settings, state, transports, dataDir, log } = options;
  const servers = Math.max(1, state.servers.length, state.voters.length);
  const workers = Math.max(1, Math.min(settings.dataPlaneThreads, Math.ceil(state.shards.length / servers)));
  const sockets = transports.some(isSameHost) ? socketPaths(dataDir, workers) : [];
  removeSockets(sockets);
  let started: readonly [DataPlane, Bound];
  try {
    started = start(options, transports, workers, sockets);
  } catch (error) {
    // An RDMA device that is there and does not work costs the others nothing, unless it was asked for.
    if (!transports.some(needsDevice) || !settings.transportAuto || settings.strict) throw error;
    log.warn(`${transports.filter(needsDevice).join(', ')} cannot be offered: ${describeError(error)}`);
    const left = transports.filter((p) => !needsDevice(p));
    started = start(options, left, workers, sockets);
  }
  const [plane, bound] = started;
  plane.onLayout = options.layoutChanged;
  plane.onCopy = options.copyNoticed;
  plane.onOrphan = options.copyOrphaned;
  const lost = new Set<Provider>();
  plane.onUnreachable = (provider) => {
    if (lost.has(provider)) return;
    lost.add(provider);
    transportLost(
      options,
      provider,
      [...new Set(bound.map((b) => b.provider))].filter((p) => !lost.has(p)),
    );
  };
  if (settings.hugePages !== 'off') logPages(plane, log);
  log.info(`data on ${bound.map((b) => `${b.provider} ${b.address}`).join(', ')}`);
  return {
    plane,
    fabric: fabricAddresses(bound, settings, shmHost()),
    close: async () => {
      await plane.close();
      removeSockets(sockets);
    },
  };
}

function start(
  { settings, native, state, incarnation }: OpenDataPlaneOptions,
  transports: readonly Provider[],
  workers: number,
  sockets: readonly string[],
): readonly [DataPlane, Bound] {
  const { leaseMs, driftPpm, maxClients, clientQuota, spinUs, tcpBusyPollUs, hugePages, memoryBytes } = settings;
  const plane = new native.DataPlane({
    serverIncarnation: incarnation,
    hashSeed: Buffer.from(state.hashSeed, 'hex'),
    ticketSecret: Buffer.from(state.ticketSecret, 'hex'),
    shards: state.shards.length,
    tenants: tenantRanges(state).map(({ count }, i) => ({
      shards: count,
      maxClients: settings.tenants[i - 1]?.maxClients ?? 0,
    })),
    listen: listenList(settings, transports, workers, sockets, native.rdmaAddresses),
    leaseMs,
    driftPpm,
    workers,
    maxClients,
    clientQuota,
    spinUs,
    tcpBusyPollUs,
    hugePages,
    memoryBytes,
  });
  try {
    return [plane, plane.start()];
  } catch (error) {
    void plane.close();
    throw error;
  }
}

/**
 * A device is gone. As at the start: that costs the others nothing, unless this transport was asked for or is the only
 * one for other hosts.
 */
function transportLost(
  { settings: { transportAuto, strict }, log, fatal }: OpenDataPlaneOptions,
  provider: Provider,
  left: readonly Provider[],
): void {
  const gone = `the device of ${provider} is gone, and with it every client that came over ${provider}`;
  if (transportAuto && !strict && left.some((p) => !isSameHost(p)))
    log.error(
      `${gone}: this server is reached over ${left.join(' and ')} until it is restarted (farkv doctor tells when ${provider} would work again)`,
    );
  else fatal(new FarkvError('ERR_UNSUPPORTED', `${gone}: start this server again when farkv doctor finds the device`));
}

function logPages(plane: DataPlane, log: Log): void {
  plane.stats().then(
    ({ pages }) =>
      log.info(
        pages === undefined || pages === 'small'
          ? 'huge pages: the system gives none, tables are in small ones; farkv doctor says how to have them'
          : `huge pages: ${pages} ones for tables`,
      ),
    () => undefined, // It has been closed.
  );
}
