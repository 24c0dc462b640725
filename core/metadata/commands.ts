/**
 * The commands that change the metadata: entries of the replicated log. Written by one version of farkv and applied by
 * another, so each carries its format and is refused, not guessed at, when this version does not know it.
 *
 * (proposer, sequence) names a command: a proposer that got no answer proposes the same bytes again, and the second
 * copy in the log changes nothing. A proposer is one start of one server: 64 random bits.
 */
import { FarkvError } from '../errors.js';
import {
  boolean,
  fields,
  hex128,
  hex256,
  hex64,
  list,
  literal,
  maybe,
  oneOf,
  record,
  uint,
} from '../protocol/check.js';
import { COMMAND_LIMITS } from '../protocol/limits.js';
import { decodeValue, encodeValue } from '../protocol/value.js';
import {
  checkPolicy,
  checkAddresses,
  wallMs,
  checkFabricAddresses,
  checkLeaseTerms,
  checkRegions,
  checkTenants,
  configNumber,
  deviceNumber,
  epochNumber,
  lsnNumber,
  workerNumber,
  layoutNumber,
  memberId,
  MEMBERS_MAX,
  raftNumber,
  REGIONS_MAX,
  shardNumber,
  SHARDS_MAX,
  votersMax,
  zoneName,
} from './check-state.js';
import { copyCommandChecks, type CopyCommand } from './copy-commands.js';
import { FORMAT_NEWEST, formatOf, laterVersion } from './format.js';
import type { FabricAddress, LeaseTerms, Policy, Recovered, Region, Tenant } from './state.js';
import { PROVIDERS } from '../providers.js';

/** Changes that one proposer may have unanswered; see Window in machine.ts. */
export const PROPOSALS_MAX = 64;

/** The first one wins and makes the cluster; later ones are refused. */
export interface Bootstrap {
  readonly t: 'bootstrap';
  readonly clusterId: string;
  readonly hashSeed: string;
  readonly ticketSecret: string;
  /** By the leader's wall clock; from then on the secret's age counts. */
  readonly madeMs?: number;
  /** Of all tenants. */
  readonly shards: number;
  /** The first servers. All of them vote. */
  readonly voters: readonly string[];
  /** Later servers become voters until there are so many. */
  readonly votersMax: number;
  /** For the whole life of the cluster. */
  readonly ownerLease: LeaseTerms;
  /** Those beside the default one, where there are any. */
  readonly tenants?: readonly Tenant[];
  /** Of every tenant; missing: that of a cache. */
  readonly policy?: Policy;
}

/**
 * A server has started. `replaces` is the incarnation that the metadata has for this id (missing: none): a join that
 * was delayed past a later start of the same server no longer fits and is refused.
 */
export interface MemberJoin {
  readonly t: 'member-join';
  readonly id: string;
  readonly incarnation: string;
  readonly replaces?: string;
  readonly instance: string;
  readonly control: readonly string[];
  readonly peer?: readonly string[];
  readonly fabric: readonly FabricAddress[];
  readonly memoryBytes: number;
  readonly zone?: string;
  /** Whole copies of durable shards that this start has found on its disk. Missing: none. */
  readonly recovered?: readonly RecoveredCopy[];
}

/** A copy as its member's disk has it: its log ends with record `lsn`, of this epoch. */
export interface RecoveredCopy extends Recovered {
  readonly shard: number;
  readonly copy: string;
  readonly worker: number;
}

/** Gives every shard without an owner to a member (placement.ts). */
export interface AssignShards {
  readonly t: 'assign-shards';
  /** The map that was looked at: in a later one more may be vacant. Missing: any. */
  readonly mapEpoch?: number;
}

/** An owner has registered a shard's memory under the epoch that it was given. */
export interface ShardOpened {
  readonly t: 'shard-opened';
  readonly shard: number;
  readonly owner: string;
  readonly memberIncarnation: string;
  readonly epoch: number;
  readonly incarnation: string;
  readonly layoutEpoch: number;
  readonly buckets: number;
  readonly regions: readonly Region[];
}

export type SegmentName = Pick<Region, 'provider' | 'device' | 'kind' | 'segment'>;

/** Segments came or went since layout epoch `from`, which must be what the metadata has. */
export interface ShardLayoutChanged {
  readonly t: 'shard-layout';
  readonly shard: number;
  readonly incarnation: string;
  readonly from: number;
  readonly layoutEpoch: number;
  readonly buckets: number;
  readonly add: readonly Region[];
  readonly remove: readonly SegmentName[];
}

export interface NoOp {
  readonly t: 'no-op';
}

/**
 * Every server knows `format`: from here on it is written. Proposed by the leader itself, in the term in which the
 * servers reported it.
 */
