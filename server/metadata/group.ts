/**
 * This server's part of the metadata group: the Raft member with its log, the ways to the other servers, the changes
 * that this server asks for, and the leader's duties. It only puts them together.
 */
import { Tokens } from '../control/auth.js';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { FarkvError } from '../../core/errors.js';
import { raftIdOf } from '../../core/metadata/placement.js';
import type { Counted } from '../../core/exposition.js';
import { durable, REPLICATED } from '../../core/metadata/copy-sets.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { LostEntriesError } from '../../core/raft/index.js';
import type { Addon } from '../../native/addon.js';
import type { ServerSettings } from '../config/settings.js';
import { within } from '../../net/deadline.js';
import type { TrustSource } from '../../net/tls.js';
import type { DataDirectory, KnownServer } from '../data-directory.js';
import { heirOf } from './group-members.js';
import type { Log } from '../log.js';
import { NoRoom } from '../raft-storage/disk.js';
import { endProcess, FileDisk, RaftStorage } from '../raft-storage/index.js';
import { howToRebuild } from '../rebuild.js';
import { MetadataDriver } from './driver.js';
import { LeaderChanges } from './leader-changes.js';
import { LeaderDuties, type ClusterMade } from './leader-duties.js';
import { checkLeaseGrant, LeaseGrantor, type LeaseGrant, type LeaseRequest } from './lease-grantor.js';
import { LocalProposer } from './local-proposer.js';
import type { PeerFigures } from './peer-link.js';
import { Peers, type PeersOptions } from './peers.js';
import { Proposer } from './proposer.js';
import { submit } from './submit.js';

export interface GroupOptions {
  readonly settings: ServerSettings;
  readonly directory: DataDirectory;
  readonly native: Pick<Addon, 'tryLock' | 'dropCleanPages' | 'crc32c' | 'bootTimeNs'>;
  readonly trust: TrustSource | undefined;
  /** 64 random bits of this start, hex. */
  readonly incarnation: string;
  readonly log: Log;
  /** The server must not go on. */
  readonly fatal: (error: FarkvError) => void;
  /** So many servers refuse this one that there will be no majority with it. */
  readonly outcast: (error: FarkvError) => void;
}

/** Counts since this server's start. */
export interface GroupFigures {
  /** Terms of whose leader it has learned. */
  readonly leaderChanges: number;
  /** Changes of the metadata that it asked for, and that nobody took in time. */
  readonly failedProposals: number;
  /** Shards whose owner was replaced unplanned. */
  readonly failedOver: number;
  /** Of its Raft log: how long each change took to be written and synced, nanoseconds. */
  readonly syncNs: Counted;
  /** The disk has no room for its Raft log: it takes no changes of the metadata until it has. */
  readonly diskFull: boolean;
  /** Milliseconds for which the event loop of Raft's thread had work; it renews the leases, so it must have time to spare. */
  readonly activeMs: number;
  readonly peers: readonly PeerFigures[];
}

const CALL_MS = 5000;
const HAND_OVER_MS = 1000;

export class MetadataGroup {
  readonly driver: MetadataDriver;
  readonly peers: Peers;
  readonly proposer: Proposer;
  readonly grantor: LeaseGrantor;
  readonly #local: LocalProposer;
  readonly #id: string;
  readonly duties: LeaderDuties;
  readonly #storage: RaftStorage;
  readonly #leaderChanges = new LeaderChanges();

