/** What `farkv status` says of the copies of shards. */
import { FarkvError } from '../core/errors.js';
import {
  CACHE,
  inSync,
  isGone,
  isMarked,
  isToBeMade,
  isWhole,
  mayCome,
  mayLead,
  policyOf,
} from '../core/metadata/copy-sets.js';
import { failedJoins } from '../core/metadata/join-rests.js';
import { keepersExpected } from '../core/metadata/placement.js';
import type { Copy, CopySet, CopyState, MetadataState, Policy } from '../core/metadata/state.js';
import { tenantRanges } from '../core/metadata/tenants.js';

/** How a tenant's values are kept; `tenant` is missing of the default one. */
export interface ReplicationStatus extends Policy {
  readonly tenant?: string;
}

export interface CopiesStatus {
  readonly config: number;
  /** By the metadata, also where no leader is there to take out those that are away; the owner's copy among them. */
  readonly inSync: number;
  readonly wanted: number;
  readonly minInSync: number;
  readonly copies: readonly {
    readonly member: string;
    readonly state: CopyState;
    /** It was late again and again, and is not waited for yet. */
    readonly heldBack?: true;
    /** Its server lacks memory for what the owner has. */
    readonly full?: true;
    /** Its server does not answer. */
    readonly away?: true;
    /** It came back, perhaps without all that it had acknowledged (docs/early-answers.md). */
    readonly marked?: true;
  }[];
  /**
   * While copies are missing, of servers that stay: servers at which none could be made, though they and the owner are
   * there, and how often that was called off. Missing: none.
   */
  readonly notCopied?: readonly { readonly member: string; readonly times: number; readonly full?: true }[];
  /** Changes that the owner has and that are not everywhere yet. */
  readonly lag?: number;
  /**
   * degraded: fewer copies are in sync than there are to be. too few: fewer than changes need, and they are refused.
   * lost: nobody who answers has the values, or nobody who has them is the owner.
   */
  readonly trouble?: 'degraded' | 'too few' | 'lost';
  /** While no server that answers may become the owner: those that had all values, and are away or came back without. */
  readonly awaits?: readonly string[];
  /** Every server that had a copy has started again and came back without it: the shard waits for an operator. */
  readonly gone?: true;
}

export function replicationStatus(state: MetadataState): readonly ReplicationStatus[] {
  return tenantRanges(state).map(({ first }, i) => {
    const name = i === 0 ? undefined : state.tenants[i - 1]?.name;
    const { level, replicas, minInSync, onLoss } = policyOf(state, first);
    return { ...(name === undefined ? {} : { tenant: name }), level, replicas, minInSync, onLoss };
  });
}

/**
 * For operators: what the loss of a server means for values. `early`: a server answers before its disk has them, or may:
 * each has a --sync of its own.
 */
export function levelText(
  { tenant, level, replicas }: Pick<ReplicationStatus, 'tenant' | 'level' | 'replicas'>,
  early: boolean,
): string {
  const name = tenant === undefined ? '' : ` of ${tenant}`;
  if (level === 'durable')
    return `level durable: each value${name} is on ${replicas === 1 ? 'the disk of one server' : `the disks of ${replicas} servers`}${early ? '' : ' before it is answered'}, and found again after a loss of power`;
  return level === 'cache' || replicas === 1
    ? `level ${level}: each value${name} is kept by one server, and lost with it`
    : `level replicated: each value${name} is kept by ${replicas} servers, and found again when one is lost`;
}

/** What the log of a server's start says of how values are kept, also before there are copies. */
export function levelLines(state: MetadataState): string[] {
  return tenantRanges(state).map((_, i) => {
    const tenant = i === 0 ? undefined : state.tenants[i - 1]?.name;
    const policy = state.policies[i] ?? CACHE;
    const keepers = keepersExpected(state);
    const lacks =
      policy.level !== 'cache' && keepers < policy.replicas
        ? `; but ${keepers === 1 ? 'one server keeps' : `${keepers} servers keep`} values: add servers that are no witnesses`
        : '';
    return levelText({ ...policy, ...(tenant === undefined ? {} : { tenant }) }, true) + lacks;
  });
}

/**
 * Why `--level` is passed over, where it was given: it says how a new cluster keeps values, and this one has other levels.
 * Throws ERR_CONFIG for a server that is to be durable now, of a cluster that it made without disks: what it keeps would
 * be lost with it, and whoever wrote `durable` does not look for that in a log. `mayDiffer`: it keeps nothing, or came
 * to a cluster that there was.
 */
export function levelPassedOver(
  state: MetadataState,
  asked: Policy['level'] | undefined,
  mayDiffer: boolean,
): string | undefined {
  const levels = new Set(tenantRanges(state).map((_, i) => (state.policies[i] ?? CACHE).level));
  if (asked === undefined || levels.has(asked)) return undefined;
  const [first] = levels;
  const found = `this cluster has level ${[...levels].join(' and ')}`;
  const never =
    'durable it is from the beginning or never: farkv backup keeps the values, and farkv restore writes them to a new cluster';
  if (asked === 'durable' && !mayDiffer)
    throw new FarkvError(
      'ERR_CONFIG',
      `--level durable: ${found}, and ${never}. To start this server as it is, give --level what the cluster has, or leave it out`,
    );
  const help = asked === 'durable' || first === 'durable' ? never : `farkv replication set --level ${asked} changes it`;
  return `--level ${asked} is passed over: it is for a new cluster, and ${found}; ${help}`;
}

