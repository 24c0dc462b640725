/**
 * What each command does to the metadata: a pure function of the state and the command. The new state shares with the
 * old one whatever did not change, and shards and members that did not change keep their identity (client-map.ts relies
 * on it).
 *
 * A command that does not fit the state is refused and changes nothing. That is no failure of the log: every server
 * refuses the same command at the same place.
 */
import { EPOCH_MAX, REGIONS_MAX } from './check-state.js';
import type {
  AssignShards,
  Bootstrap,
  Command,
  MemberJoin,
  SegmentName,
  ShardLayoutChanged,
  ShardOpened,
} from './commands.js';
import { FORMAT_FIRST, tooEarly } from './format.js';
import { emptied, isUnassigned, isWhole, opened as withCopy, withSets } from './copy-sets.js';
import { addJoinToken } from './join-tokens.js';
import { isWitness, place } from './placement.js';
import { addCopies, copyInSync, keepCopies, nameCopy, removeCopies, setPolicy } from './reduce-copies.js';
import { moveShard, takeShards } from './reduce-moves.js';
import { giveShards, handOver, missCopy, promoteShards, resetShard, restarted } from './reduce-promotions.js';
import { addServer, drainServer, firstServer, joined, raiseFormat, removeServer, setVoters } from './reduce-servers.js';
import { changed, closed, spreadOverWorkers, refused, type Reduced } from './reduced.js';
import type { CopySet, Member, MetadataState, Region, Shard } from './state.js';
import { tenantRanges } from './tenants.js';
import { revokeTickets, rotateTickets } from './tickets.js';

/** Before the cluster is made. */
export const EMPTY: MetadataState = {
  formatVersion: FORMAT_FIRST,
  clusterId: '',
  mapEpoch: 0,
  hashSeed: '',
  ticketSecret: '',
  voters: [],
  members: new Map(),
  shards: [],
  firstServers: [],
  servers: [],
  votersMax: 0,
  ownerLease: { leaseMs: 0, driftPpm: 0 },
  moves: [],
  tenants: [],
  copySets: [],
  policies: [],
};

function join(state: MetadataState, c: MemberJoin): Reduced {
  const server = state.servers.find((s) => s.id === c.id);
  if (server === undefined)
    return refused(
      'ERR_CONFIG',
      `${c.id} is not one of the servers of this cluster (${state.servers.map((s) => s.id).join(', ')})`,
    );
  const present = state.members.get(c.id);
  if (present?.incarnation !== c.replaces) return refused('ERR_BUSY', `${c.id} has started again since`);
  if (present?.incarnation === c.incarnation) return refused('ERR_BUSY', `${c.id} has joined already`);
  const { instance } = server;
  if (instance !== undefined && instance !== c.instance) {
    return refused('ERR_DATA_DIR', `${c.id} has joined this cluster with another data directory`);
  }
  if (state.shards.some((s) => s.owner === c.id && s.epoch >= EPOCH_MAX))
    return refused('ERR_INTERNAL', `a shard of ${c.id} has used up its epochs`);
  if (isWitness(c) && state.shards.some((s) => s.owner === c.id))
    return refused(
      'ERR_CONFIG',
      `${c.id} owns shards, and a witness keeps no values: start it without --witness, and take them away with farkv drain ${c.id}`,
    );
  const member: Member = {
    id: c.id,
    raftId: server.raftId,
    incarnation: c.incarnation,
    control: c.control,
    ...(c.peer === undefined ? {} : { peer: c.peer }),
    fabric: c.fabric,
    memoryBytes: c.memoryBytes,
    instance: c.instance,
    ...(c.zone === undefined ? {} : { zone: c.zone }),
  };
  const members = new Map(state.members).set(c.id, member);
  // What the member served before is gone with its last process: nobody may use those regions any more. What others have
  // a copy of goes to nobody until one of them is promoted.
  const recovered = new Map((c.recovered ?? []).map((one) => [one.shard, one]));
  const left = state.shards.map((s) => restarted(state, s, c, recovered));
  const shards = left.map(({ shard }) => shard);
  const sets = new Map(left.flatMap(({ shard, set }): [number, CopySet][] => (set ? [[shard.shard, set]] : [])));
  const spread = spreadOverWorkers(shards, members);
  return changed(state, {
    ...withSets(state, sets),
    members,
    // A closed shard that keeps its epoch may be opening already, so it keeps its worker; what has come back lies where
    // it was.
    shards: shards.map((s, i): Shard => {
      if (s.owner === c.id && sets.get(s.shard)?.copies.some((copy) => copy.member === c.id && isWhole(copy))) return s;
      return s === state.shards[i] ? s : (spread[i] ?? s);
    }),
    // They were to be moved with what was in them, or to what this member had: whoever planned that plans again.
    moves: state.moves.filter((m) => state.shards[m.shard]?.owner !== c.id && m.to !== c.id),
    servers: joined(state.servers, c),
  });
}

