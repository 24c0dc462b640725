/**
 * A server's directory: who it is, of which cluster, and whether leases of its last run may still be held. The metadata
 * log in it is server/raft-storage's.
 *
 *   lock            held (flock) as long as the process lives: a second process with the same directory does not start,
 *                   and whoever gets the lock knows that the last holder is dead
 *   identity.json   id, instance (64 random bits of this directory), the first voters, the cluster once it is known,
 *                   and who its servers were when that was last known: a server that starts again must find them before
 *                   it has its log
 *   serving.json    there while shards may be served: how long leases were granted for
 *   raft/           the log
 *   values/         of level durable: values (values-log.ts)
 *   values.damaged/ what a start found in values/ with a damaged log (values-aside.ts)
 *   *.sock          the shm transport's sockets, when the path is short enough (runtime-directory.ts)
 *
 * The directory and its files are for their owner only (0700, 0600): the log holds the cluster's secrets.
 */
import { closeSync, constants, fsyncSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkAddresses, memberId, MEMBERS_MAX, raftNumber } from '../core/metadata/check-state.js';
import { raftIdOf } from '../core/metadata/placement.js';
import { boolean, hex128, hex64, list, literal, maybe, record, uint, type Check } from '../core/protocol/check.js';
import { syncDirectory } from '../net/sync-directory.js';
import { openRegular, readRegular } from '../net/regular-file.js';
import type { Peer } from './config/settings.js';
import { cannotUse, lockNamed, lockTemporary, refuse, removeLeftovers, type TryLock } from './directory-lock.js';
import { describeError } from './log.js';
import { ownFile } from './own-file.js';
import { needingRoom } from './raft-storage/disk.js';

/** A server as others find it. */
export interface KnownServer {
  readonly id: string;
  /** Its number in the Raft group. */
  readonly raftId: number;
  /** Of its port between servers, in the order in which they are tried. */
  readonly addresses: readonly string[];
  readonly instance?: string;
}
export const checkKnownServer = record<KnownServer>({
  id: memberId,
  raftId: raftNumber,
  addresses: checkAddresses,
  instance: maybe(hex64),
});

interface Identity {
  readonly format: typeof IDENTITY_FORMAT;
  readonly id: string;
  readonly instance: string;
  readonly voters: readonly string[];
  readonly clusterId?: string;
  /** raft/ has been made: it must be there from then on. */
  readonly log?: boolean;
  /** It came to a cluster that there was; undefined: it is one of the first servers. */
  readonly joined?: boolean;
  readonly servers?: readonly KnownServer[];
}
const IDENTITY_FORMAT = 1;
const checkIdentity = record<Identity>({
  format: literal(IDENTITY_FORMAT),
  id: memberId,
  instance: hex64,
  voters: list(memberId, MEMBERS_MAX),
  clusterId: maybe(hex128),
  log: maybe(boolean),
  joined: maybe(boolean),
  servers: maybe(list(checkKnownServer, MEMBERS_MAX)),
});

/** How long the leases of a run may be held after its end. */
export interface Serving {
  readonly leaseMs: number;
  readonly driftPpm: number;
}
const checkServing = record<Serving>({ leaseMs: uint(3_600_000), driftPpm: uint(1_000_000) });

export interface OpenOptions {
  /** Undefined: a temporary one. */
  readonly path: string | undefined;
  readonly id: string;
  readonly peers: readonly Peer[];
  /** A new directory is that of a server that comes to a cluster. */
  readonly join?: boolean;
  /** 64 random bits, hex; used when the directory is new. */
  readonly newInstance: string;
  readonly tryLock: TryLock;
}

/** Of a file of JSON: 64 servers, each with all of its addresses, have less. */
const FILE_BYTES_MAX = 4 << 20;

export class DataDirectory {
  readonly path: string;
  readonly ephemeral: boolean;
  /** Nothing was in it: this server has never been part of a cluster. */
  readonly fresh: boolean;
  /** What the last run left, undefined when it ended in order. */
  readonly lastRun: Serving | undefined;
  #identity: Identity;
  readonly #lock: number;

