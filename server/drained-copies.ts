/**
 * What a server that is drained still has: others take its shards and the place of its copies, where enough servers keep
 * values and have room. Where they do not, operators are told what stays, why, and what they can do.
 */
import { fewerCopies } from '../core/metadata/copy-sets.js';
import { whyNotStopped } from './safe-to-stop.js';
import { list, numbers } from './shard-words.js';
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

/** Shards that it owns, and others of which it has copies. */
function rest(status: ClusterStatus, id: string): Record<'owned' | 'copies', ShardStatus[]> {
  return {
    owned: status.shards.filter(({ owner }) => owner === id),
    copies: shardsWithCopy(status, id).filter(({ owner }) => owner !== id),
  };
}

/** At `member` no copy could be made that is to take the place of the drained server's. */
interface Failed {
  readonly shard: ShardStatus;
  readonly member: string;
  readonly full: boolean;
}

/** Also those that are being tried once more, for want of memory. */
function failed(status: ClusterStatus, id: string): Failed[] {
  return shardsWithCopy(status, id).flatMap((shard) => {
    const { copies = [], notCopied = [] } = shard.copies ?? {};
    const again = copies.filter(({ state, full }) => state === 'joining' && full === true);
    const off = notCopied.filter(({ member }) => again.every((copy) => copy.member !== member));
    return [...again, ...off].map(({ member, full }) => ({ shard, member, full: full === true }));
  });
}

/** Copies for which there are places, at servers that are away. */
function lateLines(status: ClusterStatus, id: string): string[] {
  const fixed = new Set(stuck(status, id));
  const places = keepers(status);
  const silent = places.filter(({ state }) => state !== 'up').map((m) => m.id);
  const late = rest(status, id).copies.filter(
    (one) => !fixed.has(one) && (one.copies?.wanted ?? 0) > places.length - silent.length,
  );
  if (late.length === 0) return [];
  return [
    `copies of ${numbers(late)} stay at ${id} until their place is taken at ${list(silent)}, which cannot be reached`,
  ];
}

/** What an operator can do where others cannot take what is there. */
function waysOut(status: ClusterStatus, id: string): string[] {
  const full = [...new Set(failed(status, id).flatMap((one) => (one.full ? [one.member] : [])))];
  const few = stuck(status, id);
  if (full.length + few.length === 0 && !status.moveErrors.some(({ from, calledOff }) => from === id && calledOff))
    return [];
  const more = full.length === 0 ? '' : `, start ${full.join(' or ')} again with more --memory`;
  const less =
    few.length === 0 || keepers(status).length === 0 ? '' : `, want fewer copies (${fewerText(status, few)})`;
  return [`to go on, add a server (farkv server --join)${more}${less}, or keep ${id} (farkv drain ${id} --undo)`];
}

/** While copies are waited for: what is in the way, of each by itself, so that each is told once. */
export function copyLines(status: ClusterStatus, id: string): string[] {
  return [
    ...lateLines(status, id),
    ...failed(status, id).map(
      ({ shard: { shard }, member, full }) =>
        `no copy of shard ${shard} could be made at ${member}, ${full ? 'which lacks memory for it' : 'whose log says why'}: that of ${id} stays meanwhile`,
    ),
    ...waysOut(status, id),
  ];
}

/** The same of all copies together, and which of them cannot go at all. */
function reasons(status: ClusterStatus, id: string): string[] {
  const all = failed(status, id);
  const members = [...new Set(all.map(({ member }) => member))].sort();
  const at = (member: string, full: boolean): ShardStatus[] =>
    all.filter((one) => one.member === member && one.full === full).map(({ shard }) => shard);
  const few = stuck(status, id);
  return [
    ...lateLines(status, id),
    ...members.flatMap((member) => {
      const [full, other] = [at(member, true), at(member, false)];
      return [
        ...(full.length === 0 ? [] : [`${member} has no room for ${copiesOf(full)}`]),
        ...(other.length === 0 ? [] : [`${member} could not make ${copiesOf(other)}, and its log says why`]),
      ];
    }),
    ...(few.length === 0 ? [] : [`the copies of ${numbers(few)} stay there: ${wantedText(status, few)}`]),
    ...waysOut(status, id),
  ];
}

const copiesOf = (shards: readonly ShardStatus[]): string =>
  `${shards.length === 1 ? 'a copy' : 'copies'} of ${numbers(shards)}`;

/** How far the drain of a server is, and what is in the way. Empty: nothing is left there. */
export function drainLine(status: ClusterStatus, id: string): string[] {
  const { owned, copies } = rest(status, id);
  if (owned.length + copies.length === 0) return [];
  const count = (n: number, more = ''): string => `${n}${more} ${n === 1 ? 'shard' : 'shards'}`;
  const has = [
    ...(owned.length === 0 ? [] : [`owns ${count(owned.length)}`]),
    ...(copies.length === 0 ? [] : [`has copies of ${count(copies.length, owned.length === 0 ? '' : ' other')}`]),
  ];
  return [[`${id} is being drained, and still ${has.join(' and ')}`, ...reasons(status, id)].join('; ')];
}

/** Why a drain did not end in time. */
export function restLines(status: ClusterStatus, id: string): string[] {
  const { owned, copies } = rest(status, id);
  const has = [
    ...(owned.length === 0 ? [] : [`owns ${numbers(owned)}`]),
    ...(copies.length === 0 ? [] : [`has copies of ${numbers(copies)}`]),
  ];
  const unserved = status.shards.filter(({ owner, state }) => owner !== id && state !== 'serving');
  return [
    ...(has.length === 0 ? [] : [`${id} still ${has.join(' and ')}`]),
    ...(unserved.length === 0
      ? []
      : [`${numbers(unserved)} ${unserved.length === 1 ? 'is' : 'are'} not served at present`]),
    ...reasons(status, id),
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
  return [
    `${id} owns no shards and gets none, but the copies of ${numbers(shards)} stay there: ${wantedText(status, shards)}`,
    stop,
    `to remove it, ${makes ?? `add a server (farkv server --join) or want fewer copies (${fewerText(status, shards)})`}, then farkv drain ${id} again`,
  ].join('; ');
}

/** What makes so many servers enough, for each tenant. */
function fewerText(status: ClusterStatus, shards: readonly ShardStatus[]): string {
  const places = keepers(status).length;
  return [...new Set(shards.map((shard) => fewerCopies(tenantOf(status, shard), places, shard.copies)))].join('; ');
}

function wantedText(status: ClusterStatus, shards: readonly ShardStatus[]): string {
  const places = keepers(status).length;
  const wanted = [...new Set(shards.map(({ copies }) => copies?.wanted ?? 0))];
  return `${list(wanted)} copies of each value are wanted, and ${places === 1 ? 'one other server keeps' : `${places} other servers keep`} values`;
}

function tenantOf({ tenants }: ClusterStatus, { shard }: ShardStatus): string | undefined {
  return tenants?.find((one) => shard >= one.firstShard && shard < one.firstShard + one.shards)?.name;
}