/** Undefined of shards of caches that have one copy, and are to have no other now. */
export function copiesStatus(
  state: MetadataState,
  shard: number,
  lag: number | undefined,
  answers: (id: string) => boolean,
  heldBack: readonly string[] = [],
  full: (id: string) => boolean = () => false,
): CopiesStatus | undefined {
  const of = state.shards[shard];
  const set = state.copySets[shard];
  const { level, replicas, minInSync } = policyOf(state, shard);
  if (set === undefined) return undefined;
  const notCopied = failedJoins(state, shard)
    .filter(({ member }) => isToBeMade(state, shard, member))
    .map(({ member, times }) => ({ member, times, ...(full(member) ? { full: true as const } : {}) }));
  if (level === 'cache' && set.copies.length <= 1 && notCopied.length === 0) return undefined;
  const synced = inSync(set.copies);
  const whole = set.copies.filter(isWhole);
  // A shard that was never served has no copy with anything in it, and nothing to lose.
  const isLost = of?.owner === undefined || (whole.length > 0 && !whole.some((copy) => answers(copy.member)));
  const gone = of !== undefined && isGone(state, of);
  // Of a cache nobody waits for what is lost.
  const waits = level !== 'cache';
  const awaits = isLost && waits && !gone ? awaited(state, set, answers) : [];
  const trouble =
    isLost && waits ? 'lost' : synced < minInSync ? 'too few' : synced < replicas ? 'degraded' : undefined;
  return {
    config: set.config,
    inSync: synced,
    wanted: replicas,
    minInSync,
    copies: ownersFirst(set.copies, of?.owner).map((copy) => ({
      member: copy.member,
      state: copy.state,
      ...(copy.state === 'joining' && heldBack.includes(copy.member) ? { heldBack: true } : {}),
      ...(full(copy.member) ? { full: true } : {}),
      ...(answers(copy.member) ? {} : { away: true }),
      ...(isMarked(copy) ? { marked: true } : {}),
    })),
    ...(notCopied.length === 0 ? {} : { notCopied }),
    ...(lag === undefined ? {} : { lag }),
    ...(trouble === undefined ? {} : { trouble }),
    ...(awaits.length === 0 ? {} : { awaits }),
    ...(gone ? { gone: true } : {}),
  };
}

function ownersFirst(copies: readonly Copy[], owner: string | undefined): readonly Copy[] {
  return [...copies].sort((a, b) => Number(b.member === owner) - Number(a.member === owner));
}

/** Servers of whole copies that are not there, while none that is there may lead: no time changes that. */
function awaited(state: MetadataState, set: CopySet, answers: (id: string) => boolean): string[] {
  const whole = set.copies.filter(isWhole);
  const isThere = (copy: Copy): boolean => answers(copy.member) && mayCome(state, copy);
  if (whole.some((copy) => isThere(copy) && mayLead(set, copy))) return [];
  return whole.filter((copy) => !isThere(copy)).map(({ member }) => member);
}

/** Of the copies in sync, those whose servers answer. */
export function inSyncAndThere({ inSync: all, copies }: CopiesStatus): number {
  return (
    all - copies.filter(({ state, marked, away }) => state === 'in-sync' && marked !== true && away === true).length
  );
}

export interface Place {
  readonly member: string;
  /** What keeps it from being a copy that counts: joining, late too often, full, away, not copied. Empty: nothing. */
  readonly lacks: string;
}

/** Where the copies of a shard are, and where none could be made. */
export function placesOf({ copies, notCopied = [] }: CopiesStatus): Place[] {
  const there = copies.map(({ member, state, heldBack, full, away }) => {
    const lacks =
      full === true ? 'full' : state === 'in-sync' ? undefined : heldBack === true ? 'late too often' : state;
    return { member, lacks: [...(lacks === undefined ? [] : [lacks]), ...(away === true ? ['away'] : [])].join(', ') };
  });
  const failed = notCopied
    .filter(({ member }) => copies.every((copy) => copy.member !== member))
    .map(({ member, full }) => ({ member, lacks: full === true ? 'full' : 'not copied' }));
  return [...there, ...failed];
}

/**
 * `2/2 s1 s3`, `1/2 s1 s3 (away)`, `1/2 s1 s3 (not copied) DEGRADED`: copies in sync that are there, of those that there
 * are to be; where they are, and what is wrong.
 */
export function copiesText(status: CopiesStatus | undefined): string {
  if (status === undefined) return '-';
  const { lag, trouble } = status;
  const places = placesOf(status).map(({ member, lacks }) => (lacks === '' ? member : `${member} (${lacks})`));
  const behind = lag === undefined || lag === 0 ? [] : [`lag ${lag}`];
  const said = trouble === undefined ? [] : [trouble.toUpperCase()];
  return [`${inSyncAndThere(status)}/${status.wanted}`, ...places, ...behind, ...said].join(' ');
}
