/**
 * What the leader sees to before it takes the entry that removes a voter. Everybody who applies that entry lets go of the
 * removed server: its vote is out of reach from then on, though the Raft group has it until a later entry. So the voters
 * that are left must be a majority by themselves, and the leader must be one of them: else nobody leads ever again.
 */
import { FarkvError } from '../../core/errors.js';
import type { ServerRemove } from '../../core/metadata/commands.js';
import type { MetadataState } from '../../core/metadata/state.js';
import type { RaftStatus } from '../../core/raft/index.js';
import type { MetadataDriver } from './driver.js';
import { heirOf, nearTo } from './group-members.js';

/**
 * At the leader. Throws ERR_NO_LEADER where it is to be removed itself: it hands the leadership over, and the next leader
 * is asked; ERR_BUSY where too few of the other voters answer. Both may be over in a moment.
 */
export function prepareRemoval(
  driver: Pick<MetadataDriver, 'status' | 'state' | 'handOver'>,
  { id, raftId }: ServerRemove,
): void {
  const status = driver.status();
  if (!status.config.voters.includes(raftId)) return;
  const near = nearTo(status);
  const why = whyVoteNeeded(driver.state, status, raftId, near);
  if (why !== undefined) throw new FarkvError('ERR_BUSY', `${id} votes in the metadata group, and ${why}`); // mutation: metadata/removed-majority
  if (status.id !== raftId) return; // mutation: metadata/leader-removes-itself
  const heir = heirOf(status, [...near]);
  if (heir !== undefined) driver.handOver(heir);
  throw new FarkvError('ERR_NO_LEADER', `${id} leads the metadata group, and hands that over before it is removed`);
}

/** Undefined: the other voters are a majority of themselves, by those that answer and are to stay. */
function whyVoteNeeded(
  { servers }: Pick<MetadataState, 'servers'>,
  { config, applied, lastIndex }: Pick<RaftStatus, 'config' | 'applied' | 'lastIndex'>,
  raftId: number,
  near: ReadonlySet<number>,
): string | undefined {
  // What was taken and is not applied yet may remove another voter.
  if (applied < lastIndex) return 'other changes are under way: try again'; // mutation: metadata/removed-together
  if (config.outgoing.length > 0) return 'votes are on their way to others: try again';
  const left = config.voters.filter((voter) => voter !== raftId);
  const names = new Map(servers.map((s) => [s.raftId, s.id]));
  const missing = left.filter((voter) => !near.has(voter) || !names.has(voter));
  // Of the only voter the metadata says why it stays.
  if (2 * missing.length < left.length || left.length === 0) return undefined;
  const who = missing.map((voter) => names.get(voter) ?? 'one that was removed').join(', ');
  return `of the ${left.length} voters that would be left too few answer, or have its log (not ${who}): start those again, or remove them first`;
}
