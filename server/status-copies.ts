/** What `farkv status` says of the copies of shards. */
import { CACHE, inSync, isWhole, policyOf } from '../core/metadata/copy-sets.js';
import { keepersExpected } from '../core/metadata/placement.js';
import type { CopyState, MetadataState, Policy } from '../core/metadata/state.js';
import { tenantRanges } from '../core/metadata/tenants.js';
import type { ShardStatus } from './status.js';

/** How a tenant's values are kept; `tenant` is missing of the default one. */
export interface ReplicationStatus extends Policy {
  readonly tenant?: string;
}

export interface CopiesStatus {
  readonly config: number;
  /** The owner's copy among them. */
  readonly inSync: number;
  readonly wanted: number;
  readonly minInSync: number;
  readonly copies: readonly {
    readonly member: string;
    readonly state: CopyState;
    /** It was late again and again, and is not waited for yet. */
    readonly heldBack?: true;
  }[];
  /** Changes that the owner has and that are not everywhere yet. */
  readonly lag?: number;
  /**
   * degraded: fewer copies are in sync than there are to be. too few: fewer than changes need, and they are refused.
   * lost: nobody who answers has the values, or nobody who has them is the owner.
   */
  readonly trouble?: 'degraded' | 'too few' | 'lost';
}

/** Undefined in clusters of earlier formats. */
export function replicationStatus(state: MetadataState): readonly ReplicationStatus[] | undefined {
  if (state.copySets === undefined) return undefined;
  return tenantRanges(state).map(({ first }, i) => {
    const name = i === 0 ? undefined : state.tenants[i - 1]?.name;
    const { level, replicas, minInSync, onLoss } = policyOf(state, first);
    return { ...(name === undefined ? {} : { tenant: name }), level, replicas, minInSync, onLoss };
  });
}

/** For operators: what the loss of a server means for values. */
export function levelText({
  tenant,
  level,
  replicas,
}: Pick<ReplicationStatus, 'tenant' | 'level' | 'replicas'>): string {
  const name = tenant === undefined ? '' : ` of ${tenant}`;
  return level === 'cache' || replicas === 1
    ? `level ${level}: each value${name} is kept by one server, and lost with it`
    : `level replicated: each value${name} is kept by ${replicas} servers, and found again when one is lost`;
}

/** What the log of a server's start says of how values are kept, also before there are copies. */
export function levelLines(state: MetadataState): string[] {
  return tenantRanges(state).map((_, i) => {
    const tenant = i === 0 ? undefined : state.tenants[i - 1]?.name;
    const policy = state.policies?.[i] ?? CACHE;
    const later = policy.level === 'replicated' && state.copySets === undefined ? ', once all servers have come' : '';
    const keepers = keepersExpected(state);
    const lacks =
      policy.level === 'replicated' && keepers < policy.replicas
        ? `; but ${keepers === 1 ? 'one server keeps' : `${keepers} servers keep`} values: add servers that are no witnesses`
        : '';
    return levelText({ ...policy, ...(tenant === undefined ? {} : { tenant }) }) + later + lacks;
  });
}

/** Undefined of shards that have one copy and are to have no other. */
export function copiesStatus(
  state: MetadataState,
  shard: number,
  lag: number | undefined,
  answers: (id: string) => boolean,
  heldBack: readonly string[] = [],
): CopiesStatus | undefined {
  const set = state.copySets?.[shard];
  const { level, replicas, minInSync } = policyOf(state, shard);
  if (set === undefined || (level === 'cache' && set.copies.length <= 1)) return undefined;
  const synced = inSync(set.copies);
  const whole = set.copies.filter(isWhole);
  // A shard that was never served has no copy with anything in it, and nothing to lose.
  const isLost =
    state.shards[shard]?.owner === undefined || (whole.length > 0 && !whole.some((copy) => answers(copy.member)));
  const trouble = isLost ? 'lost' : synced < minInSync ? 'too few' : synced < replicas ? 'degraded' : undefined;
  return {
    config: set.config,
    inSync: synced,
    wanted: replicas,
    minInSync,
    copies: set.copies.map(({ member, state: is }) => ({
      member,
      state: is,
      ...(is === 'joining' && heldBack.includes(member) ? { heldBack: true } : {}),
    })),
    ...(lag === undefined ? {} : { lag }),
    ...(trouble === undefined ? {} : { trouble }),
  };
}

/**
 * Nobody has what was in it any more: every start that had a copy has ended (isGone of core/metadata). Of what is merely
 * LOST a server that does not answer now may still have a copy.
 */
export function isGoneNow({ owner, epoch, copies }: Pick<ShardStatus, 'owner' | 'epoch' | 'copies'>): boolean {
  return owner === undefined && epoch > 0 && copies?.copies.every(({ state }) => state === 'joining') === true;
}

/** `2/2 s1 s3`, `1/2 s1 DEGRADED`: copies in sync of those that there are to be, where they are, and what is wrong. */
export function copiesText(status: CopiesStatus | undefined): string {
  if (status === undefined) return '-';
  const { copies, lag, trouble } = status;
  const places = copies.map(({ member, state, heldBack }) =>
    state === 'in-sync' ? member : `${member} (${heldBack === true ? 'late too often' : state})`,
  );
  const behind = lag === undefined || lag === 0 ? [] : [`lag ${lag}`];
  const said = trouble === undefined ? [] : [trouble.toUpperCase()];
  return [`${status.inSync}/${status.wanted}`, ...places, ...behind, ...said].join(' ');
}
