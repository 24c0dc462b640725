/**
 * The map that a server sends to its clients, cut into frames, and put together again. Both directions stand here so
 * that they cannot differ: `mapFrames` at the server, MapAssembler at the client.
 */
import { FarkvError } from '../errors.js';
import { SHARDS_MAX } from '../metadata/check-state.js';
import type { Member, MetadataState, Shard } from '../metadata/state.js';
import { DEFAULT_TENANT, tenantRange } from '../metadata/tenants.js';
import { encodeFrame } from './frame.js';
import { MAP_FRAME_BYTES } from './limits.js';
import type { ClientMap, MapPush } from './messages.js';

/** About what a region costs in a frame; only the cutting depends on it. */
const REGION_BYTES = 128;
const SHARD_BYTES = 192;

function memberForClients(m: Member): Member {
  return {
    id: m.id,
    raftId: m.raftId,
    incarnation: m.incarnation,
    control: m.control,
    fabric: m.fabric,
    memoryBytes: m.memoryBytes,
  };
}

/** The shards of a tenant; rkeys of others are none of its clients' business. */
function shardsOf(state: MetadataState, tenant: number): readonly Shard[] {
  const { first, count } = tenantRange(state, tenant);
  return state.shards.slice(first, first + count);
}

/**
 * The part of the metadata that a client of a tenant may have: no ticket secret, nothing of the servers' own, and
 * where there are several domains only the servers that own shards of this one.
 */
export function clientMap(state: MetadataState, tenant = DEFAULT_TENANT, shards = shardsOf(state, tenant)): ClientMap {
  const owners = state.tenants.length === 0 ? undefined : new Set(shardsOf(state, tenant).map((s) => s.owner));
  return {
    clusterId: state.clusterId,
    mapEpoch: state.mapEpoch,
    hashSeed: state.hashSeed,
    ...((state.policies[tenant]?.level ?? 'cache') !== 'cache' ? { replicated: true } : {}),
    members: [...state.members.values()].filter((m) => owners === undefined || owners.has(m.id)).map(memberForClients),
    shards,
  };
}

/**
 * The frames that bring a client of a tenant from `known` (undefined: nothing) to `state`. Shards are compared by
 * identity, which the metadata machine keeps for what did not change. Written one after the other; the first carries
 * the ticket.
 */
export function mapFrames(
  state: MetadataState,
  known: MetadataState | undefined,
  tenant = DEFAULT_TENANT,
  ticket?: Uint8Array,
): Uint8Array[] {
  const base = known?.clusterId === state.clusterId ? known : undefined;
  const changed = shardsOf(state, tenant).filter((s) => s !== base?.shards[s.shard]);
  const parts: Shard[][] = [[]];
  let bytes = 0;
  for (const shard of changed) {
    const cost = SHARD_BYTES + shard.regions.length * REGION_BYTES;
    if (bytes > 0 && bytes + cost > MAP_FRAME_BYTES) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)?.push(shard);
    bytes += cost;
  }
  return parts.map((shards, i) => {
    const push: MapPush = {
      t: 'map',
      map: clientMap(state, tenant, shards),
      ...(i === 0 && ticket !== undefined ? { ticket } : {}),
      ...(base === undefined ? {} : { partial: true }),
      ...(i < parts.length - 1 ? { more: true } : {}),
    };
    return encodeFrame(push);
  });
}

/** At the client, one for each connection. */
export class MapAssembler {
  #map: ClientMap | undefined;
  #parts: MapPush[] = [];
  /** Invariant: the shards of #parts, at most SHARDS_MAX, as are the parts. */
  #shards = 0;

  /** The whole map once the last frame of a push has come, undefined before. Throws when there is more than any map has. */
  push(frame: MapPush): ClientMap | undefined {
    this.#shards += frame.map.shards.length;
    if (this.#shards > SHARDS_MAX || this.#parts.length >= SHARDS_MAX)
      throw new FarkvError('ERR_PROTOCOL', `a map in parts with more than ${SHARDS_MAX} shards`);
    this.#parts.push(frame);
    if (frame.more === true) return undefined;
    const parts = this.#parts;
    this.#parts = [];
    this.#shards = 0;
    const byNumber = new Map<number, Shard>();
    if (parts[0]?.partial === true) for (const s of this.#map?.shards ?? []) byNumber.set(s.shard, s);
    for (const part of parts) for (const s of part.map.shards) byNumber.set(s.shard, s);
    this.#map = { ...frame.map, shards: [...byNumber.values()].sort((a, b) => a.shard - b.shard) };
    return this.#map;
  }
}
