/**
 * The other servers: who they must be, the ways to them, and what it means when they refuse this one.
 *
 * Before there is a cluster the servers are those of --peers, the same list for each. From then on they are those of
 * the metadata, and links come and go with it; until this server's log is read they are those that it knew last
 * (data-directory.ts).
 *
 * Three things must agree before two servers exchange a Raft message: the list of servers, the cluster (once it has an
 * id), and the instance, which is the identity of a data directory. A server that lost its directory has forgotten its
 * votes and what it acknowledged; were it let in under its old id, the group could forget a committed change. So an id
 * that was seen with one directory is not talked to with another.
 */
import { parseServerAddress } from '../../core/address.js';
import { FarkvError } from '../../core/errors.js';
import { memberId } from '../../core/metadata/check-state.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { maybe, record, uint } from '../../core/protocol/check.js';
import type { Hello } from '../../core/protocol/index.js';
import type { RaftMessage } from '../../core/raft/index.js';
import { sourceOf } from '../control/addresses.js';
import type { Tokens } from '../control/auth.js';
import { Standing } from '../control/standing.js';
import type { KnownServer } from '../data-directory.js';
import type { Accepted } from '../../net/hello.js';
import type { TrustSource } from '../../net/tls.js';
import { describeError, type Log } from '../log.js';
import { PeerLink, type PeerFigures } from './peer-link.js';

export interface PeersOptions {
  readonly id: string;
  readonly instance: string;
  /** What is known of the servers, this one among them, before the metadata says it; sorted by id. */
  readonly known: readonly KnownServer[];
  /** Where the operator says that servers are: by id, and of no id in particular (--join). */
  readonly told: { readonly of: ReadonlyMap<string, readonly string[]>; readonly any: readonly string[] };
  /** The tokens of servers, which are shown beside a certificate too; undefined: this server has none. */
  readonly tokens: Tokens | undefined;
  readonly trust: TrustSource | undefined;
  readonly timeoutMs: number;
  readonly state: () => MetadataState;
  /** The cluster of the data directory, '' when it has none yet. */
  readonly clusterId: () => string;
  /** So many servers refuse this one that it can never be part of a majority with the rest. */
  readonly outcast: (error: FarkvError) => void;
  /** A way to another server, or from it, has come up. */
  readonly up: () => void;
  /** A server that was connected has ended; a hint (peer-link.ts). */
  readonly gone: (raftId: number) => void;
  readonly log: Log;
  readonly wallMs?: () => number;
}

/** Whom a server takes for the leader, and of which term. */
export interface Followed {
  readonly leader?: string;
  readonly term: number;
}
const checkFollowed = record<Followed>({ leader: maybe(memberId), term: uint() });

interface Kept {
  readonly link: PeerLink;
  /** What it was made for. */
  readonly of: string;
}

export class Peers {
  readonly #options: PeersOptions;
  /** By Raft number. */
  readonly #links = new Map<number, Kept>();
  readonly #instances = new Map<string, string>();
  /** By id, of links that were dropped: a server at another address gets another link, and its count goes on. */
  readonly #lost = new Map<string, number>();
  /** Servers that refused this one when it last spoke to them. */
  readonly #refusals = new Set<string>();
  readonly #standing: Standing;
  #known: readonly KnownServer[];
  /** Where this server answers the others. */
  #own: readonly string[] = [];
  #sources: ReadonlySet<string> = new Set();
  #started = false;

  constructor(options: PeersOptions) {
    this.#options = options;
    this.#known = options.known;
    this.#standing = new Standing(options.wallMs);
    this.refresh();
  }

  /**
   * The servers of the cluster as this one knows them, sorted by id. Those that are only announced are not among them.
   */
  get servers(): readonly KnownServer[] {
    const { clusterId, servers } = this.#options.state();
    if (clusterId === '') return this.#known;
    return servers.flatMap(({ id, raftId, instance, peer = [] }) => {
      if (raftId === 0) return [];
      // A server that moved to another address says so when it joins; until then it may be where it was expected first.
      const before = this.#known.find((k) => k.id === id && k.raftId === raftId)?.addresses ?? [];
      return [
        { id, raftId, ...(instance === undefined ? {} : { instance }), addresses: [...new Set([...peer, ...before])] },
      ];
    });
  }
  /** Whether a server of the cluster is to be found at this address (control/addresses.ts). Names are not looked up. */
  at(source: string): boolean {
    return this.#sources.has(source);
  }

  get ids(): readonly string[] {
    return this.servers.map((s) => s.id);
  }
  get voters(): readonly string[] {
    const { clusterId, voters } = this.#options.state();
    return clusterId === '' ? this.#known.map((k) => k.id) : voters;
  }