  /** Throws ERR_DATA_DIR when the log is damaged, missing, or another server's. */
  constructor(options: GroupOptions) {
    const { settings, log } = options;
    const { storage, restored } = openLog(options);
    this.#storage = storage;
    const { directory } = options;
    const driver: MetadataDriver = new MetadataDriver({
      storage,
      restored,
      log,
      raftId: directory.raftId,
      incarnation: randomBytes(6).readUIntBE(0, 6) + 1,
      random: Math.random,
      tickMs: settings.tickMs,
      electionMs: settings.electionMs,
      send: (message, leavesNow) => peers.send(message, leavesNow),
      fatal: (error) => options.fatal(explained(error, options)),
      isLedBy: (raftId, term) => peers.areLedBy(raftId, term),
    });
    const peers: Peers = new Peers({
      id: settings.id,
      instance: directory.instance,
      trust: options.trust,
      log,
      known: directory.servers ?? firstServers(directory, settings),
      told: told(settings),
      tokens: settings.access.peer === undefined ? undefined : new Tokens(settings.access.peer),
      timeoutMs: CALL_MS,
      state: () => driver.state,
      clusterId: () => directory.clusterId,
      outcast: options.outcast,
      gone: (raftId) => driver.leaderGone(raftId),
      up: () => {
        // One of them, so that they do not split the votes; the others would campaign after an election time-out.
        const majority = Math.floor(peers.voters.length / 2) + 1;
        if (settings.id === peers.voters[0] && peers.reach.connected.length + 1 >= majority) driver.campaign();
      },
    });
    const proposer = new Proposer({
      proposer: options.incarnation,
      formatVersion: () => driver.state.formatVersion,
      retryMs: 2 * settings.electionMs,
      submit: (bytes, command) => submit({ id: settings.id, driver, peers, timeoutMs: CALL_MS }, bytes, command),
    });
    const nowMs = (): number => Number(options.native.bootTimeNs()) / 1e6;
    const grantor: LeaseGrantor = new LeaseGrantor({ driver, nowMs, changed: () => duties.look(), log });
    const local = new LocalProposer(driver, randomBytes(8).toString('hex'));
    const duties = new LeaderDuties({
      made: madeOf(settings),
      hasJoined: ({ members }) => members.get(settings.id)?.incarnation === options.incarnation,
      assignAfterMs: settings.assignAfterMs,
      replaceVoterMs: settings.replaceVoterMs,
      log,
      driver,
      nowMs,
      grantor: () => grantor.current,
      listen: () => grantor.listen(),
      proposeInTerm: (command, term) => local.propose(command, term),
      propose: (command, ms) => proposer.propose(command, ms),
      randomHex: (n) => randomBytes(n).toString('hex'),
    });
    driver.onApplied((applied) => proposer.applied(applied));
    driver.onApplied((applied) => local.applied(applied));
    driver.onState((state) => {
      peers.refresh();
      if (state.clusterId !== '' && peers.ids.length > 0) remember(directory, peers.servers, log);
      void grantor.look();
      duties.look();
    });
    driver.onConfig(() => duties.look());
    let said = -1;
    driver.onLeader((leader) => {
      this.#leaderChanges.seen(leader, driver.term);
      if (leader !== said)
        log.info(
          leader === 0
            ? 'the metadata group has no leader'
            : `${peers.idOf(leader) ?? 'a stranger'} leads the metadata group`,
          { event: 'leader', server: leader === 0 ? '' : (peers.idOf(leader) ?? 'a stranger'), term: driver.term },
        );
      said = leader;
      local.look();
      if (leader !== 0) proposer.leaderChanged();
      void grantor.look();
      duties.look();
    });
    this.grantor = grantor;
    this.#local = local;
    this.#id = settings.id;
    this.driver = driver;
    this.peers = peers;
    this.proposer = proposer;
    this.duties = duties;
  }

  /** `own`: the addresses at which this server answers the others. */
  start(own: readonly string[]): void {
    this.driver.start();
    this.peers.start(own);
  }

  /** While there is no cluster yet. */
  reportWait(log: Log): void {
    const { connected, missing } = this.peers.reach;
    log.info(
      `waiting for the metadata group: connected to ${connected.join(', ') || 'nobody'}, not to ${missing.join(', ') || 'nobody'}`,
      { event: 'cluster-awaited', connected: connected.join(), missing: missing.join() },
    );
  }

  get figures(): GroupFigures {
    const { count, sum, below } = this.driver.syncs;
    return {
      leaderChanges: this.#leaderChanges.count,
      failedProposals: this.proposer.failed,
      failedOver: this.duties.failedOver,
      syncNs: { count, sum, below: [...below] },
      diskFull: this.driver.status().storageFull,
      activeMs: Math.round(performance.eventLoopUtilization().active),
      peers: this.peers.figures,
    };
  }

