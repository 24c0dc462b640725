/**
 * From the map that servers push to what the native side wants to know: owners, each one data-plane thread of one
 * incarnation of a server, and for each shard its owner and regions.
 *
 * Owners are numbered here; a number is never used for another server, or for the same one after a restart. Invariant:
 * #numbers has an entry for each owner of the last map and no other.
 */
import { fromHex64 } from '../core/hex64.js';
import type { ClientMap } from '../core/protocol/messages.js';
import { ofDevice, type Member, type Region, type Shard } from '../core/metadata/state.js';
import type { ShardRange } from '../core/metadata/tenants.js';
import type { NativeRegion } from '../native/data-plane.js';
import type { OwnerAddress, ShardRoute } from '../native/native-client.js';
import { FarkvError } from './errors.js';
import { plan, TransportState, type LocalCapabilities, type Wish } from './transport.js';

export interface Routing {
  readonly owners: readonly OwnerAddress[];
  readonly routes: readonly ShardRoute[];
}

function nativeRegion(region: Region): NativeRegion {
  return {
    provider: region.provider,
    ...ofDevice(region),
    kind: region.kind,
    segment: region.segment,
    tag: region.tag,
    bytes: region.bytes,
    remoteAddress: BigInt(region.remoteAddress),
    rkey: BigInt(region.rkey),
  };
}

/** The client's shards: those of its tenant. The map has no others. */
export function shardRange({ shards }: ClientMap): ShardRange {
  return { first: shards[0]?.shard ?? 0, count: shards.length };
}

/** Converting the regions of a shard again is left out where the shard did not change. */
interface Converted {
  readonly shard: Shard;
  readonly owner: number;
  readonly route: ShardRoute;
}

/** What never changes of a cluster, as a client of one tenant sees it. */
export interface Identity {
  readonly clusterId: string;
  /** 128 bits, hexadecimal. */
  readonly hashSeed: string;
  readonly shards: ShardRange;
}

export class Routes {
  readonly #wish: Wish;
  readonly #here: LocalCapabilities;
  #numbers = new Map<string, number>();
  #states = new Map<number, TransportState>();
  readonly #converted = new Map<number, Converted>();
  #next = 1;
  #owners: ReadonlyMap<number, { readonly number: number; readonly id: string | undefined }> = new Map();
  #known: Identity | undefined;

  constructor(wish: Wish, here: LocalCapabilities) {
    this.#wish = wish;
    this.#here = here;
  }

  /** undefined before the first map. */
  get identity(): Identity | undefined {
    return this.#known;
  }

  /** Throws when it is another one than the client's. */
  checkCluster(clusterId: string): void {
    if (this.#known === undefined || this.#known.clusterId === clusterId) return;
    throw new FarkvError('ERR_CONFIG', `this is cluster ${clusterId}, the client belongs to ${this.#known.clusterId}`);
  }

  /** Throws when the map is of another cluster, or not whole. */
  update(map: ClientMap): Routing {
    this.#check(map);
    const members = new Map(map.members.map((member) => [member.id, member]));
    const owners = new Map<number, OwnerAddress>();
    const numbers = new Map<string, number>();
    const states = new Map<number, TransportState>();
    const ownerOf = (shard: Shard): number => {
      const member =
        shard.owner === undefined || shard.incarnation === undefined ? undefined : members.get(shard.owner);
      if (member === undefined) return -1;
      const name = `${member.id}/${member.incarnation}/${shard.worker}`;
      const number = numbers.get(name) ?? this.#numbers.get(name) ?? this.#next++;
      numbers.set(name, number);
      if (!owners.has(number)) owners.set(number, this.#owner(number, member, shard.worker, states));
      return number;
    };
    const routes = map.shards.map((shard) => this.#route(shard, ownerOf(shard)));
    this.#owners = new Map(
      map.shards.map(({ owner: id, shard }, i) => [shard, { id, number: routes[i]?.owner ?? -1 }]),
    );
    this.#numbers = numbers;
    this.#states = states;
    return { owners: [...owners.values()], routes };
  }

  /** Why nobody answers for a shard, for a person. */
  explain(shard: number): string {
    const { id, number } = this.#owners.get(shard) ?? { id: undefined, number: -1 };
    if (id === undefined) return `shard ${shard} has no owner yet`;
    const state = this.#states.get(number);
    if (state === undefined) return `the owner of shard ${shard}, ${id}, has not opened it yet`;
    return `the owner of shard ${shard}, ${id}, ${state.connected ? 'does not serve it yet' : `is ${state.report().reason}`}`;
  }

  /** Why the shard's owner ended the client's connection lately, for a person. */
  ended(shard: number): string | undefined {
    return this.#states.get(this.#owners.get(shard)?.number ?? -1)?.ended;
  }

  state(owner: number): TransportState | undefined {
    return this.#states.get(owner);
  }

  get states(): readonly TransportState[] {
    return [...this.#states.values()];
  }

  #owner(owner: number, member: Member, worker: number, states: Map<number, TransportState>): OwnerAddress {
    const planned = plan(member, worker, this.#wish, this.#here);
    const state = this.#states.get(owner) ?? new TransportState(member.id, worker, planned);
    state.plan = planned;
    states.set(owner, state);
    return { owner, serverIncarnation: fromHex64(member.incarnation), addresses: planned.addresses };
  }

  #route(shard: Shard, owner: number): ShardRoute {
    const before = this.#converted.get(shard.shard);
    if (before?.shard === shard && before.owner === owner) return before.route;
    const route: ShardRoute = {
      shard: shard.shard,
      owner,
      epoch: shard.epoch,
      incarnation: fromHex64(shard.incarnation ?? '0'),
      layoutEpoch: shard.layoutEpoch,
      buckets: shard.buckets,
      regions: shard.regions.map(nativeRegion),
    };
    this.#converted.set(shard.shard, { shard, owner, route });
    return route;
  }

  #check(map: ClientMap): void {
    const shards = shardRange(map);
    if (map.shards.some((shard, i) => shard.shard !== shards.first + i))
      throw new FarkvError('ERR_PROTOCOL', 'a map with non-contiguous shards');
    const { clusterId, hashSeed } = map;
    this.checkCluster(clusterId);
    this.#known ??= { clusterId, hashSeed, shards };
    if (
      this.#known.hashSeed !== hashSeed ||
      this.#known.shards.first !== shards.first ||
      this.#known.shards.count !== shards.count
    ) {
      throw new FarkvError(
        'ERR_PROTOCOL',
        "the hash seed of the cluster, or the range of this client's shards, has changed: both are fixed",
      );
    }
  }
}
