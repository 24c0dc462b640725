/**
 * Copies of a server that is drained: others take their place, and they go, where enough servers keep values. Where
 * they do not, `farkv drain` says what stays and what an operator can do.
 */
import { fewerCopies } from '../core/metadata/copy-sets.js';
import { list, numbers } from './attention.js';
import { whyNotStopped } from './safe-to-stop.js';
import type { ClusterStatus, ShardStatus } from './status.js';

/** Shards of which the server has a copy that counts: with one it cannot be removed. */
export function shardsWithCopy({ shards }: ClusterStatus, id: string): ShardStatus[] {
  return shards.filter(({ copies }) =>
    copies?.copies.some(({ member, state }) => member === id && state !== 'joining'),
  );
}

/** Servers that may have copies; one that does not answer may come back. */
function keepers({ members }: ClusterStatus): ClusterStatus['members'] {
  return members.filter(({ state, witness, draining }) => state !== 'absent' && witness !== true && !draining);
}

/** Of those the shards whose copies cannot go: too few servers may have one in its place. */
function stuck(status: ClusterStatus, id: string): ShardStatus[] {
  const places = keepers(status).length;
  return shardsWithCopy(status, id).filter(({ copies }) => (copies?.wanted ?? 0) > places);
}

/** A drained server owns nothing, and has no copy but those that cannot go. */
export function isDrained(status: ClusterStatus, id: string): boolean {
  return (
    status.shards.every(({ owner, state }) => owner !== id && state === 'serving') &&
    shardsWithCopy(status, id).length === stuck(status, id).length
  );
}

/** While copies are waited for: what is in the way. */
export function copyLines(status: ClusterStatus, id: string): string[] {
  const fixed = new Set(stuck(status, id));
  const going = shardsWithCopy(status, id).filter((one) => one.owner !== id && !fixed.has(one));
  const places = keepers(status);
  const silent = places.filter(({ state }) => state !== 'up').map((m) => m.id);
  const late = going.filter(({ copies }) => (copies?.wanted ?? 0) > places.length - silent.length);
  return [
    ...(late.length === 0
      ? []
      : [
          `copies of ${numbers(late)} stay at ${id} until their place is taken at ${list(silent)}, which cannot be reached`,
        ]),
    ...going.flatMap(({ shard, copies }) =>
      (copies?.notCopied ?? []).map(
        ({ member, full }) =>
          `no copy of shard ${shard} could be made at ${member}, ${full === true ? 'which lacks memory for it' : 'whose log says why'}: that of ${id} stays meanwhile`,
      ),
    ),
  ];
}

/** Why a drained server cannot be removed, whether it may be stopped, and what to do; undefined: it has no copy. */
export function stayText(status: ClusterStatus, id: string): string | undefined {
  const shards = stuck(status, id);
  if (shards.length === 0) return undefined;
  const places = keepers(status).length;
  const why = whyNotStopped(status, id);
  const stop =
    why === undefined
      ? `${id} may be stopped: the owners have all values, in fewer copies`
      : `${id} may not be stopped: ${why}`;
  const makes =
    places === 0 ? 'add a server (farkv server --join), or keep a drained one (farkv drain SERVER --undo)' : undefined;
  const wanted = [...new Set(shards.map(({ copies }) => copies?.wanted ?? 0))];
  const fewer = [...new Set(shards.map((shard) => fewerCopies(tenantOf(status, shard), places, shard.copies)))];
  return [
    `${id} owns no shards and gets none, but the copies of ${numbers(shards)} stay there: ${list(wanted)} copies of each value are wanted, and ${places === 1 ? 'one other server keeps' : `${places} other servers keep`} values`,
    stop,
    `to remove it, ${makes ?? `add a server (farkv server --join) or want fewer copies (${fewer.join('; ')})`}, then farkv drain ${id} again`,
  ].join('; ');
}

function tenantOf({ tenants }: ClusterStatus, { shard }: ShardStatus): string | undefined {
  return tenants?.find((one) => shard >= one.firstShard && shard < one.firstShard + one.shards)?.name;
}
