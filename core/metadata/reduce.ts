/**
 * What each command does to the metadata: a pure function of the state and the command. The new state shares with the old one
 * whatever did not change, and shards and members that did not change keep their identity (client-map.ts relies on it).
 *
 * A command that does not fit the state is refused and changes nothing. That is no failure of the log: every server refuses
 * the same command at the same place.
 */
import type { ErrorCode } from '../errors.js';
import { EPOCH_MAX, REGIONS_MAX } from './check-state.js';
import type { Command, MemberJoin, SegmentName, ShardLayoutChanged, ShardOpened } from './commands.js';
import { groupsOf, place, raftIdOf } from './placement.js';
import type { Member, MetadataState, Region, Shard } from './state.js';

export type Reduced = { readonly ok: true; readonly state: MetadataState } | Refused;
export interface Refused {
  readonly ok: false;
  readonly code: ErrorCode;
  readonly message: string;
}

function refused(code: ErrorCode, message: string): Refused {
  return { ok: false, code, message };
}

/** Before the cluster is made. */
export const EMPTY: MetadataState = {
  formatVersion: 1,
  clusterId: '',
  mapEpoch: 0,
  hashSeed: '',
  ticketSecret: '',
  voters: [],
  members: new Map(),
  shards: [],
};

function changed(state: MetadataState, change: Partial<MetadataState>): Reduced {
  return { ok: true, state: { ...state, ...change, mapEpoch: state.mapEpoch + 1 } };
}

/** Closed, under a new epoch. Invariant: a shard's epoch never falls and never repeats for another incarnation. */
function closed(s: Shard, owner: string | undefined): Shard {
  return { shard: s.shard, ...(owner === undefined ? {} : { owner }), group: 0, epoch: s.epoch + 1, layoutEpoch: 0, buckets: 0, regions: [] };
}

/** Spreads each member's shards over its data-plane groups in turn; shards that are open stay where they are. */
function grouped(shards: readonly Shard[], members: ReadonlyMap<string, Member>): Shard[] {
  const seen = new Map<string, number>();
  return shards.map((s) => {
    const member = s.owner === undefined ? undefined : members.get(s.owner);
    if (member === undefined) return s;
    const ordinal = seen.get(member.id) ?? 0;
    seen.set(member.id, ordinal + 1);
    const group = ordinal % groupsOf(member);
    return s.incarnation !== undefined || s.group === group ? s : { ...s, group };
  });
}

function join(state: MetadataState, c: MemberJoin): Reduced {
  if (!state.voters.includes(c.id)) return refused('ERR_CONFIG', `${c.id} is not one of the servers of this cluster (${state.voters.join(', ')})`);
  const present = state.members.get(c.id);
  if (present?.incarnation !== c.replaces) return refused('ERR_BUSY', `${c.id} has started again since`);
  if (present?.incarnation === c.incarnation) return refused('ERR_BUSY', `${c.id} has joined already`);
  if (present?.instance !== undefined && present.instance !== c.instance) {
    return refused('ERR_DATA_DIR', `${c.id} has joined this cluster with another data directory`);
  }
  if (state.shards.some((s) => s.owner === c.id && s.epoch >= EPOCH_MAX)) return refused('ERR_INTERNAL', `a shard of ${c.id} has used up its epochs`);
  const member: Member = {
    id: c.id, raftId: raftIdOf(c.id), incarnation: c.incarnation, control: c.control, fabric: c.fabric, memoryBytes: c.memoryBytes, instance: c.instance,
  };
  const members = new Map(state.members).set(c.id, member);
  // What the member served before is gone with its last process: nobody may use those regions any more.
  const shards = state.shards.map((s) => (s.owner === c.id ? closed(s, c.id) : s));
  return changed(state, { members, shards: grouped(shards, members) });
}

