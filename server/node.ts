/**
 * A server, put together, in its own thread. Start-up, in order; each step needs the one before:
 *
 *   1  the data directory is locked          whoever held it is dead: leases of the last run count from here
 *   2  both ports are bound                  a port in use ends the start before anything is promised
 *   3  the Raft member starts                other servers are dialed; alone, it leads at once
 *   4  the metadata has a cluster            bootstrapped by the leader, or read from the log
 *   5  the data plane listens                it needs the cluster's hash seed and ticket secret
 *   6  this start joins                      the metadata closes what the last start served: new epochs
 *   7  shards are opened, told, and served   after the leases of the last run are over (shards/driver.ts)
 *
 * A restart goes the same way; 4 is read from the disk, and 7 waits. A witness has neither 5 nor 7.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { FarkvError } from '../core/errors.js';
import { toHex64 } from '../core/hex64.js';
import { isWitness } from '../core/metadata/placement.js';
import type { FabricAddress, MetadataState, Provider } from '../core/metadata/state.js';
import type { Found } from '../core/shards/index.js';
import type { Addon } from '../native/addon.js';
import type { DataPlane } from '../native/data-plane.js';
import { shmHost } from '../native/host.js';
import { certificateEnd } from '../net/certificate.js';
import { PACKAGE_VERSION } from '../native/version.js';
import { answerCall, type CallContext } from './calls.js';
import type { ServerSettings } from './config/settings.js';
import { secretsOf } from './config/secret-file.js';
import { checkFirstStart, checkSize } from './config/cluster-size.js';
import { checkTenants } from './config/tenants.js';
import { formatHostPort } from './config/units.js';
import { isOpen, Tokens } from './control/auth.js';
import { advertised } from './control/advertise.js';
import { JOIN_GUESSES } from './control/bounds.js';
import { Bucket } from './control/bucket.js';
import { FrontThread } from './control/front-thread.js';
import { accessOf } from './control/tickets.js';
import type { Listener } from './control/listener.js';
import { openPeerPort } from './control/peer-port.js';
import { serverTrust } from './control/tls.js';
import { DataDirectory } from './data-directory.js';
import { reportLevels } from './level-lines.js';
import { codeOf, describeError, Log, type LogSink } from './log.js';
import { MetadataGroup } from './metadata/group.js';
import { joinCluster } from './metadata/join.js';
import { joinMembers } from './metadata/join-members.js';
import type { MetadataDriver } from './metadata/driver.js';
import { LeaseHolder } from './metadata/lease-holder.js';
import { LatestWall } from './latest-wall.js';
import { asFarkvError } from './native-errors.js';
import { longestLeaseMs, waitForLeases } from './shards/lease-wait.js';
import { reportLeft, whetherStays } from './shards/leaving.js';
import { NO_TROUBLES, ShardDriver } from './shards/driver.js';
import { probe } from './shards/probe.js';
import { openDataPlane, type OpenDataPlaneOptions, type OpenedDataPlane } from './open-data-plane.js';
import type { ClusterStatus } from './status.js';
import { availableTransports, tryListening } from './transports.js';
import { othersOf } from './values-elsewhere.js';
import { isAllFound, isDurable, toldOf, valuesOf, type Values } from './values-log.js';

export type Native = OpenDataPlaneOptions['native'] &
  Pick<Addon, 'constants' | 'makeTicket' | 'openTicket' | 'crc32c' | 'bootTimeNs' | 'tryLock' | 'dropCleanPages'>;

/** Addresses of a server as others may use them. */
export interface Ports {
  readonly control: readonly string[];
  readonly peer: readonly string[];
}

export interface ReadyInfo extends Ports {
  readonly id: string;
  readonly clusterId: string;
  readonly http: readonly string[];
  readonly fabric: readonly FabricAddress[];
  readonly shards: readonly number[];
  readonly dataDir: string;
  readonly ephemeral: boolean;
}

const WAITING_MS = 5000;
const LEASE_END_MS = 500;
const JOIN_CALL_MS = 5000;
const REMOVED_MS = 10_000;
const REMOVED_LOOK_MS = 20;

const random64 = (): bigint => randomBytes(8).readBigUInt64LE() | 1n;

