/**
 * A shard that is given to a copy of it in sync, by an owner that is drained, whose server ends, or whose shard is moved: the data plane lets
 * clients wait until nobody relies on it and the copy has all; then the metadata is asked (docs/handover.md).
 *
 * A handover that was proposed may come at any time, and its heir serves at once. So the owner goes on only in a later
 * config, for which it asks itself when it does not know what came of the handover.
 */
import { heirNamed } from '../metadata/copy-sets.js';
import type { Copy } from '../metadata/state.js';
import type { Request, Failure } from './actions.js';
import { isMissed } from './base.js';
import { isDurable, ownSet, type ShardContext } from './context.js';
import { transition, type Owned, type OwnedState } from './local-shard.js';

type Handing = Extract<OwnedState, { is: 'handing' }>;
type Named = Copy & { readonly id: string };

/** After a handover of which nothing came. */
const REST_MS = 100;

/** To whom the shard is to be given; undefined: to nobody, or nobody has it all. */
export function heirOf(c: ShardContext, local: Owned): Named | undefined {
  const set = ownSet(c, local);
  const draining = new Set(c.metadata.servers.flatMap((s) => (s.draining ? [s.id] : [])));
  if (set === undefined || local.copies.config !== set.config) return undefined;
  const leaves = c.leaving || draining.has(c.memberId);
  const to = heirNamed(c.metadata, local.shard);
  if (!leaves && to === undefined) return undefined;
  const owned = (id: string): number => c.metadata.shards.filter((s) => s.owner === id).length;
  const cost = (copy: Copy): number => (draining.has(copy.member) ? 2 ** 20 : 0) + owned(copy.member);
  return set.copies
    .filter(
      (copy): copy is Named =>
        // mutation: shards/joining-given
        copy.state === 'in-sync' &&
        copy.id !== undefined &&
        copy.member !== c.memberId &&
        (leaves || copy.member === to) &&
        (c.leaving || !draining.has(copy.member)) &&
        local.copies.known.get(copy.id)?.late !== true,
    )
    .sort((a, b) => cost(a) - cost(b) || a.rank - b.rank)[0];
}

/** It is served until the data plane has shortened its leases. */
export function beginHandover(c: ShardContext, local: Owned, { member, id }: Named): void {
  transition(local, { is: 'handing', to: member, copy: id, config: 0, at: 'handing' });
  c.act({ do: 'note', note: { of: 'hands over', shard: local.shard, to: member } });
  c.ask(local, { do: 'hand over', shard: local.shard, copy: id });
}

/** The shard is this server's as before, by what it has applied. */
export function handing(c: ShardContext, local: Owned, state: Handing): void {
  const set = ownSet(c, local);
  // mutation: shards/handover-undecided
  if ((state.at !== 'asked' && state.at !== 'keeping') || set === undefined || set.config === state.config) return;
  state.at = 'resuming';
  c.ask(local, { do: 'serve', shard: local.shard });
}

export function handingDone(c: ShardContext, local: Owned, state: Handing, did: Request['do'], failed?: Failure): void {
  const { shard, epoch } = local;
  const config = ownSet(c, local)?.config ?? 0;
  if (did === 'hand over' && failed === undefined) {
    state.config = config;
    state.at = 'asked';
    const { to, copy } = state;
    const by = { owner: c.memberId, memberIncarnation: c.memberIncarnation };
    const command = {
      shard,
      epoch,
      config,
      ...by,
      to,
      copy,
      incarnation: c.random64(),
      ends: c.leaving && !isDurable(c, shard),
    };
    c.ask(local, { do: 'propose', command: { t: 'shard-handover', ...command } });
  } else if (did === 'propose' && config === state.config) {
    state.at = 'keeping';
    const by = { owner: c.memberId, memberIncarnation: c.memberIncarnation };
    c.ask(local, { do: 'propose', command: { t: 'copies-keep', shard, epoch, config, ...by } });
  } else if (did === 'wait') {
    transition(local, { is: 'serving' });
  } else if (did === 'hand over' || did === 'serve') {
    state.at = 'resting';
    c.act({ do: 'note', note: { of: 'not handed over', shard, to: state.to } });
    c.ask(local, { do: 'wait', ms: REST_MS });
  }
}

/**
 * The shard is another's, and this server keeps what it has as a copy: its id. Where the metadata has none of it any more,
 * that is an id which nobody knows, until it is the base of another copy (base.ts).
 */
export function copyAfter(c: ShardContext, local: Owned): string | undefined {
  const { is } = local.state;
  if (is !== 'serving' && is !== 'handing') return undefined; // mutation: shards/deposed-discards
  const entry = c.metadata.copySets[local.shard]?.copies.find(
    (one) => one.member === c.memberId && one.start === c.memberIncarnation,
  );
  return entry?.id ?? (isMissed(c, local) ? c.random64() : undefined); // mutation: rejoin/owner-discarded
}
