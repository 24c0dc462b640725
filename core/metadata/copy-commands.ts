/**
 * Commands about copies of shards: who has one, and who becomes the owner with one (docs/copy-sets.md). Part of
 * commands.ts, whose rules hold.
 *
 * Each names what it was made for: the shard's epoch and config, and the starts of the members that it is about. One
 * that comes late does not fit, and is refused, whoever proposes it again. A command with a list does what fits.
 */
import { boolean, hex64, list, literal, maybe, record, uint } from '../protocol/check.js';
import {
  configNumber,
  COPIES_MAX,
  epochNumber,
  lsnNumber,
  memberId,
  MEMBERS_MAX,
  policyShape,
  rankNumber,
  shardNumber,
  SHARDS_MAX,
  workerNumber,
} from './check-state.js';
import type { Policy } from './state.js';
import { TENANTS_MAX } from './tenants.js';

/** Names a shard as it was when the command was made. */
export interface ShardName {
  readonly shard: number;
  readonly epoch: number;
  readonly config: number;
}

/** By the owner, in this start of it. */
export interface ByOwner {
  readonly owner: string;
  readonly memberIncarnation: string;
}

/** By an operator: how a tenant's values are kept from now on. */
export interface PolicySet extends Policy {
  readonly t: 'policy-set';
  readonly tenant: number;
}

export interface AddedCopy extends ShardName {
  readonly member: string;
  readonly start: string;
  readonly rank: number;
}

/** By the leader: these members are to have copies; they join. */
export interface CopiesAdd {
  readonly t: 'copies-add';
  readonly copies: readonly AddedCopy[];
}

/**
 * By a member that is to have a copy: under this id it makes it, in this worker. What it made under another id before
 * will not be in sync any more. It has all that its owner had at some time, unless it is `renounced`: then no table has
 * this id, and what had the one before is given up.
 */
export interface CopyNamed extends ShardName {
  readonly t: 'copy-named';
  readonly member: string;
  readonly start: string;
  readonly copy: string;
  readonly worker: number;
  readonly renounced?: true;
}

/**
 * By the member to which the shard came with this copy: it has no table of that id, and has opened and served nothing.
 * Its copy is gone, and the shard waits for another one, or for an operator.
 */
export interface CopyMissing extends ShardName {
  readonly t: 'copy-missing';
  readonly member: string;
  readonly start: string;
  readonly copy: string;
}

/** By the owner, which has required the copy since before it proposed this: the copy has all that was acknowledged. */
export interface CopiesInSync extends ShardName, ByOwner {
  readonly t: 'copies-in-sync';
  readonly member: string;
  readonly start: string;
  readonly copy: string;
  readonly worker: number;
  /** Up to here all is committed. */
  readonly lsn: number;
}

export interface RemovedCopy extends ShardName {
  readonly member: string;
  readonly start: string;
  /**
   * The owner's word: the copy has acknowledged, in this epoch, all that came with the shard, so that the owner can
   * commit nothing without it while there are too few copies.
   */
  readonly whole: boolean;
  /** Its member's word: it lacks something, or has something else, so it counts nowhere, however few others there are. */
  readonly damaged?: true;
  /** The owner's word: it is one too many, and is not to join again. */
  readonly surplus?: true;
  /** The copy joins, and cannot be made: it is not to be begun there again at once. */
  readonly failed?: true;
  readonly lsn: number;
}

/**
 * By the owner; or without `by` by the leader, of members that are gone or that have a copy too many, and by a member that
 * ends, or whose copy is damaged or cannot be made, of its own.
 */
export interface CopiesRemoved {
  readonly t: 'copies-removed';
  readonly by?: ByOwner;
  readonly copies: readonly RemovedCopy[];
}

/** By the owner: nothing but a new config, in which no proposal of an earlier one fits. */
export interface CopiesKeep extends ShardName, ByOwner {
  readonly t: 'copies-keep';
}

/** The copy that becomes the owner's. */
export interface Heir extends ShardName {
  readonly to: string;
  readonly copy: string;
}

/**
 * By the leader itself, in its term, when it knows that nobody relies on the last owner: shards without an owner go to
 * copies of theirs.
 */
export interface ShardsGiven {
  readonly t: 'shards-given';
  readonly shards: readonly Heir[];
}

export interface PromotedShard extends ShardName {
  readonly copy: string;
  /** Under which the shard is open from then on. */
  readonly incarnation: string;
  readonly lsn: number;
}