  /** Resolves when there is a cluster; `waiting` is called every so often until then. */
  async whenClustered(waitingMs: number, waiting: () => void): Promise<MetadataState> {
    const timer = setInterval(waiting, waitingMs);
    timer.unref();
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.driver.state.clusterId !== '') resolve();
      };
      this.driver.onState(look);
      look();
    });
    clearInterval(timer);
    return this.driver.state;
  }

  /** Asks the leader for this server's own lease. Throws ERR_NO_LEADER, and as LeaseGrantor.ask. */
  async askLease(request: LeaseRequest, timeoutMs: number): Promise<LeaseGrant> {
    if (this.driver.leads) {
      const grant = await within(this.grantor.ask(this.#id, request), timeoutMs);
      if (grant !== undefined) return grant;
      throw new FarkvError('ERR_TIMEOUT', `the metadata group did not answer within ${timeoutMs} ms`);
    }
    const leader = this.peers.idOf(this.driver.leader);
    if (leader === undefined) throw new FarkvError('ERR_NO_LEADER', 'the metadata group has no leader');
    return checkLeaseGrant(await this.peers.call(leader, 'lease', request, timeoutMs), 'lease');
  }

  /** Before this server stops on purpose: the others need not wait until they miss it. Ends in bounded time. */
  async handOver(): Promise<void> {
    const { driver, peers } = this;
    const heir = driver.leads
      ? heirOf(
          driver.status(),
          peers.reach.connected.map((id) => peers.raftIdOf(id)),
        )
      : undefined;
    if (heir === undefined) return;
    await new Promise<void>((resolve) => {
      const deadline = setTimeout(resolve, HAND_OVER_MS);
      driver.onLeader((leader) => {
        if (leader === 0 || driver.leads) return;
        clearTimeout(deadline);
        resolve();
      });
      driver.handOver(heir);
    });
  }

  stop(): void {
    this.duties.close();
    this.proposer.close();
    this.#local.close();
    this.driver.stop();
    this.peers.close();
    this.#storage.close();
  }
}

/** Of a cluster that this server makes. */
function madeOf({ shards, tenants, peers, voters, level, ownerLeaseMs, driftPpm }: ServerSettings): ClusterMade {
  const domains = tenants.map((d) => ({ name: d.name, shards: d.shards }));
  return {
    shards: domains.reduce((sum, d) => sum + d.shards, shards),
    ...(domains.length === 0 ? {} : { tenants: domains }),
    voters: peers.map((p) => p.id),
    votersMax: voters,
    ownerLease: { leaseMs: ownerLeaseMs, driftPpm },
    ...(level === 'cache' ? {} : { policy: level === 'durable' ? durable(peers.length) : REPLICATED }),
  };
}

/** Those of a cluster that is to be made. */
function firstServers({ raftId }: DataDirectory, { id: own, peers }: ServerSettings): KnownServer[] {
  return peers.map(({ id, addresses }) => ({ id, raftId: id === own ? raftId : raftIdOf(id), addresses }));
}

function told({ peers, join }: ServerSettings): PeersOptions['told'] {
  return { of: new Map(peers.map(({ id, addresses }) => [id, addresses])), any: join };
}

/** A member that has forgotten what it acknowledged, and its votes, must not go on under its name. */
function explained(error: FarkvError, options: GroupOptions): FarkvError {
  if (!(error.cause instanceof LostEntriesError)) return error;
  return new FarkvError(
    'ERR_DATA_DIR',
    `${options.directory.raftPath} is older than what this server has acknowledged: it was put back from a copy, or the disk has lost what was written. ${howToRebuild(options.settings, options.directory)}`,
    { cause: error },
  );
}

function openLog(options: GroupOptions): ReturnType<typeof RaftStorage.open> {
  const { directory, native, settings, log } = options;
  // The log is made once in a directory's life. A directory that has lost it has lost its votes (metadata/peers.ts).
  if (directory.hasLog && !existsSync(join(directory.raftPath, 'member'))) {
    throw new FarkvError(
      'ERR_DATA_DIR',
      `${directory.raftPath} is missing or incomplete. ${howToRebuild(options.settings, options.directory)}`,
    );
  }
  const opened = RaftStorage.open({
    disk: new FileDisk(directory.raftPath, native),
    // The log belongs to its data directory: one that was put into another is refused.
    identity: { clusterId: directory.instance, memberId: directory.raftId },
    bootstrap: directory.joined ? undefined : settings.peers.map((p) => raftIdOf(p.id)),
    checksum: native.crc32c,
    rebuild: howToRebuild(settings, directory),
    notice: (text) => log.warn(text, { event: 'raft-log-repaired', directory: directory.raftPath }),
    fatal: endProcess,
  });
  directory.logMade();
  return opened;
}

/** For the next start. While the disk is full that finds them by the list of before; each change tries again. */
function remember(directory: DataDirectory, servers: readonly KnownServer[], log: Log): void {
  try {
    directory.setServers(servers);
  } catch (error) {
    if (!(error instanceof NoRoom)) throw error;
    log.warn(`${directory.path} is full: who the servers are is written there when it has space again`, {
      event: 'servers-not-kept',
      directory: directory.path,
    });
  }
}
