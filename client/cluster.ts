/**
 * One client's connection to a cluster: the control connection, the native client that is made when the first map has
 * come, and what passes between them. connect.ts makes it; views of the client use its `operations`.
 *
 * Ready means: a map is there, shards in it have owners, every owner's data plane was tried and at least one is
 * connected. When the time for that is over and one is connected, that will do: the operations on the others say what
 * is wrong with them.
 */
import { FarkvError, NO_DATA_PLANE } from '../core/errors.js';
import type { ClientMap } from '../core/protocol/messages.js';
import { addon } from '../native/addon.js';
import type { NativeClient, NativeClientEvent } from '../native/native-client.js';
import { Deadline } from '../net/deadline.js';
import { AbortWatch } from './abort-watch.js';
import { BatchChanges } from './batch-changes.js';
import { BatchReads } from './batch-reads.js';
import { ControlConnection } from './control-connection.js';
import { abortError } from './pending.js';
import { Operations } from './operations.js';
import { parseServer, type Settings } from './options.js';
import { RefusedTicket } from './refused-ticket.js';
import { Routes, shardRange, type Identity } from './routes.js';
import { Scanner } from './scan.js';
import { SpunReads } from './spun-reads.js';
import { StaleMap } from './stale-map.js';
import { isTraced } from './trace.js';
import { localCapabilities, type ClientStats, type Transport } from './transport.js';
import { ValueMemory } from './value-memory.js';

/** Of all that are connecting. */
const aborts = new AbortWatch<() => void>((end) => end());

/** Refusals that no waiting mends: when every server answers with one, connect fails at once. */
const FINAL = new Set(['ERR_UNAUTHORIZED', 'ERR_PROTOCOL_VERSION', 'ERR_CONFIG', 'ERR_ADDRESS_INVALID']);

/** Where every server refuses connections, connect looks for so long: one may be starting. */
const NOBODY_MS = 1000;

/** What there is once the first map has come. */
export interface Parts {
  readonly native: NativeClient;
  readonly operations: Operations;
  readonly spun: SpunReads;
  readonly batches: BatchReads;
  readonly changes: BatchChanges;
  readonly scanner: Scanner;
}

/** Where a client's entries come from. */
export interface Origin extends Identity {
  /** The client's tenant; undefined: the default one. */
  readonly tenant?: string;
}

