/** Whether a server may be stopped now: what `farkv status --safe-to-stop` says. */
import { FarkvError } from '../core/errors.js';
import type { ClusterStatus, MemberStatus, ShardStatus } from './status.js';

/** A server that is stopping answers, and will not for long. */
const stays = ({ state, node }: MemberStatus): boolean => state === 'up' && node?.stopping !== true;

/** The first reason why not; undefined: it may. Throws ERR_CONFIG when there is no such server. */
export function whyNotStopped({ members, shards }: ClusterStatus, id: string): string | undefined {
  if (!members.some((m) => m.id === id)) throw new FarkvError('ERR_CONFIG', `the cluster has no server ${id}`);
  const voters = members.filter((m) => m.role === 'voter');
  const left = voters.filter((m) => m.id !== id && stays(m)).length;
  if (2 * left <= voters.length)
    return `the metadata group would stop: without ${id}, ${left} of ${voters.length} voters answer`;
  const up = new Set(members.filter((m) => m.id !== id && stays(m)).map((m) => m.id));
  for (const shard of shards) {
    const why = whyShardNot(shard, id, up);
    if (why !== undefined) return why;
  }
  return undefined;
}

/** `up`: the other servers that answer and are not stopping. */
function whyShardNot({ shard, owner, copies }: ShardStatus, id: string, up: ReadonlySet<string>): string | undefined {
  if (copies === undefined)
    return owner === id ? `shard ${shard} has no copy but that of ${id}: its values would be lost` : undefined;
  const own = copies.copies.find((c) => c.member === id)?.state;
  if (own === undefined || own === 'joining') return undefined;
  const others = copies.copies.filter((c) => c.state === 'in-sync' && up.has(c.member)).length;
  if (others === 0) return `shard ${shard} has no other copy in sync at a server that answers`;
  return others < copies.minInSync
    ? `shard ${shard} would have ${others} in sync, and takes no change with fewer than ${copies.minInSync}`
    : undefined;
}
