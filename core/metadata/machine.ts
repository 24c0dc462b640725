/**
 * The replicated state machine: committed entries in, the metadata out. It is the same on every server after the same
 * entries, so it has no clock, no randomness and nothing else that could differ.
 *
 * `state` is never changed in place: whoever holds one may keep it. What commands mean stands in reduce.ts; here stand
 * their order, their reading, and that each takes effect once.
 */
import { FarkvError } from '../errors.js';
import { fromHex64, toHex64 } from '../hex64.js';
import { fields, hex128, hex256, hex64, list, maybe, pattern, record, uint, type Check } from '../protocol/check.js';
import { STATE_LIMITS } from '../protocol/limits.js';
import { decodeValue, encodeValue } from '../protocol/value.js';
import {
  checkCopySet,
  checkLeaseTerms,
  checkMember,
  checkMove,
  checkPolicy,
  checkServer,
  checkShard,
  checkTenants,
  memberId,
  MEMBERS_MAX,
  SHARDS_MAX,
  votersMax,
} from './check-state.js';
import { JOIN_TOKENS_MAX } from './join-tokens.js';
import { decodeProposal, PROPOSALS_MAX, type Proposal } from './commands.js';
import { FORMAT_NEWEST, laterVersion } from './format.js';
import { EMPTY, reduce } from './reduce.js';
import type { Refused } from './reduced.js';
import type { JoinToken, Member, MetadataState, Revocation, Shard, TicketRules } from './state.js';
import { TENANTS_MAX } from './tenants.js';
import { REVOCATIONS_MAX } from './tickets.js';

/**
 * Proposers remembered. One is added with every start of a server; a copy of its proposals must not come later than so
 * many starts.
 */
const PROPOSERS_MAX = 256;

/**
 * Which sequences of a proposer have been applied. It has at most PROPOSALS_MAX unanswered at a time, so whatever is
 * further than that below the highest one has been answered. Bit i of `seen` stands for top - i.
 */
interface Window {
  readonly top: number;
  readonly seen: bigint;
}
const WINDOW_MASK = (1n << BigInt(PROPOSALS_MAX)) - 1n;

export interface Applied {
  readonly proposal: Proposal;
  /** 'duplicate': it took effect, or was refused, with an earlier copy. */
  readonly outcome: { readonly ok: true } | Refused | 'duplicate';
}

export class MetadataMachine {
  readonly #known: number;
  #state: MetadataState = EMPTY;
  /** In order of last use. */
  readonly #proposers = new Map<string, Window>();

  /** `known`: the latest format that it reads; another than FORMAT_NEWEST stands for another version of farkv. */
  constructor(known = FORMAT_NEWEST) {
    this.#known = known;
  }

  get known(): number {
    return this.#known;
  }

  get state(): MetadataState {
    return this.#state;
  }

