/** Commands about servers: the format itself, who belongs to the cluster, who votes, who is to own nothing. */
import { MEMBERS_MAX } from './check-state.js';
import type { MemberJoin, RaiseFormat, ServerAdd, ServerDrain, ServerRemove, VotersSet } from './commands.js';
import { fewerCopies, isWhole, policyOf, revised, withSets } from './copy-sets.js';
import { tokensAfter } from './join-tokens.js';
import { isWitness, keepersOf, raftIdOf } from './placement.js';
import { changed, refused, type Reduced } from './reduced.js';
import type { CopySet, MetadataState, Server } from './state.js';
import { tenantRanges } from './tenants.js';

const byId = (a: Server, b: Server): number => (a.id < b.id ? -1 : 1);

/** One of those that the cluster is made with. */
export function firstServer(id: string): Server {
  return { id, raftId: raftIdOf(id), control: [], draining: false };
}

export function raiseFormat(state: MetadataState, c: RaiseFormat): Reduced {
  if (c.format !== state.formatVersion + 1)
    return refused('ERR_BUSY', `the metadata is at format ${state.formatVersion}`);
  return changed(state, { formatVersion: c.format });
}

export function addServer(state: MetadataState, c: ServerAdd): Reduced {
  const joinTokens = tokensAfter(state, c);
  if (joinTokens === undefined)
    return refused('ERR_UNAUTHORIZED', 'the join token is wrong, has expired, or another server has used it');
  const present = state.servers.find((s) => s.id === c.id);
  if (present !== undefined && (present.instance === c.instance || c.instance === undefined))
    return refused('ERR_BUSY', `${c.id} is one of the servers already`);
  if (present?.instance !== undefined) {
    return refused(
      'ERR_DATA_DIR',
      `${c.id} belongs to this cluster with another data directory. If that is lost: farkv member remove ${c.id}, then start it with --join`,
    );
  }
  if (present !== undefined && present.raftId !== 0) {
    return refused(
      'ERR_CONFIG',
      `${c.id} is one of the servers that this cluster was made with, and has not come yet: start it with the same --peers list as the others (${state.firstServers.join(', ')}), without --join`,
    );
  }
  if (c.instance !== undefined && state.servers.some((s) => s.raftId === c.raftId))
    return refused('ERR_CONFIG', `${c.id} has the number of another server: choose another id`);
  if (present === undefined && state.servers.length >= MEMBERS_MAX)
    return refused('ERR_CONFIG', `a cluster has at most ${MEMBERS_MAX} servers`);
  const server: Server = {
    id: c.id,
    raftId: c.instance === undefined ? 0 : c.raftId,
    ...(c.instance === undefined ? {} : { instance: c.instance }),
    control: c.control,
    ...(c.peer === undefined ? {} : { peer: c.peer }),
    draining: false,
  };
  return changed(state, {
    servers: [...state.servers.filter((s) => s !== present), server].sort(byId),
    ...(c.token === undefined ? {} : { joinTokens }),
  });
}

export function removeServer(state: MetadataState, c: ServerRemove): Reduced {
  const present = state.servers.find((s) => s.id === c.id);
  if (present?.raftId !== c.raftId) return refused('ERR_CONFIG', `${c.id} is not one of the servers`);
  const owned = state.shards.filter((s) => s.owner === c.id).length;
  if (owned > 0)
    return refused(
      'ERR_BUSY',
      `${c.id} owns ${owned === 1 ? '1 shard' : `${owned} shards`}: farkv drain ${c.id} first`,
    );
  const kept = state.copySets.filter((set) => set.copies.some((copy) => copy.member === c.id && isWhole(copy)));
  // mutation: copies/server-with-a-copy-removed
  if (kept.length > 0) return refused('ERR_BUSY', whyKept(state, present, kept));
  const voters = state.voters.filter((id) => id !== c.id);
  if (voters.length === 0) return refused('ERR_BUSY', `${c.id} is the only voter of the metadata group`);
  const members = new Map(state.members);
  members.delete(c.id);
  const sets = new Map<number, CopySet>();
  state.copySets.forEach((set, shard) => {
    const copies = set.copies.filter((copy) => copy.member !== c.id);
    if (copies.length < set.copies.length) sets.set(shard, revised(set, copies, policyOf(state, shard)));
  });
  return changed(state, {
    ...withSets(state, sets),
    voters,
    members,
    servers: state.servers.filter((s) => s !== present),
    moves: state.moves.filter((m) => m.to !== c.id),
  });
}