function assign(state: MetadataState, c: AssignShards): Reduced {
  if (c.mapEpoch !== undefined && c.mapEpoch !== state.mapEpoch)
    return refused('ERR_BUSY', 'the map has changed since');
  const placed = place(state);
  const owners = new Map(
    state.shards.flatMap((s): [number, string][] => {
      const owner = placed.get(s.shard);
      return owner === undefined || !isUnassigned(state, s) ? [] : [[s.shard, owner]];
    }),
  );
  if (owners.size === 0) return refused('ERR_BUSY', 'every shard has an owner, or there is no member to own one');
  const shards = state.shards.map((s) => {
    const owner = owners.get(s.shard);
    return owner === undefined || s.epoch >= EPOCH_MAX ? s : closed(s, owner);
  });
  const sets = new Map(
    [...owners.keys()].flatMap((shard): [number, CopySet][] => {
      const set = shards[shard] === state.shards[shard] ? undefined : state.copySets[shard];
      return set === undefined ? [] : [[shard, emptied(set)]];
    }),
  );
  const spread = spreadOverWorkers(shards, state.members);
  return changed(state, {
    // A closed shard that was not assigned now may be opening already, so it keeps its worker.
    shards: shards.map((s, i) => (s === state.shards[i] ? s : (spread[i] ?? s))),
    ...withSets(state, sets),
  });
}

function replaceShard(state: MetadataState, shard: Shard): Reduced {
  return changed(state, { shards: state.shards.map((s) => (s.shard === shard.shard ? shard : s)) });
}

function opened(state: MetadataState, c: ShardOpened): Reduced {
  const shard = state.shards[c.shard];
  if (shard === undefined) return refused('ERR_CONFIG', `there is no shard ${c.shard}`);
  if (state.members.get(c.owner)?.incarnation !== c.memberIncarnation)
    return refused('ERR_NOT_OWNER', `${c.owner} has started again since`);
  if (shard.owner !== c.owner || shard.epoch !== c.epoch)
    return refused('ERR_NOT_OWNER', `${c.owner} does not own shard ${c.shard} in epoch ${c.epoch}`);
  if (shard.incarnation !== undefined)
    return refused('ERR_BUSY', `shard ${c.shard} is open in epoch ${c.epoch} already`);
  const { incarnation, layoutEpoch, buckets, regions } = c;
  const set = withCopy(state, shard, c.owner, incarnation);
  const sets = withSets(state, set === undefined ? new Map() : new Map([[c.shard, set]]));
  return replaceShard({ ...state, ...sets }, { ...shard, incarnation, layoutEpoch, buckets, regions });
}

export function segmentKey(r: SegmentName): string {
  return `${r.provider}/${r.device ?? 0}/${r.kind}/${r.segment}`;
}

