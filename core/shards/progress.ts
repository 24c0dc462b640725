/**
 * The copies of a shard beside its owner's, at the owner: which of them are in sync is proposed from here, and what the
 * metadata says of them is told to the data plane, which waits for them.
 *
 * The data plane is told every config in the order in which this server has applied them. What it promises of a copy it
 * promises in the config that it was told last: so a copy is proposed in the config in which it was required, and is
 * required again in the next. The data plane goes on waiting for one that it was not done with.
 */
import { COPIES_MAX } from '../metadata/check-state.js';
import type { RemovedCopy } from '../metadata/copy-commands.js';
import { surplusCopy } from '../metadata/copy-policy.js';
import { isMarked, policyOf } from '../metadata/copy-sets.js';
import type { Copy, CopySet, Shard } from '../metadata/state.js';
import type { Request, ProgressEvent, CopiesNow, Result } from './actions.js';
import { forgetLate, backsOff, isWanted, countLate } from './rejoin-backoff.js';
import { isDurable, ownSet, type ShardContext } from './context.js';
import { isBeforeServing, type Progress, type Owned } from './local-shard.js';

const REST_MS = 100;
/** A copy that could not be required so many times is to begin anew. */
const ATTEMPTS = 20;
/** The metadata of an owner that is late has a copy's name after this time. */
const UNNAMED_MS = 10_000;

export function copiesNow(c: Pick<ShardContext, 'metadata'>, s: Shard, set: CopySet): CopiesNow {
  // The data plane has so many places.
  const ids = (state: Copy['state']): string[] =>
    set.copies
      .flatMap((copy) => (copy.state === state && copy.member !== s.owner ? (copy.id ?? []) : []))
      .slice(0, COPIES_MAX - 1);
  return {
    config: set.config,
    // It waits for marked copies, which do not count.
    minInSync: policyOf(c.metadata, s.shard).minInSync + set.copies.filter(isMarked).length,
    alone: policyOf(c.metadata, s.shard).replicas === 1,
    handed: set.handed === s.epoch,
    inSync: ids('in-sync'),
    eligible: ids('eligible'),
    joining: ids('joining'),
  };
}

/** To be called when the metadata or the shard has changed, of one that is open here and this server's. */
export function advanceCopies(c: ShardContext, local: Owned): void {
  const set = ownSet(c, local);
  if (set === undefined) return;
  configure(c, local, set);
  if (local.copies.config !== set.config) return;
  for (const one of local.copies.known.values()) advance(c, local, set, one);
  removeMarked(c, local, set);
  removeLate(c, local, set);
  removeSurplus(c, local, set);
}

function configure(c: ShardContext, local: Owned, set: CopySet): void {
  const { copies, shard, epoch } = local;
  const s = c.metadata.shards[shard];
  // What was opened empty is a copy of the set when the metadata has its regions.
  if (s === undefined || (copies.config === undefined && s.incarnation !== local.incarnation)) return;
  if (copies.config !== undefined && copies.config >= set.config) return; // mutation: shards/config-untold
  copies.config = set.config;
  const now = copiesNow(c, s, set);
  c.askFor(local, copies, { do: 'configure', shard, epoch, copies: now });
  // Its server has begun anew, or has started again: nobody comes for its place.
  const isGone = (id: string): boolean => !copies.known.has(id) && set.copies.every((copy) => copy.id !== id);
  for (const copy of copies.joining.filter(isGone)) c.askFor(local, copies, { do: 'drop', shard, copy });
  copies.joining = now.joining;
}

function advance(c: ShardContext, local: Owned, set: CopySet, one: Progress): void {
  const { shard, copies } = local;
  const copy = set.copies.find((entry) => entry.id === one.id);
  if (copy === undefined) {
    if (!one.named) return;
    forget(c, local, one);
    return;
  }
  one.named = true;
  const { state } = one;
  if (copy.state === 'in-sync') {
    one.joins = 'no';
    if (state.is === 'idle') return;
    one.state = { is: 'idle' };
    one.attempts = 0;
    const inSync = set.copies.filter((entry) => entry.state === 'in-sync' || entry.member === c.memberId).length;
    c.act({ do: 'note', note: { of: 'copy in sync', shard, member: copy.member, inSync } });
  } else if (copy.state === 'joining' && one.joins !== 'yes') {
    // It was removed, and comes back: the data plane says when.
    if (one.joins === 'no') Object.assign(one, { joins: 'when back', late: false, told: false, attempts: 0 });
    one.state = { is: 'idle' };
  } else if (mayAdvance(c, local, set, state)) {
    if (one.late || !mayRequire(c, local, set)) one.state = { is: 'idle' };
    else if (!backsOff(c, local, set, one, copy)) require(c, local, one, set.config);
  } else if (state.is === 'proposing' && !state.busy && !one.late) {
    state.busy = true;
    copies.lsn = state.lsn;
    const { member, start, worker } = copy;
    const about = { member, start, copy: one.id, worker, lsn: state.lsn };
    const command = { t: 'copies-in-sync', ...names(local, state.config), ...by(c), ...about } as const;
    c.askFor(local, state, { do: 'propose', command });
  }
}