/** Nobody could take the place of a copy of a shard without an owner: what is there comes back, or is given up. */
function whyKept(state: MetadataState, { id, draining }: Server, kept: readonly CopySet[]): string {
  const { copySets, shards } = state;
  const lost = shards.filter(({ shard, owner }) => owner === undefined && kept.some((set) => set === copySets[shard]));
  if (lost.length === 0) {
    const has = `has copies of ${kept.length === 1 ? '1 shard' : `${kept.length} shards`}`;
    return draining
      ? `${id} is drained, and still ${has}${whyStuck(state, kept)}`
      : `${id} ${has}: farkv drain ${id} first`;
  }
  const named = lost.map(({ shard }) => shard).join(', ');
  return lost.length === 1
    ? `${id} has a copy of shard ${named}, which has no owner: if no other server has its values, bring ${id} back; if it is lost, farkv status names the command that gives its values up`
    : `${id} has copies of shards ${named}, which have no owner: if no other server has their values, bring ${id} back; if it is lost, farkv status names the commands that give their values up`;
}

/** Why copies of a drained server are still there: others are being made, or too few servers may have one. */
function whyStuck(state: MetadataState, kept: readonly CopySet[]): string {
  const draining = new Set(state.servers.filter((s) => s.draining).map(({ id }) => id));
  const servers = keepersOf(state).filter(({ id }) => !draining.has(id)).length;
  const commands = tenantRanges(state).flatMap(({ first, count }, tenant) => {
    const policy = policyOf(state, first);
    const isKept = state.copySets.slice(first, first + count).some((set) => kept.includes(set));
    const name = tenant === 0 ? undefined : state.tenants[tenant - 1]?.name;
    return isKept && policy.replicas > servers ? [fewerCopies(name, servers, policy)] : [];
  });
  if (servers === 0)
    return `, since all other servers are drained, too: add a server (farkv server --join), or keep one of them (farkv drain SERVER --undo)`;
  if (commands.length === 0) return ', until others have taken their place: farkv status shows how far that is';
  return `, since ${servers === 1 ? 'one other server keeps' : `${servers} other servers keep`} values: add a server (farkv server --join), or want fewer copies (${commands.join('; ')}); they go then`;
}

export function drainServer(state: MetadataState, c: ServerDrain): Reduced {
  const present = state.servers.find((s) => s.id === c.id);
  if (present === undefined) return refused('ERR_CONFIG', `${c.id} is not one of the servers`);
  if (present.draining === c.draining)
    return refused('ERR_BUSY', `${c.id} is ${c.draining ? 'being drained already' : 'not being drained'}`);
  const others = state.servers.filter((s) => s !== present && !s.draining);
  const mayOwn = ({ id }: Server): boolean => {
    const member = state.members.get(id);
    return member !== undefined && !isWitness(member);
  };
  if (c.draining && !others.some(mayOwn)) {
    const expected = others.filter(({ id }) => !state.members.has(id)).map(({ id }) => id);
    const why =
      expected.length === 0 ? '' : `: ${expected.join(', ')} ${expected.length === 1 ? 'has' : 'have'} not come yet`;
    return refused('ERR_BUSY', `no other server could own the shards of ${c.id}${why}`);
  }
  return changed(state, { servers: state.servers.map((s) => (s === present ? { ...s, draining: c.draining } : s)) });
}

export function setVoters(state: MetadataState, c: VotersSet): Reduced {
  const voters = [...new Set(c.voters)].sort();
  const stranger = voters.find((id) => !state.servers.some((s) => s.id === id && s.raftId !== 0));
  if (stranger !== undefined || voters.length === 0)
    return refused(
      'ERR_CONFIG',
      stranger === undefined ? 'at least one voter is required' : `${stranger} is not one of the servers`,
    );
  if (voters.join() === state.voters.join()) return refused('ERR_BUSY', 'these servers vote already');
  return changed(state, { voters });
}

/** What a join tells of a server that may not have been known so well. */
export function joined(servers: readonly Server[], { id, instance, control, peer }: MemberJoin): readonly Server[] {
  return servers.map((s) => (s.id === id ? { ...s, instance, control, ...(peer === undefined ? {} : { peer }) } : s));
}