function layout(state: MetadataState, c: ShardLayoutChanged): Reduced {
  const shard = state.shards[c.shard];
  if (shard?.incarnation === undefined || shard.incarnation !== c.incarnation)
    return refused('ERR_NOT_OWNER', `shard ${c.shard} is no longer what changed`);
  if (shard.layoutEpoch !== c.from)
    return refused('ERR_BUSY', `the layout of shard ${c.shard} is at epoch ${shard.layoutEpoch}, not ${c.from}`);
  const regions = new Map<string, Region>(shard.regions.map((r) => [segmentKey(r), r]));
  for (const name of c.remove) regions.delete(segmentKey(name));
  for (const region of c.add) regions.set(segmentKey(region), region);
  if (regions.size > REGIONS_MAX)
    return refused('ERR_NO_MEMORY', `shard ${c.shard} would have more than ${REGIONS_MAX} segments: use more shards`);
  return replaceShard(state, {
    ...shard,
    layoutEpoch: c.layoutEpoch,
    buckets: c.buckets,
    regions: [...regions.values()],
  });
}

function bootstrap(state: MetadataState, c: Bootstrap): Reduced {
  const tenants = c.tenants ?? [];
  if (state.clusterId !== '') return refused('ERR_BUSY', 'the cluster exists');
  if (c.shards === 0 || c.voters.length === 0) return refused('ERR_CONFIG', 'a cluster needs a shard and a server');
  if (new Set(tenants.map((d) => d.name)).size < tenants.length)
    return refused('ERR_CONFIG', 'two tenants have the same name');
  const shards = Array.from({ length: c.shards }, (_, shard): Shard => ({
    shard,
    worker: 0,
    epoch: 0,
    layoutEpoch: 0,
    buckets: 0,
    regions: [],
  }));
  if (tenantRanges({ shards, tenants }).some((range) => range.count < 1))
    return refused('ERR_CONFIG', 'a tenant needs a shard');
  const voters = [...new Set(c.voters)].sort();
  const { policy } = c;
  return changed(state, {
    clusterId: c.clusterId,
    hashSeed: c.hashSeed,
    ticketSecret: c.ticketSecret,
    ...(c.madeMs === undefined ? {} : { tickets: { number: 0, rotatedMs: c.madeMs, revoked: [] } }),
    voters,
    firstServers: voters,
    servers: voters.map(firstServer),
    votersMax: Math.max(c.votersMax, voters.length),
    ownerLease: c.ownerLease,
    shards,
    tenants,
    copySets: shards.map(() => ({ config: 1, copies: [] })),
    policies: policy === undefined ? [] : Array.from({ length: tenants.length + 1 }, () => policy),
  });
}

export function reduce(state: MetadataState, c: Command): Reduced {
  if (c.t === 'no-op') return { ok: true, state };
  if (c.t === 'bootstrap') return bootstrap(state, c);
  if (state.clusterId === '') return refused('ERR_NO_LEADER', 'the cluster does not exist yet');
  const early = tooEarly(c, state.formatVersion);
  if (early !== undefined && c.t !== 'raise-format') return refused(early.code, early.message);
  switch (c.t) {
    case 'member-join':
      return join(state, c);
    case 'assign-shards':
      return assign(state, c);
    case 'shard-opened':
      return opened(state, c);
    case 'shard-layout':
      return layout(state, c);
    case 'raise-format':
      return raiseFormat(state, c);
    case 'server-add':
      return addServer(state, c);
    case 'server-remove':
      return removeServer(state, c);
    case 'server-drain':
      return drainServer(state, c);
    case 'voters-set':
      return setVoters(state, c);
    case 'shards-taken':
      return takeShards(state, c);
    case 'shard-move':
      return moveShard(state, c);
    case 'tickets-rotate':
      return rotateTickets(state, c);
    case 'tickets-revoke':
      return revokeTickets(state, c);
    case 'join-token-add':
      return addJoinToken(state, c);
    case 'policy-set':
      return setPolicy(state, c);
    case 'copies-add':
      return addCopies(state, c);
    case 'copy-named':
      return nameCopy(state, c);
    case 'copy-missing':
      return missCopy(state, c);
    case 'copies-in-sync':
      return copyInSync(state, c);
    case 'copies-removed':
      return removeCopies(state, c);
    case 'copies-keep':
      return keepCopies(state, c);
    case 'shards-given':
      return giveShards(state, c);
    case 'shards-promoted':
      return promoteShards(state, c);
    case 'shard-handover':
      return handOver(state, c);
    case 'shard-reset':
      return resetShard(state, c);
  }
}