  /**
   * Applies one entry's bytes. Throws, and changes nothing, when the entry cannot be read (decodeProposal): the caller
   * then must not apply anything after it.
   */
  apply(bytes: Uint8Array): Applied {
    const proposal = decodeProposal(bytes, this.#known);
    if (!this.#first(proposal)) return { proposal, outcome: 'duplicate' };
    const reduced = reduce(this.#state, proposal.command);
    if (!reduced.ok) return { proposal, outcome: reduced };
    this.#state = reduced.state;
    return { proposal, outcome: { ok: true } };
  }

  #first(p: Proposal): boolean {
    const window = this.#proposers.get(p.proposer) ?? { top: 0, seen: 0n };
    const ahead = p.sequence - window.top;
    if (ahead <= -PROPOSALS_MAX) return false;
    if (ahead <= 0 && (window.seen & (1n << BigInt(-ahead))) !== 0n) return false;
    const seen =
      ahead > PROPOSALS_MAX
        ? 1n
        : ahead > 0
          ? ((window.seen << BigInt(ahead)) & WINDOW_MASK) | 1n
          : window.seen | (1n << BigInt(-ahead));
    this.#proposers.delete(p.proposer);
    this.#proposers.set(p.proposer, { top: Math.max(window.top, p.sequence), seen });
    const oldest = this.#proposers.keys().next();
    if (this.#proposers.size > PROPOSERS_MAX && oldest.done !== true) this.#proposers.delete(oldest.value);
    return true;
  }

  /**
   * Everything that the entries so far have made, to stand in their place. It holds secrets. Equal machines make equal
   * bytes: the checks that will read it also put its fields in order.
   */
  snapshot(): Uint8Array {
    const state = { ...this.#state, members: [...this.#state.members.values()] };
    return encodeValue({
      format: state.formatVersion,
      state: checkSaved(state, 'state'),
      proposers: [...this.#proposers].map(([proposer, w]) => ({ proposer, top: w.top, seen: toHex64(w.seen) })),
    });
  }

  /**
   * Throws ERR_PROTOCOL_VERSION for a snapshot of a later version, ERR_PROTOCOL for malformed bytes, and changes
   * nothing then.
   */
  restore(bytes: Uint8Array): void {
    const { saved, proposers } = this.#read(bytes);
    this.#state = { ...saved, members: new Map(saved.members.map((m) => [m.id, m])) };
    this.#proposers.clear();
    for (const p of proposers) this.#proposers.set(p.proposer, { top: p.top, seen: fromHex64(p.seen) });
  }

  /**
   * Why `apply` or `restore` would find these bytes malformed; undefined: they would not. Bytes of a later version are
   * not malformed: they stop this server where they count.
   */
  malformed(bytes: Uint8Array, as: 'entry' | 'snapshot'): string | undefined {
    try {
      if (as === 'entry') decodeProposal(bytes, this.#known);
      else this.#read(bytes);
      return undefined;
    } catch (error) {
      if (!(error instanceof FarkvError)) throw error;
      return error.code === 'ERR_PROTOCOL_VERSION' ? undefined : error.message;
    }
  }

  #read(bytes: Uint8Array): { readonly saved: Saved; readonly proposers: ReturnType<typeof checkProposers> } {
    const value = fields(decodeValue(bytes, STATE_LIMITS), 'snapshot');
    const format = uint()(value.format, 'snapshot.format');
    // mutation: metadata/later-snapshot
    if (format > this.#known) throw laterVersion('a snapshot', format, this.#known);
    const saved = checkSaved(value.state, 'snapshot.state');
    if (saved.formatVersion !== format)
      throw new FarkvError('ERR_PROTOCOL', 'malformed message: a snapshot of two formats');
    if (saved.copySets.length !== saved.shards.length)
      throw new FarkvError('ERR_PROTOCOL', 'malformed message: not a copy set for each shard');
    return { saved, proposers: checkProposers(value.proposers, 'snapshot.proposers') };
  }
}

type Saved = Omit<MetadataState, 'members'> & { readonly members: readonly Member[] };
const hexOrNone: Check<string> = pattern(/^([0-9a-f]{32})?$/, '32 hexadecimal digits or nothing');
const shardsInOrder: Check<readonly Shard[]> = (value, at) => {
  const shards = list(checkShard, SHARDS_MAX)(value, at);
  if (shards.some((s, i) => s.shard !== i))
    throw new FarkvError('ERR_PROTOCOL', 'malformed message: shards out of order');
  return shards;
};
const checkSaved = record<Saved>({
  formatVersion: uint(),
  clusterId: hexOrNone,
  mapEpoch: uint(),
  hashSeed: hexOrNone,
  ticketSecret: hexOrNone,
  voters: list(memberId, MEMBERS_MAX),
  members: list(checkMember, MEMBERS_MAX),
  shards: shardsInOrder,
  firstServers: list(memberId, MEMBERS_MAX),
  servers: list(checkServer, MEMBERS_MAX),
  votersMax,
  ownerLease: checkLeaseTerms,
  moves: list(checkMove, SHARDS_MAX),
  tenants: checkTenants,
  copySets: list(checkCopySet, SHARDS_MAX),
  policies: list(checkPolicy, TENANTS_MAX + 1),
  joinTokens: maybe(list(record<JoinToken>({ hash: hex256, expiresMs: uint() }), JOIN_TOKENS_MAX)),
  tickets: maybe(
    record<TicketRules>({
      number: uint(0xffff_ffff),
      previous: maybe(hex128),
      rotatedMs: uint(),
      revoked: list(
        record<Revocation>({ client: maybe(hex64), tenant: maybe(uint(0xffff)), beforeMs: uint() }),
        REVOCATIONS_MAX,
      ),
    }),
  ),
});
const checkProposers = list(
  record<{ proposer: string; top: number; seen: string }>({ proposer: hex64, top: uint(), seen: hex64 }),
  PROPOSERS_MAX,
);
