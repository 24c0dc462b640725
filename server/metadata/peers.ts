/**
 * The other servers: who they must be, the ways to them, and what it means when they refuse this one.
 *
 * Three things must agree before two servers exchange a Raft message: the list of servers, the cluster (once it has an id), and the
 * instance, which is the identity of a data directory. A server that lost its directory has forgotten its votes and what it
 * acknowledged; were it let in under its old id, the group could forget a committed change. So an id that was seen with one
 * directory is not talked to with another.
 */
import { FarkvError } from '../../core/errors.js';
import { raftIdOf } from '../../core/metadata/placement.js';
import type { MetadataState } from '../../core/metadata/state.js';
import type { Hello } from '../../core/protocol/index.js';
import type { RaftMessage } from '../../core/raft/index.js';
import type { Peer } from '../config/settings.js';
import type { Accepted } from '../control/client-connection.js';
import type { Trust } from '../control/tls.js';
import type { Log } from '../log.js';
import { PeerLink } from './peer-link.js';

export interface PeersOptions {
  readonly id: string;
  readonly instance: string;
  /** All voters, this server among them, sorted by id. */
  readonly peers: readonly Peer[];
  readonly token: string | undefined;
  readonly trust: Trust | undefined;
  readonly timeoutMs: number;
  readonly state: () => MetadataState;
  /** The cluster of the data directory, '' when it has none yet. */
  readonly clusterId: () => string;
  /** So many servers refuse this one that it can never be part of a majority with the rest. */
  readonly outcast: (error: FarkvError) => void;
  /** A way to another server, or from it, has come up. */
  readonly up: () => void;
  readonly log: Log;
}

export class Peers {
  readonly #options: PeersOptions;
  readonly #links = new Map<number, PeerLink>();
  readonly #instances = new Map<string, string>();
  /** Servers that refused this one when it last spoke to them. */
  readonly #refusals = new Set<string>();
  readonly voters: readonly string[];

  constructor(options: PeersOptions) {
    this.#options = options;
    this.voters = options.peers.map((p) => p.id);
    for (const { id, addresses } of options.peers) {
      if (id === options.id) continue;
      const link = new PeerLink({
        id, addresses, trust: options.trust, timeoutMs: options.timeoutMs, log: options.log,
        hello: () => ({
          role: 'peer', from: options.id, instance: options.instance, voters: this.voters, clusterId: options.clusterId(),
          ...(options.token === undefined ? {} : { token: options.token }),
        }),
        checkWelcome: (welcome) => this.#checkWelcome(id, welcome),
        refused: (error) => this.#refused(id, error),
        up: () => {
          this.#refusals.delete(id);
          options.up();
        },
      });
      this.#links.set(raftIdOf(id), link);
    }
  }

  start(): void {
    for (const link of this.#links.values()) link.start();
  }

  send(message: RaftMessage): void {
    this.#links.get(message.to)?.send(message);
  }

  /** ERR_DISCONNECTED when there is no connection; otherwise as ControlClient.call. */
  async call(id: string, method: string, args: unknown, timeoutMs: number): Promise<unknown> {
    const link = this.#links.get(raftIdOf(id));
    if (link === undefined) throw new FarkvError('ERR_DISCONNECTED', `${id} is not another server of this cluster`);
    return await link.call(method, args, timeoutMs);
  }

  /** The member id with a Raft number; undefined for 0 and for strangers. */
  idOf(raftId: number): string | undefined {
    return this.voters.find((id) => raftIdOf(id) === raftId);
  }

  /** Others that can be reached, and those that cannot. */
  get reach(): { readonly connected: readonly string[]; readonly missing: readonly string[] } {
    const links = [...this.#links.values()];
    return { connected: links.filter((l) => l.connected).map((l) => l.id), missing: links.filter((l) => !l.connected).map((l) => l.id) };
  }

  /** A peer says hello. Throws the reason to turn it away. */
  arrives(hello: Hello): void {
    const { from, voters } = hello;
    const { id, log } = this.#options;
    if (from === undefined || !this.voters.includes(from)) {
      throw new FarkvError('ERR_CONFIG', `${from ?? 'a server without a name'} is not one of the servers of this cluster (${this.voters.join(', ')})`);
    }
    if (from === id) {
      log.error(`another server calls itself ${id} too`);
      throw new FarkvError('ERR_CONFIG', `this server is ${id} itself: two servers have the same --id, or --peers gives ${id} the wrong address`);
    }
    if (voters !== undefined && voters.join() !== this.voters.join()) {
      throw new FarkvError('ERR_CONFIG', `${id} was started with --peers ${this.voters.join(', ')}, ${from} with ${voters.join(', ')}: the list must be the same for every server`);
    }
    this.#sameCluster(from, hello.clusterId ?? '');
    this.#sameDirectory(from, hello.instance);
    this.#options.up();
  }

  close(): void {
    for (const link of this.#links.values()) link.close();
  }

  #checkWelcome(id: string, welcome: Accepted): void {
    if (welcome.serverId !== id) throw new FarkvError('ERR_CONFIG', `the server at the address of ${id} is ${welcome.serverId}: check --peers`);
    this.#sameCluster(id, welcome.clusterId);
    this.#sameDirectory(id, welcome.instance);
  }

  #sameCluster(peer: string, clusterId: string): void {
    const own = this.#options.clusterId();
    if (own === '' || clusterId === '' || own === clusterId) return;
    throw new FarkvError('ERR_DATA_DIR', `the data directory of ${this.#options.id} belongs to cluster ${own}, that of ${peer} to cluster ${clusterId}`);
  }

  #sameDirectory(peer: string, instance: string | undefined): void {
    if (instance === undefined) throw new FarkvError('ERR_PROTOCOL', `${peer} does not name its data directory`);
    const known = this.#options.state().members.get(peer)?.instance ?? this.#instances.get(peer);
    if (known === undefined) this.#instances.set(peer, instance);
    else if (known !== instance) {
      throw new FarkvError(
        'ERR_DATA_DIR',
        `${peer} has been in this cluster with another data directory. Without it, it has forgotten what it voted for and acknowledged, and must not take part: give it that directory back`,
      );
    }
  }

  #refused(id: string, error: FarkvError): void {
    this.#refusals.add(id);
    const majority = Math.floor(this.voters.length / 2) + 1;
    if (this.voters.length - this.#refusals.size < majority) this.#options.outcast(error);
  }
}