export interface RaiseFormat {
  readonly t: 'raise-format';
  readonly format: number;
}

/**
 * A server comes to the cluster, as a learner; without an instance it is announced: its place is kept until it comes.
 */
export interface ServerAdd {
  readonly t: 'server-add';
  readonly id: string;
  readonly raftId: number;
  readonly instance?: string;
  readonly control: readonly string[];
  readonly peer?: readonly string[];
  /** The hash of the join token that it has shown, and when. */
  readonly token?: string;
  readonly atMs?: number;
}

/** A server leaves for good. It must own nothing. */
export interface ServerRemove {
  readonly t: 'server-remove';
  readonly id: string;
  readonly raftId: number;
}

/** Whether a server is to own shards. */
export interface ServerDrain {
  readonly t: 'server-drain';
  readonly id: string;
  readonly draining: boolean;
}

export interface VotersSet {
  readonly t: 'voters-set';
  readonly voters: readonly string[];
}

/** Names an owner's present hold on a shard, so that a command that comes late does not fit. */
export interface Placement {
  readonly shard: number;
  readonly epoch: number;
  readonly to: string;
}

/** `copy`: the id of the copy that is promoted; without one the shard is emptied. */
export interface TakenShard extends Placement {
  readonly config: number;
  readonly copy?: string;
}

/**
 * The lease of an owner has run out and its shards go to others: to their copies, or empty. Proposed by the leader itself and by nobody
 * else, because only the leader of the term knows that it will not renew that lease (owner-leases.ts).
 */
export interface ShardsTaken {
  readonly t: 'shards-taken';
  readonly id: string;
  readonly incarnation: string;
  readonly shards: readonly TakenShard[];
}

/** The owner is to give the shard to another member; naming the owner itself calls a move off. */
export interface ShardMove extends Placement {
  readonly t: 'shard-move';
  /** The move that is called off, or replaced (Move.planned): no other that has taken its place meanwhile. */
  readonly planned?: number;
}

export type Command =
  | Bootstrap
  | MemberJoin
  | AssignShards
  | ShardOpened
  | ShardLayoutChanged
  | NoOp
  | RaiseFormat
  | ServerAdd
  | ServerRemove
  | ServerDrain
  | VotersSet
  | ShardsTaken
  | ShardMove
  | TicketsRotate
  | TicketsRevoke
  | JoinTokenAdd
  | CopyCommand;

/** Another secret for tickets; `number` is one more than that of the present one. */
export interface TicketsRotate {
  readonly t: 'tickets-rotate';
  readonly number: number;
  readonly secret: string;
  readonly atMs: number;
}

/** Tickets of this client, or of this tenant's clients, that were made before are not good any more. */
export interface TicketsRevoke {
  readonly t: 'tickets-revoke';
  readonly client?: string;
  readonly tenant?: number;
  readonly atMs: number;
}

/** A token for one join: its SHA-256, hex. */
export interface JoinTokenAdd {
  readonly t: 'join-token-add';
  readonly hash: string;
  readonly expiresMs: number;
  readonly atMs: number;
}

export interface Proposal {
  readonly proposer: string;
  /** From 1, by one. */
  readonly sequence: number;
  readonly command: Command;
}

