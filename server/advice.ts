/** What of a cluster's status works and could be safer. What needs a person is in attention.ts. */
import { planCopies, type Placed, type ZonedKeeper } from '../core/metadata/plan-copies.js';
import { planRebalance } from '../core/metadata/plan.js';
import { formatSize } from '../core/size.js';
import { isDiskFull, lacksLease, ofFull, ofMemory, votersOf } from './attention.js';
import { withRoom } from './move-lines.js';
import { list, numbers } from './shard-words.js';
import type { ClusterStatus, MemberStatus, ShardStatus } from './status.js';

/**
 * What works and could be safer, with what to do, a line each. Nobody is needed now: these lines decide no exit code.
 * An empty list also while no server leads, since nobody can join then.
 */
export function advice(status: ClusterStatus): string[] {
  return [...ofVoters(status), ...ofSpread(status), ...ofRefused(status)];
}

function ofVoters({ leader, members }: ClusterStatus): string[] {
  const ids = votersOf(members).map(({ id }) => id);
  // A learner gets a vote as soon as it has the log, or --voters says that it gets none.
  if (leader === undefined || ids.length !== 2 || members.some(({ role }) => role === 'learner')) return [];
  return [
    `the metadata group has two voters, and goes on only while both are there: if ${ids.join(' or ')} is lost, nothing is answered; add a third server (farkv server --join), with --witness if it is to keep no values`,
  ];
}

/** As the command plans it, so that it is not named where it would do nothing; and only where all servers are there. */
function ofSpread({ leader, members, shards, moves }: ClusterStatus): string[] {
  const all = members.filter(({ witness }) => witness !== true);
  const keepers = all.filter(({ draining }) => !draining);
  const isCalm =
    moves.length === 0 &&
    all.every((m) => m.state === 'up' && !lacksLease(m) && m.node?.stopping !== true) &&
    shards.every(({ state, owner }) => state === 'serving' && keepers.some(({ id }) => id === owner));
  if (leader === undefined || !isCalm) return [];
  const copySets = shards.map(({ copies }) => ({ copies: copies?.copies ?? [] }));
  const planned = planRebalance({ shards, moves, copySets }, keepers);
  const { length } = withRoom({ members, shards }, planned).fits;
  if (length > 0) {
    const owned = keepers.map(({ id }) => `${id} owns ${shards.filter(({ owner }) => owner === id).length}`);
    return [
      `shards are not spread by the memory of the servers: ${list(owned)}; farkv shard rebalance moves ${length === 1 ? 'one' : length}, and with --dry-run says which`,
    ];
  }
  // The command comes to copies when owners are spread.
  if (planned.length > 0) return [];
  const places = shards.map((shard) => placed(shard, ids(keepers)));
  const forCopies = planCopies(places, all.map(zoned), ids(keepers));
  // One more than a part is nobody's matter: a new cluster is like that.
  if (withRoom({ members, shards }, forCopies).fits.length <= 1) return ofZones({ members, shards }, places, keepers);
  const kept = ids(keepers).map((id) => `${id} has ${places.filter(({ at }) => at.includes(id)).length}`);
  return [
    `copies of shards are not spread by the memory of the servers: ${list(kept)}; farkv shard rebalance spreads them`,
  ];
}

/** Copies are made in different zones where there are some; a server of another one may have come later. */
function ofZones(
  status: Pick<ClusterStatus, 'members' | 'shards'>,
  places: readonly Placed[],
  keepers: readonly MemberStatus[],
): string[] {
  const zones = new Map(keepers.map(zoned).map(({ id, zone }) => [id, zone]));
  const has = (id: string): number => places.filter(({ at }) => at.includes(id)).length;
  const byCopies = ids(keepers).sort((a, b) => has(a) - has(b));
  const together = places.flatMap(({ shard, at, isWhole }) => {
    const zone = zones.get(at[0] ?? '');
    const to = byCopies.find((id) => zones.get(id) !== zone);
    const isOne = isWhole && at.length > 1 && at.every((id) => zones.get(id) === zone);
    return isOne && zone !== undefined && to !== undefined ? [{ shard, zone, to }] : [];
  });
  const [first] = withRoom(status, together).fits;
  if (first === undefined) return [];
  const { shard, zone, to } = first;
  const same = together.filter((one) => one.zone === zone);
  return [
    `${numbers(same)} ${same.length === 1 ? 'has' : 'have'} all copies in ${zone}, and ${to} is in another: if ${zone} fails, so do all of them; farkv shard move ${shard} ${to} keeps one there${same.length === 1 ? '' : ', and so on'}`,
  ];
}

const ids = (members: readonly MemberStatus[]): string[] => members.map(({ id }) => id);

const zoned = ({ id, memoryBytes, zone, failureDomain = zone ?? id }: MemberStatus): ZonedKeeper => ({
  ...{ id, memoryBytes },
  zone: failureDomain,
});

function placed({ shard, owner, copies }: ShardStatus, keepers: readonly string[]): Placed {
  if (copies === undefined) return { shard, owner, wanted: 1, at: owner === undefined ? [] : [owner], isWhole: false };
  const at = copies.copies.map(({ member }) => member).sort((a, b) => Number(a === owner) - Number(b === owner));
  const isWhole =
    at.length === copies.wanted &&
    copies.copies.every(({ member, state, away }) => state === 'in-sync' && away !== true && keepers.includes(member));
  return { shard, owner, wanted: copies.wanted, at, isWhole };
}

/** Where nothing that is full explains it. Whoever may write can cause it, so it needs nobody. */
function ofRefused({ members, shards }: ClusterStatus): string[] {
  const at = members.filter(({ node }) => node?.changesRefusedAgoMs !== undefined).map(({ id }) => id);
  if (at.length === 0 || members.some((member) => isFull(member, { members, shards }))) return [];
  const limit = Math.min(...shards.map(({ memoryLimitBytes = Infinity }) => memoryLimitBytes));
  const has = Number.isFinite(limit) ? `has at most ${formatSize(limit)}, which is` : 'has at most';
  return [
    `${list(at)} refused changes in the last five minutes for want of room (ERR_TABLE_FULL), and nothing is nearly full now: what was full has room again, or values were too large for what their shards had free in one piece. A shard ${has} the --memory of all servers by the number of shards, and no more than that of its server. If the values are large: add a server (farkv server --join), start servers again with more --memory, or make a cluster with fewer --shards`,
  ];
}

function isFull(member: MemberStatus, { members, shards }: Pick<ClusterStatus, 'members' | 'shards'>): boolean {
  return isDiskFull(member.node) || ofMemory(member, shards).length + ofFull(member, members).length > 0;
}