export class FarkvNode {
  /** Rejects when the server cannot go on, also before it is ready; ERR_CLOSED when it was stopped. */
  readonly failure: Promise<never>;
  readonly #fail: (error: FarkvError) => void;
  readonly #settings: ServerSettings;
  readonly #native: Native;
  readonly #log: Log;
  readonly #incarnation = random64();
  readonly #startedMs = performance.now();
  readonly #latestWall = new LatestWall();
  /** What is to be undone, newest last. */
  readonly #undo: (() => void | Promise<void>)[] = [];
  readonly #front: Worker;
  #starting: Promise<ReadyInfo> | undefined;
  #stopping: Promise<void> | undefined;
  #joined = false;
  #instance = '';
  #leaving = false;
  #shards: ShardDriver | undefined;
  #access: { readonly plane: DataPlane; readonly rules: MetadataState['tickets'] } | undefined;
  #dataPlane: DataPlane | undefined;
  #figures: OpenedDataPlane['figures'] | undefined;
  #values: Values | undefined;
  /** Copies that were on the disk. */
  #found: readonly Found[] = [];
  #calls: CallContext | undefined;
  #lease: LeaseHolder | undefined;
  #http: readonly string[] = [];

  constructor(settings: ServerSettings, native: Native, front: Worker, sink: LogSink) {
    this.#settings = settings;
    this.#native = native;
    this.#front = front;
    this.#log = new Log(settings.logLevel, sink);
    let reject: ((error: FarkvError) => void) | undefined;
    this.failure = new Promise<never>((_, no) => {
      reject = no;
    });
    this.failure.catch(() => undefined);
    this.#fail = (error) => reject?.(error);
  }

  /** Resolves when every shard of this server is served. Rejects with why not, after everything is undone. */
  async start(): Promise<ReadyInfo> {
    try {
      this.#starting = this.#start();
      return await this.#starting;
    } catch (error) {
      await this.stop();
      throw asFarkvError(error);
    }
  }