/** By the member of a copy in sync, which grants the owner no lease any more and serves when the last one is over. */
export interface ShardsPromoted {
  readonly t: 'shards-promoted';
  readonly id: string;
  readonly memberIncarnation: string;
  readonly shards: readonly PromotedShard[];
}

/**
 * By the owner, which has served and has paused the shard: nobody relies on it for that, and all is committed and at the
 * heir. It goes on only in a later config.
 */
export interface ShardHandover extends ByOwner, Heir {
  readonly t: 'shard-handover';
  readonly incarnation: string;
  /** Its process ends: its copy is none any more. */
  readonly ends: boolean;
}

/**
 * By the leader itself, in its term, for an operator who accepts what is lost: the shard goes to this member, with the
 * table that it names or empty. `lost`: the ids of all copies that are in sync or eligible; none of them will come back.
 */
export interface ShardReset extends ShardName {
  readonly t: 'shard-reset';
  readonly to: string;
  readonly from?: { readonly start: string; readonly copy: string; readonly worker: number };
  readonly lost: readonly string[];
}

export type CopyCommand =
  | PolicySet
  | CopiesAdd
  | CopyNamed
  | CopyMissing
  | CopiesInSync
  | CopiesRemoved
  | CopiesKeep
  | ShardsGiven
  | ShardsPromoted
  | ShardHandover
  | ShardReset;

const shardName = { shard: shardNumber, epoch: epochNumber, config: configNumber } as const;
const byOwner = { owner: memberId, memberIncarnation: hex64 } as const;
const memberStart = { member: memberId, start: hex64 } as const;
const heir = { ...shardName, to: memberId, copy: hex64 } as const;
/** Changes of one command: a shard may lose several copies. */
const CHANGES_MAX = SHARDS_MAX * COPIES_MAX;

export const copyCommandChecks = {
  'policy-set': record<PolicySet>({ t: literal('policy-set'), tenant: uint(TENANTS_MAX), ...policyShape }),
  'copies-add': record<CopiesAdd>({
    t: literal('copies-add'),
    copies: list(record<AddedCopy>({ ...shardName, ...memberStart, rank: rankNumber }), CHANGES_MAX),
  }),
  'copy-named': record<CopyNamed>({
    t: literal('copy-named'),
    ...shardName,
    ...memberStart,
    copy: hex64,
    worker: workerNumber,
    renounced: maybe(literal(true)),
  }),
  'copy-missing': record<CopyMissing>({ t: literal('copy-missing'), ...shardName, ...memberStart, copy: hex64 }),
  'copies-in-sync': record<CopiesInSync>({
    t: literal('copies-in-sync'),
    ...shardName,
    ...byOwner,
    ...memberStart,
    copy: hex64,
    worker: workerNumber,
    lsn: lsnNumber,
  }),
  'copies-removed': record<CopiesRemoved>({
    t: literal('copies-removed'),
    by: maybe(record<ByOwner>(byOwner)),
    copies: list(
      record<RemovedCopy>({
        ...shardName,
        ...memberStart,
        whole: boolean,
        damaged: maybe(literal(true)),
        surplus: maybe(literal(true)),
        failed: maybe(literal(true)),
        lsn: lsnNumber,
      }),
      CHANGES_MAX,
    ),
  }),
  'copies-keep': record<CopiesKeep>({ t: literal('copies-keep'), ...shardName, ...byOwner }),
  'shards-given': record<ShardsGiven>({ t: literal('shards-given'), shards: list(record<Heir>(heir), SHARDS_MAX) }),
  'shards-promoted': record<ShardsPromoted>({
    t: literal('shards-promoted'),
    id: memberId,
    memberIncarnation: hex64,
    shards: list(record<PromotedShard>({ ...shardName, copy: hex64, incarnation: hex64, lsn: lsnNumber }), SHARDS_MAX),
  }),
  'shard-handover': record<ShardHandover>({
    t: literal('shard-handover'),
    ...byOwner,
    ...heir,
    incarnation: hex64,
    ends: boolean,
  }),
  'shard-reset': record<ShardReset>({
    t: literal('shard-reset'),
    ...shardName,
    to: memberId,
    from: maybe(record<NonNullable<ShardReset['from']>>({ start: hex64, copy: hex64, worker: workerNumber })),
    lost: list(hex64, MEMBERS_MAX),
  }),
};