export class Cluster {
  readonly #settings: Settings;
  readonly #routes: Routes;
  readonly #access = { readOnly: false };
  readonly #control: ControlConnection;
  /** The welcome of any server brings another ticket, with the same id. */
  readonly #refusedTicket = new RefusedTicket(() => this.#control.reconnect());
  // Not from inside the drain that an operation ended in.
  readonly #stale = new StaleMap(() =>
    queueMicrotask(() => {
      if (!this.#closed) this.#control.reconnect();
    }),
  );
  readonly #open: Promise<Parts>;
  #opened: (parts: Parts) => void = () => undefined;
  #refused: (error: FarkvError) => void = () => undefined;
  #settled = false;
  #parts: Parts | undefined;
  #ticket: Uint8Array | undefined;
  #tenant: string | undefined;
  #unowned = false;
  #mapEpoch = -1;
  #controlErrors: readonly FarkvError[] = [];
  #begunAt = 0;
  /** The cluster that was named last, if it is another one than the client's. */
  #stranger: string | undefined;
  #closed = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    const { transport: choice, strict, tls } = settings;
    this.#routes = new Routes({ choice, strict, secure: tls !== undefined }, localCapabilities());
    this.#open = new Promise<Parts>((resolve, reject) => {
      this.#opened = resolve;
      this.#refused = reject;
    });
    this.#control = new ControlConnection({
      servers: settings.servers,
      token: settings.token,
      tls: settings.tls,
      handlers: {
        cluster: (clusterId) => this.#named(clusterId),
        map: (map) => this.#map(map),
        ticket: (ticket) => this.#newTicket(ticket),
        access: (access, tenant) => {
          this.#access.readOnly = access === 'reader';
          this.#tenant = tenant;
        },
        connected: (server) => settings.onEvent({ type: 'control', server, connected: true }),
        failed: (server, error) =>
          settings.onEvent({ type: 'control', server, connected: false, reason: error.message }),
        roundFailed: (errors) => this.#roundFailed(errors),
      },
    });
  }

  /** Resolves when ready; see above. The connection is closed when it rejects. */
  async open(): Promise<Parts> {
    const { signal, connectTimeoutMs } = this.#settings;
    const aborted = (): void =>
      this.#fail(signal === undefined ? new FarkvError('ERR_ABORTED', 'cancelled') : abortError(signal));
    if (signal?.aborted === true) throw abortError(signal);
    if (signal !== undefined) aborts.add(aborted, signal);
    const deadline = new Deadline(connectTimeoutMs, () => this.#timeIsOver());
    this.#begunAt = performance.now();
    this.#control.start();
    try {
      const parts = await this.#open;
      this.#control.unref();
      return parts;
    } catch (error) {
      this.close();
      throw error;
    } finally {
      deadline.clear();
      if (signal !== undefined) aborts.remove(aborted, signal);
    }
  }

  transports(): readonly Transport[] {
    return this.#routes.states.map((state) => state.report());
  }

  stats(): ClientStats {
    if (this.#parts === undefined) throw new FarkvError('ERR_CLOSED', 'not connected');
    const { owners, ...counts } = this.#parts.operations.stats();
    const { gets, reads } = counts;
    return { ...counts, readsPerGet: gets === 0 ? 0 : reads / gets, transports: this.transports() };
  }

  /** Which cluster this is, and the part of it that is the client's. */
  origin(): Origin {
    const { identity } = this.#routes;
    if (identity === undefined) throw new FarkvError('ERR_CLOSED', 'not connected');
    return this.#tenant === undefined ? identity : { ...identity, tenant: this.#tenant };
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#refusedTicket.replaced();
    this.#control.close();
    this.#parts?.operations.close();
  }

  // ---------------------------------------------------------------- what the control connection says

  /**
   * Owners of another cluster listen where the client's own did. With a ticket of theirs the client would read and
   * change their entries; the ticket that it has opens nothing there.
   */
  #named(clusterId: string): void {
    if (clusterId === '') return;
    this.#stranger = clusterId;
    this.#routes.checkCluster(clusterId); // mutation: client/ticket-of-a-stranger
    this.#stranger = undefined;
  }

  #map(map: ClientMap): void {
    if (this.#closed || map.clusterId === '' || map.shards.length === 0) return;
    // A server that is behind the one before it brings nothing new.
    if (map.mapEpoch < this.#mapEpoch) return;
    const { owners, routes } = this.#routes.update(map);
    const parts = (this.#parts ??= this.#start(map));
    parts.native.setReplicated(map.replicated === true);
    parts.native.setOwners(owners);
    parts.native.setRoutes(routes);
    this.#stale.taken(map.mapEpoch > this.#mapEpoch);
    this.#mapEpoch = map.mapEpoch;
    // One shard that waits for an operator is to keep nobody from the others.
    this.#unowned = routes.every((route) => route.owner < 0);
    this.#control.learn(map.members.flatMap((member) => member.control).filter(isServer));
    this.#settings.onEvent({ type: 'map', mapEpoch: map.mapEpoch });
    this.#look();
  }

  #start(map: ClientMap): Parts {
    if (this.#ticket === undefined) throw new FarkvError('ERR_PROTOCOL', 'a map came without a ticket');
    const { timeoutMs, maxOutstanding, maxQueued, polling, cachedLocations, unavailableAfterMs } = this.#settings;
    const shards = shardRange(map);
    const native = new addon.NativeClient({
      hashSeed: Buffer.from(map.hashSeed, 'hex'),
      shards: shards.count,
      firstShard: shards.first,
      ticket: this.#ticket,
      timeoutMs,
      maxOutstanding,
      polling,
      cachedLocations,
      unavailableMs: Number.isFinite(unavailableAfterMs) ? unavailableAfterMs : 0,
      traced: isTraced(),
      onReady: () => this.#parts?.operations.drain(),
      onEvent: (event) => this.#native(event),
    });
    const values = new ValueMemory();
    const operations = new Operations(native, values, {
      maxOutstanding,
      maxQueued,
      explain: (shard) => this.#explain(shard),
      ended: (shard) => this.#routes.ended(shard),
      // The control server may be cut off from those that know who owns the shard now.
      unavailable: () => this.#stale.unavailable(),
      access: this.#access,
    });
    return {
      native,
      operations,
      spun: new SpunReads(native, values, operations.errors),
      batches: new BatchReads(native, operations),
      changes: new BatchChanges(native, operations),
      scanner: new Scanner(operations, shards),
    };
  }

  #explain(shard: number): string {
    const own = this.#routes.identity?.clusterId ?? '';
    return this.#stranger === undefined
      ? this.#routes.explain(shard)
      : `the cluster of this client, ${own}, is gone: ${this.#settings.servers.join(', ')} has a new one, ${this.#stranger}. Connect again; a server keeps its cluster with --data-dir`;
  }

  #newTicket(ticket: Uint8Array): void {
    this.#ticket = ticket;
    this.#refusedTicket.replaced();
    this.#parts?.native.setTicket(ticket);
  }

  #roundFailed(errors: readonly FarkvError[]): void {
    this.#controlErrors = errors;
    const [first] = errors;
    if (first === undefined || this.#parts !== undefined) return;
    if (errors.every((error) => FINAL.has(error.code)))
      this.#fail(new FarkvError(first.code, this.#describe('no server accepts this client', errors), { cause: first }));
    else if (errors.every(isRefused) && performance.now() - this.#begunAt >= NOBODY_MS) this.#nobodyListens(errors);
  }

  #nobodyListens(errors: readonly FarkvError[]): void {
    this.#fail(
      new FarkvError('ERR_DISCONNECTED', this.#describe('no server listens there', errors), { cause: errors[0] }),
    );
  }

  // ---------------------------------------------------------------- what the native side says

  #native(event: NativeClientEvent): void {
    if (this.#closed) return;
    if (event.type === 'line') {
      const { level, message, omitted } = event;
      this.#settings.onEvent({ type: 'log', level, message, omitted });
      return;
    }
    if (event.type === 'not-owner') {
      // The server will push what changed, unless it has lost its cluster.
      this.#stale.notOwner();
      return;
    }
    if (event.type === 'silent') {
      // What the map says next may come from the same server.
      this.#control.probe();
      return;
    }
    if (event.type === 'refused' && event.reason === 'ERR_UNAUTHORIZED') this.#refusedTicket.refused();
    else if (event.type === 'connected') this.#refusedTicket.accepted();
    const state = this.#routes.state(event.owner);
    if (state === undefined) return;
    if (event.type === 'connected') state.connectedBy(event.provider, event.ended);
    else state.failed(event.provider, event.reason);
    this.#settings.onEvent({ type: 'transport', transport: state.report() });
    this.#look();
  }

  // ---------------------------------------------------------------- ready or not

  #look(): void {
    if (this.#settled || this.#parts === undefined) return;
    const { states } = this.#routes;
    const unreachable = states.filter((state) => state.unreachable);
    if (unreachable.length > 0 && (this.#settings.strict || unreachable.length === states.length)) {
      const { transport, strict } = this.#settings;
      const what =
        strict && transport !== 'auto'
          ? `transport ${transport} cannot be used, and strict allows no other`
          : 'no transport can be used';
      this.#fail(
        new FarkvError(
          'ERR_UNSUPPORTED',
          `${what}: ${unreachable.map((s) => `${s.server}: ${s.report().reason}`).join(', ')}`,
        ),
      );
      return;
    }
    if (this.#unowned || !states.every((state) => state.tried) || !states.some((state) => state.connected)) return;
    this.#succeed(this.#parts);
  }

  #timeIsOver(): void {
    if (this.#settled) return;
    const { connectTimeoutMs } = this.#settings;
    if (this.#parts !== undefined && this.#routes.states.some((state) => state.connected)) {
      this.#succeed(this.#parts);
    } else if (this.#parts !== undefined) {
      const why = this.transports()
        .map(({ server, reason }) => `${server}: ${reason}`)
        .join('; ');
      this.#fail(
        why === ''
          ? new FarkvError(
              'ERR_SHARD_UNAVAILABLE',
              `no shard has had a server that serves it for ${connectTimeoutMs} ms, though servers answer`,
            )
          : new FarkvError(
              'ERR_TIMEOUT',
              `${NO_DATA_PLANE} within ${connectTimeoutMs} ms (${why}): its port must be reachable from here, as the one of its control plane is; where servers have other addresses than they listen on, farkv server --advertise names them`,
            ),
      );
    } else if (this.#controlErrors.length > 0 && this.#controlErrors.every(isRefused)) {
      this.#nobodyListens(this.#controlErrors);
    } else {
      const [cause] = this.#controlErrors;
      this.#fail(
        new FarkvError(
          'ERR_TIMEOUT',
          this.#describe(`no server answered within ${connectTimeoutMs} ms`, this.#controlErrors),
          { cause },
        ),
      );
    }
  }

  #succeed(parts: Parts): void {
    this.#settled = true;
    this.#opened(parts);
  }

  #fail(error: FarkvError): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#refused(error);
  }

  #describe(what: string, errors: readonly FarkvError[]): string {
    const reasons = [...new Set(errors.map((error) => error.message))].join('; ');
    return `${what} (${this.#settings.servers.join(', ')})${reasons === '' ? '' : `: ${reasons}`}`;
  }
}

/** The machine answered, and nobody listens on the port. */
function isRefused({ cause }: FarkvError): boolean {
  return (cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED';
}

function isServer(address: string): boolean {
  try {
    parseServer(address);
    return true;
  } catch {
    return false;
  }
}
