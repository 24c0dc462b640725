/**
 * What an operator gives up with a shard that waits for copies which do not come back, and the command that does it
 * (docs/copy-sets.md); and what the leader gives up by itself, since the policy accepts it. Decided by the leader: it alone
 * knows who is dead. Not for: shards that dead owners have (leader-policy.ts).
 */
import { FarkvError } from '../errors.js';
import type { ShardReset } from './copy-commands.js';
import { alreadyWithheld } from './counted-dead.js';
import { isMarked, isRenounced, isUnassigned, isWhole, mayCome, mayLead, policyOf, waitsOnLoss } from './copy-sets.js';
import { usable } from './leader-policy.js';
import type { GrantedLeases } from './owner-leases.js';
import { placeOn } from './plan.js';
import type { Copy, CopySet, MetadataState, Shard } from './state.js';

/** `from`: the server whose copy, which may lack changes, becomes the owner's; undefined: the shard is served empty. */
export interface ResetAsked {
  readonly shard: number;
  readonly from?: string;
}

export interface Reset {
  readonly command: ShardReset;
  /** The copies that are given up, with all that was acknowledged. */
  readonly lost: readonly Copy[];
}

/** Throws ERR_CONFIG for what can never be, and ERR_BUSY with the reason while the shard may get its values back. */
export function planReset(state: MetadataState, asked: ResetAsked, leases: GrantedLeases, nowMs: number): Reset {
  const { shard, from } = asked;
  const [s, set] = [state.shards[shard], state.copySets[shard]];
  if (s === undefined || set === undefined)
    throw new FarkvError('ERR_CONFIG', `there is no shard ${shard}; there are ${state.shards.length}`);
  const refusal = hope(state, s, set, leases, nowMs, from);
  if (refusal !== undefined) throw new FarkvError('ERR_BUSY', refusal);
  const lost = set.copies.filter(isWhole);
  const name = { shard, epoch: s.epoch, config: set.config };
  const ids = lost.flatMap(({ id }) => id ?? []);
  if (from !== undefined) {
    const { start, id: copy, worker } = staleCopy(state, set, shard, from, leases, nowMs);
    const given = { start, copy, worker };
    return unlessTaken(state, leases, {
      command: { t: 'shard-reset', ...name, to: from, from: given, lost: ids },
      lost,
    });
  }
  const to = placeOn(state, [shard], usable(state, leases, nowMs)).get(shard);
  if (to === undefined)
    throw new FarkvError('ERR_BUSY', 'no server can take a shard now: all are silent or being drained');
  return unlessTaken(state, leases, { command: { t: 'shard-reset', ...name, to, lost: ids }, lost });
}

/** What another entry is under way against is not taken a second time. */
function unlessTaken(state: MetadataState, leases: GrantedLeases, reset: Reset): Reset {
  const taken = alreadyWithheld(state, reset.command, leases);
  if (taken === undefined) return reset;
  throw new FarkvError('ERR_BUSY', `shards of ${taken} are being given to others: try again`);
}

/** A vacant shard that waits for nobody by its policy, while nobody who has its values is there: it is served empty. */
export function nextReset(state: MetadataState, leases: GrantedLeases, nowMs: number): ShardReset | undefined {
  for (const s of state.shards) {
    const waits = waitsOnLoss(policyOf(state, s.shard));
    if (s.owner !== undefined || s.epoch === 0 || waits || isUnassigned(state, s)) continue;
    try {
      return planReset(state, { shard: s.shard }, leases, nowMs).command;
    } catch (error) {
      if (!(error instanceof FarkvError)) throw error;
    }
  }
  return undefined;
}

/** Why the shard may yet be served with its values; undefined: nobody is left who could, and nobody is relied on. */
function hope(
  state: MetadataState,
  s: Shard,
  set: CopySet,
  leases: GrantedLeases,
  nowMs: number,
  from: string | undefined,
): string | undefined {
  const { shard, owner } = s;
  const place = `shard ${shard} is not lost`;
  if (isUnassigned(state, s)) return `${place}: it is being given to a server, which serves it empty`;
  // A marked one waits for another that may have more. Only an operator knows that it never comes.
  const waits = (c: Copy): boolean =>
    from !== undefined && isMarked(c) && !set.copies.some((one) => mayBe(state, set, one, leases, nowMs));
  const living = set.copies.find((c) => mayCome(state, c) && !leases.dead(c.member, nowMs) && !waits(c));
  if (living !== undefined)
    return living.member === owner
      ? `${place}: its owner ${owner} has not been silent for longer than its lease`
      : `${place}: the copy of ${living.member} is ${living.state}, and that server has not been silent for longer than its lease`;
  if (owner !== undefined && !leases.dead(owner, nowMs)) return `${place}: ${owner} is about to serve it`;
  const endsMs = leases.earlierStartsOverAt() - nowMs;
  // mutation: copies/reset-while-relied-on
  return owner === undefined && endsMs > 0
    ? `clients may still rely on the last owner of shard ${shard}: try again in ${Math.ceil(endsMs)} ms`
    : undefined;
}

/** The shard may be its any moment. */
function mayBe(state: MetadataState, set: CopySet, c: Copy, leases: GrantedLeases, nowMs: number): boolean {
  return mayCome(state, c) && mayLead(set, c) && !leases.dead(c.member, nowMs);
}

/**
 * A copy that joins, or is marked, at a server that answers: it has what its owner had some time before. Not one that its
 * server has given up since.
 */
function staleCopy(
  { members }: MetadataState,
  { copies }: CopySet,
  shard: number,
  from: string,
  leases: GrantedLeases,
  nowMs: number,
): Copy & { readonly id: string } {
  const open = copies.filter(
    (c): c is Copy & { readonly id: string } =>
      (!isWhole(c) || isMarked(c)) &&
      c.id !== undefined &&
      !isRenounced(c) &&
      members.get(c.member)?.incarnation === c.start &&
      leases.alive(c.member, nowMs),
  );
  const copy = open.find((c) => c.member === from);
  if (copy !== undefined) return copy;
  throw noCopy(
    shard,
    from,
    copies.find((c) => c.member === from),
    open.map((c) => c.member),
  );
}

/** `others`: servers with a copy that could be named instead, as far as it is known. */
export function noCopy(shard: number, from: string, copy: Copy | undefined, others: readonly string[]): FarkvError {
  const why = copy !== undefined && isRenounced(copy) ? ': it has given up what it had, to make the copy anew' : '';
  const next =
    others.length === 0
      ? 'no server has one: say --accept-loss without --from, and the shard is served empty'
      : `these have one: ${others.join(', ')}`;
  return new FarkvError('ERR_CONFIG', `${from} has no copy of shard ${shard} to begin with${why}; ${next}`);
}