  /**
   * The list of first servers, as long as this server or that one has not come to the cluster: both must have been
   * started with the same.
   */
  #firstServers(id: string): readonly string[] | undefined {
    const { clusterId, servers, firstServers } = this.#options.state();
    if (clusterId === '') return this.#known.map((k) => k.id);
    return servers.some((s) => s.id === id && s.instance === undefined) ? firstServers : undefined;
  }

  /** To be called when the metadata changed, or with what a server that joins was told. */
  refresh(known?: readonly KnownServer[]): void {
    if (known !== undefined) this.#known = known;
    const { id } = this.#options;
    const servers = this.servers.map((s) => ({ ...s, addresses: this.#waysTo(s) }));
    this.#sources = new Set(servers.flatMap((s) => s.addresses.map((a) => sourceOf(parseServerAddress(a).host))));
    const wanted = new Map(servers.filter((s) => s.id !== id && s.addresses.length > 0).map((s) => [s.raftId, s]));
    for (const [raftId, kept] of this.#links) {
      if (kept.of === wayTo(wanted.get(raftId))) continue;
      kept.link.close();
      this.#lost.set(kept.link.id, kept.link.figures.lostMessages);
      this.#links.delete(raftId);
    }
    for (const server of wanted.values()) {
      if (this.#links.has(server.raftId)) continue;
      // Under this id there may have been another one.
      this.#instances.delete(server.id);
      this.#refusals.delete(server.id);
      const link = this.#link(server);
      this.#links.set(server.raftId, { link, of: wayTo(server) });
      if (this.#started) link.start();
    }
  }

  /** In the order in which they are tried. Who is there says who it is: so an address that may be another's does no harm. */
  #waysTo({ id, addresses }: KnownServer): string[] {
    const { of, any } = this.#options.told;
    return [...new Set([...(of.get(id) ?? []), ...addresses, ...any])];
  }

  #link({ id, raftId, addresses }: KnownServer): PeerLink {
    const options = this.#options;
    return new PeerLink({
      id,
      addresses,
      trust: options.trust,
      timeoutMs: options.timeoutMs,
      log: options.log,
      tokens: options.tokens,
      standing: this.#standing,
      lostBefore: this.#lost.get(id) ?? 0,
      hello: (token) => {
        const voters = this.#firstServers(id);
        return {
          role: 'peer',
          from: options.id,
          instance: options.instance,
          clusterId: options.clusterId(),
          ...(voters === undefined ? {} : { voters }),
          ...(token === undefined ? {} : { token }),
        };
      },
      checkWelcome: (welcome, address) => this.#checkWelcome(id, welcome, address),
      refused: (error) => this.#refused(id, error),
      gone: () => options.gone(raftId),
      up: () => {
        this.#refusals.delete(id);
        options.up();
        void this.#tell(id);
      },
    });
  }

  /** `own`: the addresses at which this server answers the others. */
  start(own: readonly string[]): void {
    this.#started = true;
    this.#own = own;
    for (const { link } of this.#links.values()) link.start();
  }

  /**
   * Only with the log of the leader can this server say to the metadata where it is now, and the leader dials those
   * whom it sends the log. So whoever can be reached is told first.
   */
  async #tell(id: string): Promise<void> {
    try {
      await this.call(id, 'is-at', { peer: this.#own }, this.#options.timeoutMs);
    } catch (error) {
      this.#options.log.debug(`${id} was not told where this server is: ${describeError(error)}`);
    }
  }

  /** Another server says where it answers. Whoever is found there must show that it is the one (checkWelcome). */
  isAt(id: string, addresses: readonly string[]): void {
    this.#links.get(this.raftIdOf(id) ?? 0)?.link.isAt(addresses);
  }

  send(message: RaftMessage, leavesNow: boolean): void {
    this.#links.get(message.to)?.link.send(message, leavesNow);
  }

  /** ERR_DISCONNECTED when there is no connection; otherwise as ControlClient.call. */
  async call(id: string, method: string, args: unknown, timeoutMs: number): Promise<unknown> {
    const link = this.#links.get(this.raftIdOf(id) ?? 0)?.link;
    if (link === undefined) throw new FarkvError('ERR_DISCONNECTED', `${id} is not another server of this cluster`);
    return await link.call(method, args, timeoutMs);
  }

  /** Whether most voters, by what they say themselves, follow this server as the leader of this term. */
  async areLedBy(raftId: number, term: number): Promise<boolean> {
    const { id: own, timeoutMs } = this.#options;
    const { voters } = this;
    const leader = this.idOf(raftId);
    if (leader === undefined || !voters.includes(leader)) return false;
    const said = voters
      .filter((id) => id !== own && id !== leader)
      .map(async (id) => {
        const answer = checkFollowed(await this.call(id, 'follows', {}, timeoutMs), id);
        return answer.leader === leader && answer.term === term;
      });
    const agree = (await Promise.allSettled(said)).filter((one) => one.status === 'fulfilled' && one.value);
    return agree.length + 1 > voters.length / 2;
  }

  /** The member id with a Raft number; undefined for 0 and for strangers. */
  idOf(raftId: number): string | undefined {
    return this.servers.find((s) => s.raftId === raftId)?.id;
  }

  raftIdOf(id: string): number | undefined {
    return this.servers.find((s) => s.id === id)?.raftId;
  }

  /** Others that can be reached, and those that cannot. */
  get reach(): { readonly connected: readonly string[]; readonly missing: readonly string[] } {
    const links = [...this.#links.values()].map((kept) => kept.link);
    return {
      connected: links.filter((l) => l.connected).map((l) => l.id),
      missing: links.filter((l) => !l.connected).map((l) => l.id),
    };
  }

  get figures(): readonly PeerFigures[] {
    return [...this.#links.values()].map(({ link }) => link.figures);
  }

  /** A peer says hello. Throws the reason to turn it away. */
  arrives(hello: Hello): void {
    const { from, voters } = hello;
    const { id, log, state } = this.#options;
    // A server that is about to join: what it asks for is looked at then.
    if (hello.join === true && from !== undefined && from !== id) {
      this.#sameCluster(from, hello.clusterId ?? '');
      return;
    }
    if (from === undefined || !this.ids.includes(from)) {
      const how =
        state().clusterId === ''
          ? ''
          : '. A new one is started with --join and an empty data directory, also one that was removed';
      const was = state().clusterId !== '' && hello.clusterId === state().clusterId;
      throw new FarkvError(
        was ? 'ERR_REMOVED' : 'ERR_CONFIG',
        `${from ?? 'a server without a name'} is not one of the servers of this cluster (${this.ids.join(', ')})${how}`,
      );
    }
    // It dialed an address that was another server's; its end of the connection finds that out.
    if (from === id && hello.instance === this.#options.instance) return;
    if (from === id) {
      log.error(`another server calls itself ${id} too`, { event: 'server-id-taken', server: id });
      throw new FarkvError(
        'ERR_CONFIG',
        `this server is ${id} itself: two servers have the same --id, or --peers gives ${id} the wrong address`,
      );
    }
    const own = this.#firstServers(from);
    if (own !== undefined && voters !== undefined && voters.join() !== own.join()) {
      throw new FarkvError(
        'ERR_CONFIG',
        `${id} was started with --peers ${own.join(', ')}, ${from} with ${voters.join(', ')}: the list must be the same for every server`,
      );
    }
    this.#sameCluster(from, hello.clusterId ?? '');
    this.#sameDirectory(from, hello.instance);
    this.#options.up();
  }

  close(): void {
    for (const { link } of this.#links.values()) link.close();
  }

  #checkWelcome(id: string, welcome: Accepted, address: string): void {
    if (welcome.serverId !== id) this.#isAnother(id, welcome, address);
    this.#sameCluster(id, welcome.clusterId);
    this.#sameDirectory(id, welcome.instance);
  }

  /** Servers of a cluster may have exchanged their addresses: then the one that was found is looked for there. */
  #isAnother(id: string, { serverId, clusterId }: Accepted, address: string): never {
    const own = this.#options.clusterId();
    if (own === '')
      throw new FarkvError('ERR_CONFIG', `the server at the address of ${id} is ${serverId}: check --peers`);
    if (own === clusterId) this.#links.get(this.raftIdOf(serverId) ?? 0)?.link.isAt([address]);
    throw new FarkvError('ERR_DISCONNECTED', `the server at ${address}, where ${id} was expected, is ${serverId}`);
  }

  #sameCluster(peer: string, clusterId: string): void {
    const own = this.#options.clusterId();
    if (own === '' || clusterId === '' || own === clusterId) return;
    throw new FarkvError(
      'ERR_DATA_DIR',
      `the data directory of ${this.#options.id} belongs to cluster ${own}, that of ${peer} to cluster ${clusterId}: look at --data-dir of both, and at --peers`,
    );
  }

  #sameDirectory(peer: string, instance: string | undefined): void {
    if (instance === undefined) throw new FarkvError('ERR_PROTOCOL', `${peer} does not name its data directory`);
    const state = this.#options.state();
    // What this server knew when it ended holds until it has read its log: nobody takes a name in between.
    const known =
      this.servers.find((s) => s.id === peer)?.instance ??
      state.members.get(peer)?.instance ??
      this.#instances.get(peer);
    if (known === undefined) this.#instances.set(peer, instance);
    else if (known !== instance) {
      throw new FarkvError(
        'ERR_DATA_DIR',
        `${peer} has been in this cluster with another data directory. Without it, it has forgotten what it voted for and acknowledged, and must not take part: give it that directory back, or, if it is lost: farkv member remove ${peer}, then start it with an empty directory and --join`,
      );
    }
  }

  #refused(id: string, error: FarkvError): void {
    this.#refusals.add(id);
    const voters = this.voters;
    const majority = Math.floor(voters.length / 2) + 1;
    if (voters.filter((voter) => !this.#refusals.has(voter)).length < majority) this.#options.outcast(error);
  }
}

/** What a link depends on. */
function wayTo(server: KnownServer | undefined): string {
  return server === undefined ? '' : `${server.id} ${[...server.addresses].sort().join()}`;
}