/** Nothing is under way of it that holds in this config. */
function mayAdvance(c: ShardContext, local: Owned, set: CopySet, state: Progress['state']): boolean {
  if (state.is === 'held back') return isWanted(c, local, set);
  return state.is === 'idle' || ('config' in state && state.config !== set.config);
}

/** A copy that were added earlier could be promoted without the waits that its owner still has. */
function mayRequire(c: ShardContext, local: Owned, set: CopySet): boolean {
  // mutation: shards/required-while-relied-on
  return !isBeforeServing(local.state) || (c.leasesOver && isOwnNew(c, local, set));
}

/** It was opened empty, and never served: nobody has seen anything of it. */
export function isOwnNew({ memberId }: ShardContext, { incarnation }: Owned, { copies }: CopySet): boolean {
  return copies.some((copy) => copy.member === memberId && copy.id === incarnation && copy.state === 'joining');
}

/** The owner's own copy of a new shard counts from now on: it is about to be served. */
export function countOwn(c: ShardContext, local: Owned, { config }: CopySet): void {
  const { shard, incarnation: copy } = local;
  const worker = c.metadata.shards[shard]?.worker ?? 0;
  const about = { member: c.memberId, start: c.memberIncarnation, copy, worker, lsn: 0 };
  c.ask(local, { do: 'propose', command: { t: 'copies-in-sync', ...names(local, config), ...by(c), ...about } });
}

function require(c: ShardContext, local: Owned, one: Progress, config: number): void {
  one.state = { is: 'requiring', config };
  c.askFor(local, one.state, { do: 'require', shard: local.shard, copy: one.id });
}

/** It follows nobody, and changes wait for it: it is to begin anew at once. */
function removeMarked(c: ShardContext, local: Owned, set: CopySet): void {
  const { copies, shard } = local;
  const copy = set.copies.find((entry) => isMarked(entry) && entry.member !== c.memberId);
  if (copies.busy || copy === undefined) return;
  c.act({ do: 'note', note: { of: 'copy marked', shard, member: copy.member } });
  takeAway(c, local, set, copy, { whole: false });
}

/** One too many of a durable shard; of others the leader takes it away. */
function removeSurplus(c: ShardContext, local: Owned, set: CopySet): void {
  const s = c.metadata.shards[local.shard];
  if (local.copies.busy || s === undefined || isBeforeServing(local.state)) return;
  const copy = surplusCopy(c.metadata, s, set);
  if (copy !== undefined) takeAway(c, local, set, copy, { whole: false, surplus: true });
}

/**
 * What was answered may be on no disk yet, but in this copy's memory: so it is to be on the owner's disk first, and
 * nothing else is answered in this config (R-removal).
 */
function takeAway(
  c: ShardContext,
  local: Owned,
  set: CopySet,
  { member, start }: Copy,
  how: Pick<RemovedCopy, 'whole' | 'surplus' | 'failed'>,
): void {
  const { copies, shard } = local;
  const leaving = { ...names(local, set.config), member, start, ...how, lsn: copies.lsn };
  copies.busy = true;
  copies.leaving = leaving;
  if (isDurable(c, shard)) c.askFor(local, leaving, { do: 'rely on disk', shard });
  else proposeRemoval(c, local, leaving);
}

function proposeRemoval(c: ShardContext, local: Owned, leaving: RemovedCopy): void {
  c.askFor(local, local.copies, { do: 'propose', command: { t: 'copies-removed', by: by(c), copies: [leaving] } });
}

/** The owner's disk has all, as long as its config is that one. */
function relied(c: ShardContext, local: Owned, leaving: RemovedCopy, failed: boolean): void {
  const { copies } = local;
  if (failed) c.askFor(local, leaving, { do: 'wait', ms: REST_MS });
  else if (copies.config === leaving.config) proposeRemoval(c, local, leaving);
  else copies.busy = false;
}

/** A late copy is taken out of the way of changes; an addition of it that may still come is made impossible. */
function removeLate(c: ShardContext, local: Owned, set: CopySet): void {
  const { copies, shard } = local;
  const one = [...copies.known.values()].find((k) => k.late && isWaitedFor(set, k));
  const copy = set.copies.find((entry) => entry.id === one?.id);
  if (copies.busy || one === undefined || copy === undefined) return;
  const name = names(local, set.config);
  const { member } = copy;
  if (copy.state === 'eligible') {
    copies.busy = true;
    c.askFor(local, copies, { do: 'propose', command: { t: 'copies-keep', ...name, ...by(c) } });
    return;
  }
  const inSync = set.copies.filter((entry) => entry.state === 'in-sync' && entry !== copy).length;
  const { minInSync } = policyOf(c.metadata, shard);
  if (!one.told) {
    c.act({ do: 'note', note: { of: 'copy late', shard, member, inSync, minInSync } });
    countLate(c, local, member);
  }
  one.told = true;
  const failed = one.attempts >= ATTEMPTS ? ({ failed: true } as const) : {};
  takeAway(c, local, set, copy, { whole: copies.whole, ...failed });
}

