/** What reduce*.ts share: the outcome of a command, and what closing a shard means. */
import type { ErrorCode } from '../errors.js';
import { workersOf } from './placement.js';
import { emptied, inherited, policyOf, revised, withSets } from './copy-sets.js';
import type { Copy, CopySet, Member, MetadataState, Shard } from './state.js';

export type Reduced = { readonly ok: true; readonly state: MetadataState } | Refused;
export interface Refused {
  readonly ok: false;
  readonly code: ErrorCode;
  readonly message: string;
}

export function refused(code: ErrorCode, message: string): Refused {
  return { ok: false, code, message };
}

export function changed(state: MetadataState, change: Partial<MetadataState>): Reduced {
  return { ok: true, state: { ...state, ...change, mapEpoch: state.mapEpoch + 1 } };
}

/** Closed, under a new epoch. Invariant: a shard's epoch never falls and never repeats for another incarnation. */
export function closed(s: Shard, owner: string | undefined): Shard {
  return {
    shard: s.shard,
    ...(owner === undefined ? {} : { owner }),
    worker: 0,
    epoch: s.epoch + 1,
    layoutEpoch: 0,
    buckets: 0,
    regions: [],
  };
}

/** Spreads each member's shards over its data-plane workers in turn; shards that are open stay where they are. */
export function spreadOverWorkers(shards: readonly Shard[], members: ReadonlyMap<string, Member>): Shard[] {
  const seen = new Map<string, number>();
  return shards.map((s) => {
    const member = s.owner === undefined ? undefined : members.get(s.owner);
    if (member === undefined) return s;
    const ordinal = seen.get(member.id) ?? 0;
    seen.set(member.id, ordinal + 1);
    const worker = ordinal % workersOf(member);
    return s.incarnation !== undefined || s.worker === worker ? s : { ...s, worker };
  });
}

/** The copies of shards that get new owners: of those with an heir (the copy that becomes the owner's), or of none. */
function setsOf(
  state: MetadataState,
  owners: ReadonlyMap<number, string>,
  heirs: ReadonlyMap<number, Copy>,
): Map<number, CopySet> {
  const sets = new Map<number, CopySet>();
  for (const shard of owners.keys()) {
    const [set, heir] = [state.copySets[shard], heirs.get(shard)];
    if (set === undefined) continue;
    const lastOwner = state.shards[shard]?.owner;
    sets.set(
      shard,
      heir === undefined ? emptied(set) : revised(set, inherited(set, heir, lastOwner), policyOf(state, shard)),
    );
  }
  return sets;
}

/**
 * Shards with new owners, closed under new epochs; whoever planned moves of them plans again. A closed shard that keeps its
 * epoch may be opening already, so it keeps its worker too: only what changes here is spread anew. `heirs`: copies with
 * which shards come to their owners; the others come empty.
 */
export function reassigned(
  state: MetadataState,
  owners: ReadonlyMap<number, string>,
  heirs: ReadonlyMap<number, Copy> = new Map(),
): Reduced {
  const moved = state.shards.map((s) => {
    const owner = owners.get(s.shard);
    return owner === undefined ? s : closed(s, owner);
  });
  const spread = spreadOverWorkers(moved, state.members);
  const shards = moved.map((s, i): Shard => {
    if (!owners.has(s.shard)) return s;
    const heir = heirs.get(s.shard);
    // A copy lies where its server put it.
    return heir === undefined ? (spread[i] ?? s) : { ...s, worker: heir.worker };
  });
  const moves = state.moves.filter((m) => !owners.has(m.shard));
  return changed(state, { shards, moves, ...withSets(state, setsOf(state, owners, heirs)) });
}