  private constructor(path: string, ephemeral: boolean, lock: number, options: OpenOptions) {
    this.path = path;
    this.ephemeral = ephemeral;
    this.#lock = lock;
    const voters = options.peers.map((p) => p.id);
    const found = this.#read('identity.json', checkIdentity, options.id);
    this.fresh = found === undefined;
    if (found === undefined) {
      // identity.json.new: a first start that was cut short.
      const strangers = readdirSync(path).filter((name) => !['lock', 'identity.json.new', 'lost+found'].includes(name));
      if (strangers.length > 0)
        refuse(
          `${path} is not empty and not a farkv data directory (${strangers.slice(0, 3).join(', ')}): name an empty one, or a new one`,
        );
    } else {
      if (found.id !== options.id)
        refuse(
          `${path} belongs to server ${found.id}, not ${options.id}: give this server a --data-dir of its own, or start it with --id ${found.id}`,
        );
      // Later the metadata says who the servers are.
      if (found.clusterId === undefined && found.joined !== true && found.voters.join() !== voters.join()) {
        refuse(
          `${path} belongs to a cluster of ${found.voters.join(', ')}, but --peers names ${voters.join(', ')}: the list must stay the same until the cluster is made`,
        );
      }
    }
    this.#identity = found ?? {
      format: IDENTITY_FORMAT,
      id: options.id,
      instance: options.newInstance,
      voters,
      ...(options.join === true ? { joined: true } : {}),
    };
    if (found === undefined) this.#write('identity.json', this.#identity);
    this.lastRun = this.#read('serving.json', checkServing, options.id);
  }

  /** Throws ERR_DATA_DIR: in use, of another server or cluster, damaged, or not writable. */
  static open(options: OpenOptions): DataDirectory {
    const { path: name, tryLock } = options;
    const { path, lock } = name === undefined ? lockTemporary(tryLock) : lockNamed(name, tryLock);
    try {
      if (name === undefined) removeLeftovers(path, tryLock);
      return new DataDirectory(path, name === undefined, lock, options);
    } catch (cause) {
      closeSync(lock);
      cannotUse(path, cause);
    }
  }

  get instance(): string {
    return this.#identity.instance;
  }
  /** '' until it is known. */
  get clusterId(): string {
    return this.#identity.clusterId ?? '';
  }
  /** This server came to a cluster that there was. */
  get joined(): boolean {
    return this.#identity.joined === true;
  }
  /** A server that came later has a number of its directory: under its id there may have been another one before. */
  get raftId(): number {
    return raftIdOf(this.joined ? `${this.#identity.id}/${this.instance}` : this.#identity.id);
  }
  /** The servers of the cluster when that was last known. */
  get servers(): readonly KnownServer[] | undefined {
    return this.#identity.servers;
  }
  get raftPath(): string {
    return join(this.path, 'raft');
  }

  get hasLog(): boolean {
    return this.#identity.log === true;
  }

  logMade(): void {
    if (this.hasLog) return;
    this.#identity = { ...this.#identity, log: true };
    this.#write('identity.json', this.#identity);
  }

  /** Throws NoRoom: then the next call tries again. */
  setServers(servers: readonly KnownServer[]): void {
    if (JSON.stringify(servers) === JSON.stringify(this.servers)) return;
    const identity = { ...this.#identity, servers };
    this.#write('identity.json', identity);
    this.#identity = identity;
  }

  setClusterId(clusterId: string): void {
    if (this.clusterId === clusterId) return;
    if (this.clusterId !== '')
      refuse(
        `${this.path} belongs to cluster ${this.clusterId}, the metadata to ${clusterId}: give this server the directory that it has in this cluster; a server that is new in it comes with --join and an empty one`,
      );
    this.#identity = { ...this.#identity, clusterId };
    this.#write('identity.json', this.#identity);
  }

  /** On disk before the first lease is granted. */
  markServing(serving: Serving): void {
    // Where the last run's leases were longer, the longer ones count until this run has waited for them, which it has
    // by now.
    try {
      this.#write('serving.json', serving);
    } catch (error) {
      refuse(`${join(this.path, 'serving.json')} cannot be written: ${describeError(error)}`, error);
    }
  }

  /** Every lease has run out: the next start need not wait. */
  clearServing(): void {
    rmSync(join(this.path, 'serving.json'), { force: true });
    syncDirectory(this.path);
  }

  /** Gives the lock back; removes a temporary directory. */
  close(): void {
    if (this.ephemeral) rmSync(this.path, { recursive: true, force: true });
    closeSync(this.#lock);
  }

  #read<T>(name: string, check: Check<T>, id: string): T | undefined {
    let text: string;
    try {
      text = ownFile(join(this.path, name), (path) => readRegular(path, FILE_BYTES_MAX)).toString();
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw cause;
    }
    let format = 0;
    try {
      const value = JSON.parse(text) as unknown;
      format = formatOf(value);
      return check(value, name);
    } catch (cause) {
      if (format > IDENTITY_FORMAT)
        refuse(
          `${join(this.path, name)} has format ${format}, of a later version of farkv: start that one; this one reads up to ${IDENTITY_FORMAT}`,
          cause,
        );
      refuse(
        `${join(this.path, name)} is damaged: put back a copy of the directory made since this server last ran. Else, where there are other servers, farkv member remove ${id}, then start it with an empty directory, with --join instead of --peers, and with --join-token-file where there are tokens or certificates; where there are none, restore a farkv backup into a new cluster`,
        cause,
      );
    }
  }

  /** Replaced as a whole: after a crash there is the old file or the new one. Throws NoRoom, and leaves the old one. */
  #write(name: string, value: unknown): void {
    const temporary = join(this.path, `${name}.new`);
    const how = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
    const fd = needingRoom(() => ownFile(temporary, (path) => openRegular(path, how, 0o600)));
    try {
      needingRoom(() => writeFileSync(fd, `${JSON.stringify(value, undefined, 2)}\n`));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, join(this.path, name));
    syncDirectory(this.path);
  }
}

/** 0: it names none. */
function formatOf(value: unknown): number {
  const format = typeof value === 'object' && value !== null && 'format' in value ? value.format : undefined;
  return Number.isInteger(format) ? (format as number) : 0;
}