function isWaitedFor(set: CopySet, { id, state }: Progress): boolean {
  const copy = set.copies.find((entry) => entry.id === id);
  return copy !== undefined && (copy.state !== 'eligible' || state.is === 'proposing');
}

function names({ shard, epoch }: Owned, config: number): { shard: number; epoch: number; config: number } {
  return { shard, epoch, config };
}

function by({ memberId, memberIncarnation }: ShardContext): { owner: string; memberIncarnation: string } {
  return { owner: memberId, memberIncarnation };
}

/** The data plane need not know it any more. */
function forget(c: ShardContext, local: Owned, one: Progress): void {
  const { shard, copies } = local;
  copies.known.delete(one.id);
  c.askFor(local, one, { do: 'drop', shard, copy: one.id });
}

/** The data plane has noticed something of a copy. */
export function copyNoticed(c: ShardContext, local: Owned, id: string, what: ProgressEvent): void {
  const { known } = local.copies;
  if (what === 'refused') {
    refused(c, local, id);
    return;
  }
  let one = known.get(id);
  if (one === undefined) {
    const nothing = { named: false, late: false, told: false, probe: undefined, attempts: 0, heldBack: 0 };
    one = { id, ...nothing, joins: 'yes', state: { is: 'idle' } };
    known.set(id, one);
    c.askFor(local, one, { do: 'wait', ms: UNNAMED_MS });
  }
  if (what === 'unlinked') {
    probe(c, local, one);
    return;
  }
  // That was sent before the data plane had the config by which this copy joins again, and is about the time before.
  if (what === 'late' && one.joins === 'when back') return;
  one.late = what === 'late';
  one.told &&= one.late;
  // Whatever was proposed of it before, it begins anew as one that joins.
  if (what === 'joined') Object.assign(one, { joins: 'yes', state: { is: 'idle' } });
  advanceCopies(c, local);
}

/**
 * It asked to follow and had to be refused. One that joins begins anew by itself, but an eligible one is kept by the
 * metadata until its owner says otherwise, and changes would be refused for as long.
 */
function refused(c: ShardContext, local: Owned, id: string): void {
  const { copies, shard } = local;
  const set = ownSet(c, local);
  const copy = set?.copies.find((entry) => entry.id === id);
  if (set === undefined || copy?.state !== 'eligible' || copies.config !== set.config || copies.busy) return;
  c.act({ do: 'note', note: { of: 'copy refused', shard, member: copy.member } });
  takeAway(c, local, set, copy, { whole: false });
}

/** One whose server has ended is late at once: until it is removed, changes wait, and soon reads too. */
function probe(c: ShardContext, local: Owned, one: Progress): void {
  const copy = ownSet(c, local)?.copies.find((entry) => entry.id === one.id);
  const server = copy === undefined ? undefined : c.metadata.members.get(copy.member);
  if (server === undefined || one.probe !== undefined) return;
  one.probe = {};
  c.askFor(local, one.probe, { do: 'probe', shard: local.shard, server });
}

/** What was asked for is done: `part` is what askFor was told. */
export function copiesDone(c: ShardContext, local: Owned, part: object, did: Request['do'], result: Result): void {
  const { copies } = local;
  const { failed } = result;
  if (part === copies) {
    if (did === 'configure' && failed !== undefined && ownSet(c, local) !== undefined)
      c.act({ do: 'fail', shard: local.shard, what: 'served', error: failed.error });
    if (did === 'propose') copies.busy = false;
  }
  if (part === copies.leaving) {
    if (did === 'wait') copies.busy = false;
    else relied(c, local, copies.leaving, failed !== undefined);
  }
  if (did === 'wait') forgetLate(local, part);
  for (const one of [...copies.known.values()]) partDone(c, local, one, part, did, result);
  advanceCopies(c, local);
}

function partDone(
  c: ShardContext,
  local: Owned,
  one: Progress,
  part: object,
  did: Request['do'],
  result: Result,
): void {
  const { state } = one;
  if (part === one && did === 'wait' && !one.named) forget(c, local, one);
  if (part === one.probe) {
    one.probe = undefined;
    one.late ||= result.failed !== undefined && one.joins !== 'when back';
  }
  if (part !== state) return;
  switch (state.is) {
    case 'requiring':
      if (result.failed === undefined) required(local, one, state.config, result.lsn ?? 0);
      else notRequired(c, local, one);
      return;
    case 'proposing':
      state.busy = false;
      return;
    case 'held back':
      one.heldBack = state.times;
      one.state = { is: 'idle' };
      return;
    case 'resting':
      one.state = { is: 'idle' };
      return;
    case 'idle':
  }
}

/** What the data plane said holds in the config that it had then: was it told a later one, it is asked again. */
function required(local: Owned, one: Progress, config: number, lsn: number): void {
  one.state = local.copies.config === config ? { is: 'proposing', config, lsn, busy: false } : { is: 'idle' };
}

function notRequired(c: ShardContext, local: Owned, one: Progress): void {
  one.attempts++;
  if (one.attempts >= ATTEMPTS) one.late = true;
  one.state = { is: 'resting' };
  c.askFor(local, one.state, { do: 'wait', ms: REST_MS });
}