function assign(state: MetadataState): Reduced {
  const placed = place(state.shards, state.members);
  if (placed.size === 0) return refused('ERR_BUSY', 'every shard has an owner, or there is no member to own one');
  const shards = state.shards.map((s) => {
    const owner = placed.get(s.shard);
    return owner === undefined || s.epoch >= EPOCH_MAX ? s : closed(s, owner);
  });
  return changed(state, { shards: grouped(shards, state.members) });
}

function replaceShard(state: MetadataState, shard: Shard): Reduced {
  return changed(state, { shards: state.shards.map((s) => (s.shard === shard.shard ? shard : s)) });
}

function opened(state: MetadataState, c: ShardOpened): Reduced {
  const shard = state.shards[c.shard];
  if (shard === undefined) return refused('ERR_CONFIG', `there is no shard ${c.shard}`);
  if (shard.owner !== c.owner || shard.epoch !== c.epoch) return refused('ERR_NOT_OWNER', `${c.owner} does not own shard ${c.shard} in epoch ${c.epoch}`);
  if (state.members.get(c.owner)?.incarnation !== c.memberIncarnation) return refused('ERR_NOT_OWNER', `${c.owner} has started again since`);
  if (shard.incarnation !== undefined) return refused('ERR_BUSY', `shard ${c.shard} is open in epoch ${c.epoch} already`);
  return replaceShard(state, { ...shard, incarnation: c.incarnation, layoutEpoch: c.layoutEpoch, buckets: c.buckets, regions: c.regions });
}

export function segmentKey(r: SegmentName): string {
  return `${r.provider}/${r.kind}/${r.segment}`;
}

function layout(state: MetadataState, c: ShardLayoutChanged): Reduced {
  const shard = state.shards[c.shard];
  if (shard?.incarnation === undefined || shard.incarnation !== c.incarnation) return refused('ERR_NOT_OWNER', `shard ${c.shard} is no longer what changed`);
  if (shard.layoutEpoch !== c.from) return refused('ERR_BUSY', `the layout of shard ${c.shard} is at epoch ${shard.layoutEpoch}, not ${c.from}`);
  const regions = new Map<string, Region>(shard.regions.map((r) => [segmentKey(r), r]));
  for (const name of c.remove) regions.delete(segmentKey(name));
  for (const region of c.add) regions.set(segmentKey(region), region);
  if (regions.size > REGIONS_MAX) return refused('ERR_NO_MEMORY', `shard ${c.shard} would have more than ${REGIONS_MAX} segments: use more shards`);
  return replaceShard(state, { ...shard, layoutEpoch: c.layoutEpoch, buckets: c.buckets, regions: [...regions.values()] });
}

export function reduce(state: MetadataState, c: Command): Reduced {
  if (c.t === 'no-op') return { ok: true, state };
  if (c.t === 'bootstrap') {
    if (state.clusterId !== '') return refused('ERR_BUSY', 'the cluster exists');
    if (c.shards === 0 || c.voters.length === 0) return refused('ERR_CONFIG', 'a cluster needs a shard and a server');
    const shards = Array.from({ length: c.shards }, (_, shard): Shard => ({ shard, group: 0, epoch: 0, layoutEpoch: 0, buckets: 0, regions: [] }));
    return changed(state, { clusterId: c.clusterId, hashSeed: c.hashSeed, ticketSecret: c.ticketSecret, voters: [...c.voters].sort(), shards });
  }
  if (state.clusterId === '') return refused('ERR_NO_LEADER', 'the cluster does not exist yet');
  switch (c.t) {
    case 'member-join': return join(state, c);
    case 'member-leave': {
      if (state.members.get(c.id)?.incarnation !== c.incarnation) return refused('ERR_BUSY', `${c.id} is not a member, or has started again since`);
      const members = new Map(state.members);
      members.delete(c.id);
      return changed(state, { members, shards: state.shards.map((s) => (s.owner === c.id ? closed(s, undefined) : s)) });
    }
    case 'assign-shards': return assign(state);
    case 'shard-opened': return opened(state, c);
    case 'shard-layout': return layout(state, c);
  }
}