const checks = {
  bootstrap: record<Bootstrap>({
    t: literal('bootstrap'),
    clusterId: hex128,
    hashSeed: hex128,
    ticketSecret: hex128,
    madeMs: maybe(wallMs),
    shards: uint(SHARDS_MAX),
    voters: list(memberId, MEMBERS_MAX),
    votersMax,
    ownerLease: checkLeaseTerms,
    tenants: maybe(checkTenants),
    policy: maybe(checkPolicy),
  }),
  'member-join': record<MemberJoin>({
    t: literal('member-join'),
    id: memberId,
    incarnation: hex64,
    replaces: maybe(hex64),
    instance: hex64,
    control: checkAddresses,
    peer: maybe(checkAddresses),
    fabric: checkFabricAddresses,
    memoryBytes: uint(),
    zone: maybe(zoneName),
    recovered: maybe(
      list(
        record<RecoveredCopy>({
          shard: shardNumber,
          copy: hex64,
          worker: workerNumber,
          epoch: epochNumber,
          lsn: lsnNumber,
          early: maybe(literal(true)),
        }),
        SHARDS_MAX,
      ),
    ),
  }),
  'assign-shards': record<AssignShards>({ t: literal('assign-shards'), mapEpoch: maybe(uint()) }),
  'shard-opened': record<ShardOpened>({
    t: literal('shard-opened'),
    shard: shardNumber,
    owner: memberId,
    memberIncarnation: hex64,
    epoch: epochNumber,
    incarnation: hex64,
    layoutEpoch: layoutNumber,
    buckets: layoutNumber,
    regions: checkRegions,
  }),
  'shard-layout': record<ShardLayoutChanged>({
    t: literal('shard-layout'),
    shard: shardNumber,
    incarnation: hex64,
    from: layoutNumber,
    layoutEpoch: layoutNumber,
    buckets: layoutNumber,
    add: checkRegions,
    remove: list(
      record<SegmentName>({
        provider: oneOf(...PROVIDERS),
        device: deviceNumber,
        kind: oneOf('index', 'heap'),
        segment: uint(65_535),
      }),
      REGIONS_MAX,
    ),
  }),
  'no-op': record<NoOp>({ t: literal('no-op') }),
  'raise-format': record<RaiseFormat>({ t: literal('raise-format'), format: uint(65_535) }),
  'server-add': record<ServerAdd>({
    t: literal('server-add'),
    id: memberId,
    raftId: raftNumber,
    instance: maybe(hex64),
    control: checkAddresses,
    peer: maybe(checkAddresses),
    token: maybe(hex256),
    atMs: maybe(uint()),
  }),
  'server-remove': record<ServerRemove>({ t: literal('server-remove'), id: memberId, raftId: raftNumber }),
  'server-drain': record<ServerDrain>({ t: literal('server-drain'), id: memberId, draining: boolean }),
  'voters-set': record<VotersSet>({ t: literal('voters-set'), voters: list(memberId, MEMBERS_MAX) }),
  'shards-taken': record<ShardsTaken>({
    t: literal('shards-taken'),
    id: memberId,
    incarnation: hex64,
    shards: list(
      record<TakenShard>({
        shard: shardNumber,
        epoch: epochNumber,
        to: memberId,
        config: configNumber,
        copy: maybe(hex64),
      }),
      SHARDS_MAX,
    ),
  }),
  'shard-move': record<ShardMove>({
    t: literal('shard-move'),
    shard: shardNumber,
    epoch: epochNumber,
    to: memberId,
    planned: maybe(uint()),
  }),
  'tickets-rotate': record<TicketsRotate>({
    t: literal('tickets-rotate'),
    number: uint(0xffff_ffff),
    secret: hex128,
    atMs: wallMs,
  }),
  'tickets-revoke': record<TicketsRevoke>({
    t: literal('tickets-revoke'),
    client: maybe(hex64),
    tenant: maybe(uint(0xffff)),
    atMs: wallMs,
  }),
  'join-token-add': record<JoinTokenAdd>({
    t: literal('join-token-add'),
    hash: hex256,
    expiresMs: wallMs,
    atMs: wallMs,
  }),
  ...copyCommandChecks,
};

function isKind(kind: unknown): kind is Command['t'] {
  return typeof kind === 'string' && Object.hasOwn(checks, kind);
}

/** Throws ERR_PROTOCOL when the command is larger than an entry may be. */
export function encodeProposal(p: Proposal): Uint8Array {
  const bytes = encodeValue({
    format: formatOf(p.command),
    proposer: p.proposer,
    sequence: p.sequence,
    command: p.command,
  });
  if (bytes.length > COMMAND_LIMITS.bytes) {
    throw new FarkvError(
      'ERR_PROTOCOL',
      `a metadata change (${p.command.t}) of ${bytes.length} bytes; at most ${COMMAND_LIMITS.bytes} fit an entry`,
    );
  }
  return bytes;
}

/**
 * Throws ERR_PROTOCOL_VERSION for a format later than `known` or a kind of command that this version does not know,
 * ERR_PROTOCOL for malformed bytes. In both cases the entry must not be skipped: the server that cannot read it stops
 * applying.
 */
export function decodeProposal(bytes: Uint8Array, known = FORMAT_NEWEST): Proposal {
  const value = fields(decodeValue(bytes, COMMAND_LIMITS), 'entry');
  const format = uint()(value.format, 'entry.format');
  const command = fields(value.command, 'entry.command');
  const kind = command.t;
  // mutation: metadata/later-entry
  if (format > known || (typeof kind === 'string' && !isKind(kind)))
    throw laterVersion('an entry', format, known, typeof kind === 'string' ? kind.slice(0, 40) : 'unknown');
  if (format === 0 || !isKind(kind)) throw new FarkvError('ERR_PROTOCOL', 'malformed metadata entry');
  const proposal: Proposal = {
    proposer: hex64(value.proposer, 'entry.proposer'),
    sequence: uint()(value.sequence, 'entry.sequence'),
    command: checks[kind](command, 'entry.command'),
  };
  if (formatOf(proposal.command) > format) throw new FarkvError('ERR_PROTOCOL', 'malformed metadata entry');
  return proposal;
}