  async status(): Promise<ClusterStatus> {
    if (this.#calls === undefined) throw new FarkvError('ERR_CLOSED', 'the server is not running');
    return (await answerCall(this.#calls, 'monitor', 'status', {})) as ClusterStatus;
  }

  /** Idempotent. Waits, for a bounded time, until clients can no longer read what this server gives up. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#fail(new FarkvError('ERR_CLOSED', 'the server was stopped'));
    // Every wait of the start ends with `failure`; what it has made is known then.
    await this.#starting?.catch(() => undefined);
    for (const undo of this.#undo.splice(0).reverse()) {
      try {
        await undo();
      } catch (error) {
        this.#log.warn(`stopping: ${describeError(error)}`, { event: 'stop-failed', ...codeOf(error) });
      }
    }
  }

  /** A wait of the start: ends early when the server is stopped or cannot go on. */
  #unlessFailed<T>(promise: Promise<T>): Promise<T> {
    return Promise.race([promise, this.failure]);
  }

  async #start(): Promise<ReadyInfo> {
    const { id, dataDir, peers, tls, join } = this.#settings;
    const votesOnly = isWitness(this.#settings);
    const transports = votesOnly
      ? []
      : availableTransports(this.#settings, this.#native.constants.providers, this.#log);
    const directory = DataDirectory.open({
      path: dataDir,
      id,
      peers,
      join: join.length > 0,
      newInstance: randomBytes(8).toString('hex'),
      tryLock: this.#native.tryLock,
    });
    const lockedNs = this.#native.bootTimeNs();
    this.#instance = directory.instance;
    // The others that refuse it may not know it yet: the next start finds out.
    const isNew = directory.joined && directory.servers === undefined;
    this.#undo.push(() => directory.close());

    const group = new MetadataGroup({
      settings: this.#settings,
      directory,
      native: this.#native,
      incarnation: toHex64(this.#incarnation),
      log: this.#log,
      trust: tls === undefined ? undefined : serverTrust(tls, this.#log),
      fatal: (error) => this.#fail(error),
      outcast: (error) => {
        // A member that is cut off waits for better times, unless it is told that it is none.
        if (this.#joined && (this.#leaving || !['ERR_CONFIG', 'ERR_REMOVED'].includes(error.code))) return;
        this.#fail(isNew && error.code === 'ERR_REMOVED' ? new FarkvError('ERR_CONFIG', error.message) : error);
      },
    });
    this.#undo.push(() => group.stop());
    const ports = await this.#ports(group, directory);
    this.#undo.push(() => group.handOver());
    if (directory.clusterId === '') {
      if (!votesOnly && !directory.joined) checkFirstStart(this.#settings, this.#native.constants.memoryMin);
      await tryListening(this.#settings, transports, this.#native.rdmaAddresses);
    }

    if (directory.joined) await this.#askForPlace(group, directory, ports);
    group.start(ports.peer);
    const state = await this.#unlessFailed(group.whenClustered(WAITING_MS, () => group.reportWait(this.#log)));
    directory.setClusterId(state.clusterId);
    checkTenants(this.#settings.tenants, state.tenants);
    if (!votesOnly) checkSize(this.#settings, state, this.#native.constants.memoryMin, this.#log);
    reportLevels(state, this.#settings.levelAsked, votesOnly || directory.joined, this.#log);
    const fabric = votesOnly ? [] : await this.#listen(group, directory, transports);
    const lease = this.#leaseHolder(group);
    const shards = votesOnly ? undefined : this.#shardDriver(group, directory, lockedNs, lease);
    await this.#unlessFailed(this.#join(group, directory, ports, fabric));
    lease.start();
    shards?.stateChanged();
    await this.#unlessFailed(
      // A shard that had an owner and has none waits for others, or for an operator.
      shards?.until(() => group.driver.state.shards.every((s) => s.epoch > 0) && shards.settled) ?? Promise.resolve(),
    );
    return {
      id,
      clusterId: state.clusterId,
      ...ports,
      http: this.#http,
      fabric,
      shards: shards?.serving ?? [],
      dataDir: directory.path,
      ephemeral: directory.ephemeral,
    };
  }

  /** A server that comes to a cluster; one that has come already knows the others. */
  async #askForPlace(group: MetadataGroup, directory: DataDirectory, ports: Ports): Promise<void> {
    const { id, join, joinToken, access, tls } = this.#settings;
    if (directory.servers !== undefined) return;
    const abort = new AbortController();
    try {
      const answer = await this.#unlessFailed(
        joinCluster({
          id,
          instance: directory.instance,
          ...ports,
          addresses: join,
          tokens: access.peer === undefined ? [] : new Tokens(access.peer).all,
          joinToken: joinToken === undefined ? undefined : secretsOf(joinToken, '--join-token-file')[0],
          trust: tls === undefined ? undefined : serverTrust(tls, this.#log),
          timeoutMs: JOIN_CALL_MS,
          signal: abort.signal,
          sleep,
          log: this.#log,
        }),
      );
      directory.setServers(answer.servers);
      directory.setClusterId(answer.clusterId);
      group.peers.refresh(answer.servers);
    } finally {
      abort.abort();
    }
  }

  /** Binds the addresses of both ports and answers there. Returns them as others may use them. */
  async #ports(group: MetadataGroup, directory: DataDirectory): Promise<Ports> {
    const { driver, peers, grantor, proposer, duties } = group;
    const { id, advertise, tls } = this.#settings;
    const ports: { front?: FrontThread; peers?: Listener } = {};
    const certificate = tls === undefined ? undefined : certificateEnd(tls.cert);
    const joinGuesses = new Bucket(JOIN_GUESSES, performance.now());
    const calls: CallContext = {
      ...{ id, driver, peers, grantor },
      propose: (command, ms) => proposer.propose(command, ms),
      reset: (asked, accepted) => duties.reset(asked, accepted),
      nowMs: () => Number(this.#native.bootTimeNs()) / 1e6,
      latestWallMs: () => this.#latestWall.ms(),
      joinTokens: !isOpen(this.#settings.access),
      mayGuess: () => joinGuesses.take(performance.now()),
      stays: () => this.#stopping === undefined,
      parts: () => ({ lease: this.#lease, values: this.#values, shards: this.#shards, dataPlane: this.#dataPlane }),
      own: async () => ({
        version: PACKAGE_VERSION,
        processId: process.pid,
        uptimeMs: Math.round(performance.now() - this.#startedMs),
        connections: (ports.front?.figures.connections ?? 0) + (ports.peers?.connections ?? 0),
        clients: ports.front?.figures.clients ?? 0,
        ...(ports.front?.stalledMs === undefined ? {} : { frontStalledMs: ports.front.stalledMs }),
        ...duties.shown,
        ...(this.#shards?.troubles ?? NO_TROUBLES),
        ...(this.#lease === undefined ? {} : { leaseHeld: this.#lease.held, leaseLeftMs: this.#lease.leftMs }),
        ...(this.#stopping === undefined ? {} : { stopping: true }),
        ...(certificate === undefined ? {} : { certificateEndsMs: certificate.value }),
        group: group.figures,
        ...(await this.#figures?.()),
        ...(this.#values === undefined ? {} : { values: await this.#values.watch.status() }),
      }),
    };
    this.#calls = calls;
    const listener = (ports.peers = await openPeerPort({
      settings: this.#settings,
      instance: directory.instance,
      group,
      call: (who, method, args, from) => answerCall(calls, who, method, args, from),
      log: this.#log,
    }));
    this.#undo.push(() => listener.close());
    const front = (ports.front = await FrontThread.open({
      worker: this.#front,
      incarnation: toHex64(this.#incarnation),
      call: (caller, method, args) => answerCall(calls, caller, method, args),
      log: this.#log,
      failed: (error) => this.#fail(error),
    }));
    this.#undo.push(() => front.close());
    driver.onState((state) => {
      front.stateChanged(state);
      this.#setAccess(state);
      this.#stateChanged(state, driver);
    });
    front.stateChanged(driver.state);
    this.#http = front.http.map(formatHostPort);
    const [control = '', servers = ''] = [front.bound, listener.bound].map((at) => at.map(formatHostPort).join(', '));
    this.#log.info(
      `control on ${control}, servers on ${servers}${this.#http.map((at) => `, http on ${at}`).join('')}${tls === undefined ? '' : ' (TLS 1.3)'}`,
      { event: 'listening', control, servers, http: this.#http.join(), tls: tls !== undefined },
    );
    return { control: advertised(front.bound, advertise), peer: advertised(listener.bound, advertise) };
  }

  /** Tells the data plane which tickets are good, where that has changed. */
  #setAccess(state: MetadataState): void {
    const told = this.#access;
    if (this.#dataPlane === undefined) return;
    if (told?.plane === this.#dataPlane && told.rules === state.tickets) return;
    this.#dataPlane.setAccess(accessOf(state));
    this.#access = { plane: this.#dataPlane, rules: state.tickets };
  }

  #stateChanged(state: MetadataState, driver: MetadataDriver): void {
    const { id } = this.#settings;
    const incarnation = state.members.get(id)?.incarnation;
    if (this.#joined && state.servers.find((s) => s.id === id)?.instance !== this.#instance) {
      void this.#removed(driver);
    } else if (this.#joined && incarnation !== toHex64(this.#incarnation)) {
      this.#fail(new FarkvError('ERR_CONFIG', `another server has joined as ${id}`));
    }
    this.#shards?.stateChanged();
  }

  /**
   * A leader first sees to it that the group can do without it: the others might not have the entry that removes it.
   */
  async #removed(driver: MetadataDriver): Promise<void> {
    if (this.#leaving) return;
    this.#leaving = true;
    for (let waited = 0; driver.leads && waited < REMOVED_MS; waited += REMOVED_LOOK_MS) await sleep(REMOVED_LOOK_MS);
    this.#fail(
      new FarkvError('ERR_REMOVED', `${this.#settings.id} was removed from the cluster (farkv member remove)`),
    );
  }

  /** Starts the data plane with what durable shards need. Returns its addresses as clients may use them. */
  async #listen(
    group: MetadataGroup,
    directory: DataDirectory,
    transports: readonly Provider[],
  ): Promise<readonly FabricAddress[]> {
    const others = othersOf(group, (promise) => this.#unlessFailed(promise), sleep, this.#log);
    if (isDurable(group.driver.state)) await others.current();
    const { state } = group.driver;
    const shardMemoryMin = this.#native.constants.memoryMin;
    this.#values = valuesOf(state, directory, { ...this.#settings, shardMemoryMin });
    const opened = await openDataPlane({
      settings: this.#settings,
      native: this.#native,
      state: () => group.driver.state,
      transports,
      dataDir: directory.path,
      incarnation: this.#incarnation,
      log: this.#log,
      layoutChanged: (shard) => this.#shards?.layoutChanged(shard),
      copyNoticed: (shard, copy, what) => this.#shards?.copyNoticed(shard, copy, what),
      ownerSuspected: (...suspicion) => this.#shards?.ownerSuspected(...suspicion),
      fatal: (error) => this.#fail(error),
      failure: this.failure,
      others,
      values: this.#values,
    });
    this.#dataPlane = opened.plane;
    this.#figures = opened.figures;
    this.#found = opened.found;
    this.#undo.push(async () => {
      this.#dataPlane = this.#figures = undefined;
      this.#values?.early.ended(await opened.close());
    });
    this.#setAccess(state);
    return opened.fabric;
  }

  /** Before it is started the data plane grants and answers nothing. */
  #leaseHolder(group: MetadataGroup): LeaseHolder {
    const { driver } = group;
    const keeper = (this.#lease = new LeaseHolder({
      request: { incarnation: toHex64(this.#incarnation), knows: driver.knownFormat },
      ask: (request, ms) => group.askLease(request, ms),
      applied: (index) => driver.whenApplied(index),
      fence: async () => await this.#shards?.fence(),
      setGrantUntil: (ns) => this.#dataPlane?.setGrantUntil(ns),
      bootTimeNs: this.#native.bootTimeNs,
      leaseMs: this.#settings.ownerLeaseMs,
      log: this.#log,
    }));
    this.#undo.push(() => keeper.close());
    driver.onLeader(() => {
      if (this.#joined) keeper.renew();
    });
    return keeper;
  }

  #shardDriver(
    { driver, proposer, peers }: MetadataGroup,
    directory: DataDirectory,
    lockedNs: bigint,
    lease: LeaseHolder,
  ): ShardDriver {
    const { leaseMs, driftPpm, id, drainMs } = this.#settings;
    const dataPlane = this.#dataPlane;
    if (dataPlane === undefined) throw new FarkvError('ERR_INTERNAL', 'the data plane is not running');
    const shards = new ShardDriver({
      memberId: id,
      incarnation: toHex64(this.#incarnation),
      shardMemoryMin: this.#native.constants.memoryMin,
      dataPlane,
      here: { providers: this.#native.constants.providers, host: shmHost(), secure: this.#settings.tls !== undefined },
      state: () => driver.state,
      propose: (command, ms) => proposer.propose(command, ms),
      leasesOver: Promise.all([
        waitForLeases(directory.lastRun, lockedNs, { bootTimeNs: this.#native.bootTimeNs, sleep }),
        lease.first,
      ]).then(() => undefined),
      beforeServing: () => directory.markServing({ leaseMs: longestLeaseMs(leaseMs, driver.state), driftPpm }),
      random64,
      found: this.#found,
      sleep,
      probe,
      stays: (server) => whetherStays(peers, server),
      log: this.#log,
      fatal: (error) => this.#fail(error),
    });
    this.#shards = shards;
    this.#undo.push(async () => {
      reportLeft(await shards.leave(drainMs), this.#log);
      this.#shards = undefined;
      if (!(await shards.close(2 * leaseMs + 1000))) return;
      directory.clearServing();
      if (this.#joined) await lease.end(LEASE_END_MS);
    });
    return shards;
  }

  async #join(
    { driver, proposer }: MetadataGroup,
    directory: DataDirectory,
    ports: Ports,
    fabric: readonly FabricAddress[],
  ): Promise<void> {
    const { id, memoryBytes, zone, syncMs } = this.#settings;
    const early = this.#values?.early;
    const isAll = isAllFound(driver.state, id, this.#found);
    early?.begins(syncMs); // mutation: marked/unmarked-early-answers
    await joinMembers({
      member: {
        id,
        incarnation: toHex64(this.#incarnation),
        instance: directory.instance,
        ...ports,
        fabric,
        memoryBytes,
        ...(zone === undefined ? {} : { zone }),
        ...(this.#found.length === 0 ? {} : { recovered: toldOf(this.#found, early?.found === true) }),
      },
      state: () => driver.state,
      propose: (command, ms) => proposer.propose(command, ms),
      log: this.#log,
    });
    early?.joined(isAll, syncMs);
    this.#joined = true;
    this.#log.info(`joined as ${id}`, { event: 'joined', server: id });
  }
}
