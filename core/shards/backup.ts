/**
 * A copy, here, of another server's shard: it is copied from its owner while that one goes on, follows what
 * changes from then on, and may become the owner's table.
 *
 * What was never followed is thrown away whenever something fails. What was may be waited for by its owner, and so may
 * be in sync any time: it is thrown away only when the metadata does not have it, or not by this name. Whoever wants to
 * begin anew therefore has the metadata name another copy first, marked as one that no table has. While nobody is there
 * whom it could follow it may be all that is left of the shard, and is kept.
 *
 * What fails is tried again later, and told. After some attempts its server calls it off: it would keep places that
 * others need, and the leader has it made elsewhere, or here later (core/metadata/join-rests.ts).
 *
 * Not for: how a copy that comes to nothing is counted and closed (copy-end.ts), nor whose turn it is to be promoted
 * (promotion.ts).
 */
import { isMarked, mayGo, policyOf } from '../metadata/copy-sets.js';
import type { Copy, Member, Shard } from '../metadata/state.js';
import type { Request, Failure } from './actions.js';
import { isMissed, isSound, KEPT_MS } from './base.js';
import { HELD_BACK_MAX_MS } from './rejoin-backoff.js';
import { isDurable, memberOwning, type ShardContext } from './context.js';
import { callOff, clear, failedOnce, gone, isOver, notCopied, pauseMs, removal } from './copy-end.js';
import { entryOf, isHeir, isOwners, mayFollow, sourceOf } from './copy-entry.js';
import { transition, type Backup, type BackupState, type Suspicion } from './local-shard.js';
import { ownerNow, promote, takeTurn } from './promotion.js';

/** A copy that follows is in sync soon, or when it is not held back any more; one that is not by then has lost its owner's attention. */
const JOINED_MS = 30_000 + HELD_BACK_MAX_MS;
/** One that was in sync, and joins again with what it has, sooner: its owner keeps what it lacks for so long. */
const REJOINED_MS = 10_000 + HELD_BACK_MAX_MS;

type At<S extends BackupState['is']> = Extract<BackupState, { is: S }>;

/** Begins anew, or for the first time. */
export function openBackup(c: ShardContext, local: Backup): void {
  const s = c.metadata.shards[local.shard];
  if (s?.owner === undefined || s.incarnation === undefined || s.owner === c.memberId) {
    c.end(local);
    return;
  }
  local.epoch = s.epoch;
  local.incarnation = c.random64();
  local.named = local.damaged = local.base = false;
  transition(local, { is: 'opening' });
  const { shard, worker, epoch, incarnation } = local;
  c.ask(local, {
    do: 'open',
    shard,
    worker,
    epoch,
    incarnation,
    memoryBytes: c.tableMemory,
    durable: isDurable(c, shard),
    buckets: s.buckets,
  });
}

/** To be called when the metadata or the copy itself has changed. */
export function advanceBackup(c: ShardContext, local: Backup): void {
  const { state } = local;
  const entry = entryOf(c, local);
  if (entry?.id === local.incarnation) local.named = true;
  switch (state.is) {
    case 'copying':
      copying(c, local, state, entry);
      return;
    case 'following':
      following(c, local, state, entry);
      return;
    case 'suspecting':
      alone(c, local, state, entry);
      return;
    case 'renouncing':
      renouncing(c, local, state, entry);
      return;
    case 'joining':
      if (entry === undefined) gone(c, local);
      else if (entry.state === 'joining' && sourceOf(c, local) === undefined) renounce(c, local);
      return;
    case 'resting':
      if (entry === undefined || sourceOf(c, local) === undefined) c.end(local);
      return;
    case 'kept':
      kept(c, local, state, entry);
      return;
    case 'calling off':
      if (entry === undefined || isOwners(c, local)) c.end(local);
      return;
    // Their results come.
    case 'opening':
    case 'clearing':
    case 'stepping down':
  }
}

/** What its state asked for is done. */
export function backupDone(c: ShardContext, local: Backup, did: Request['do'], failed: Failure | undefined): void {
  const { state } = local;
  switch (state.is) {
    case 'opening':
      if (failed !== undefined) {
        notCopied(c, local, failed, false);
        return;
      }
      transition(local, { is: 'copying', at: 'waiting', busy: false });
      break;
    case 'copying':
      if (failed !== undefined) {
        notCopied(c, local, failed, true);
        return;
      }
      state.busy = false;
      if (did === 'copy') state.at = 'telling';
      break;
    case 'joining':
      if (failed !== undefined && !isHeir(c, local)) {
        notFollowing(c, local, failed);
        return;
      }
      follow(c, local, true);
      return;
    case 'following':
      if (did === 'propose') state.removing = false;
      if (did !== 'wait') break;
      state.waits--;
      state.late = state.waits === 0;
      if (state.late) local.patienceMs = 0;
      break;
    case 'stepping down':
      if (failed === undefined) follow(c, local);
      else c.act({ do: 'fail', shard: local.shard, what: 'given up', error: failed.error });
      return;
    case 'suspecting':
      local.patienceMs = 0;
      if (state.at === 'waiting') promote(c, local, state);
      else followAgain(c, local);
      return;
    case 'renouncing':
      state.busy = false;
      break;
    case 'clearing':
      cleared(c, local, state, did, failed);
      return;
    case 'kept':
      if (state.rests) keep(c, local, false);
      else clear(c, local, 'end');
      return;
    case 'resting':
      if (entryOf(c, local) === undefined) c.end(local);
      else openBackup(c, local);
      return;
    case 'calling off':
      callOff(c, local);
      return;
  }
  advanceBackup(c, local);
}

function copying(c: ShardContext, local: Backup, state: At<'copying'>, entry: Copy | undefined): void {
  const { shard, incarnation } = local;
  const source = sourceOf(c, local);
  if (entry === undefined && local.base) gone(c, local);
  else if (entry === undefined) clear(c, local, 'end');
  // mutation: lost/named-discarded
  else if (source === undefined && local.named) renounce(c, local);
  else if (source === undefined) clear(c, local, local.base ? 'base' : 'again');
  else if (state.at === 'waiting') {
    const owner = memberOwning(c, source);
    if (source.incarnation === undefined || owner === undefined) return;
    state.at = 'copying';
    c.act({ do: 'note', note: { of: 'copy begins', shard, from: owner.id, base: local.base } });
    c.ask(local, { do: 'copy', shard, copy: incarnation, source, owner, base: local.base });
    // mutation: shards/follows-unnamed
  } else if (state.at === 'telling' && local.named) {
    transition(local, { is: 'joining' });
    c.ask(local, { do: 'follow', shard });
  } else if (state.at === 'telling' && !state.busy) {
    state.busy = true;
    name(c, local, incarnation);
  }
}

/** Under this id the metadata is to have the copy; `renounced`: what is here is about to go. */
function name(c: ShardContext, local: Backup, copy: string, renounced?: true): void {
  const { shard, worker } = local;
  const { epoch } = c.metadata.shards[shard] ?? local;
  const config = c.metadata.copySets[shard]?.config ?? 0;
  const [member, start] = [c.memberId, c.memberIncarnation];
  const mark = renounced === undefined ? {} : { renounced };
  c.ask(local, {
    do: 'propose',
    command: { t: 'copy-named', shard, epoch, config, member, start, copy, worker, ...mark },
  });
}

const FOLLOWING = {
  is: 'following',
  late: false,
  again: false,
  suspicion: undefined,
  removing: false,
} as const satisfies Partial<At<'following'>>;

function follow(c: ShardContext, local: Backup, copied = false): void {
  const { shard, epoch } = local;
  if (copied) local.full = false;
  transition(local, { ...FOLLOWING, owner: undefined, waits: 1, synced: false });
  c.act({ do: 'note', note: { of: 'copy follows', shard, epoch, copied } });
  c.ask(local, { do: 'wait', ms: JOINED_MS });
  advanceBackup(c, local);
}

/** It was found on the disk, and the metadata has it as a copy of this start. */
export function comeBack(c: ShardContext, local: Backup, { state }: Copy): void {
  const joins = state === 'joining';
  transition(local, { ...FOLLOWING, owner: '', waits: 1, again: joins, synced: !joins });
  c.act({ do: 'note', note: { of: 'copy is back', shard: local.shard } });
  c.ask(local, { do: 'wait', ms: REJOINED_MS });
  advanceBackup(c, local);
}

/** It was found on the disk, and the metadata has it no more. */
export function discardBackup(c: ShardContext, local: Backup): void {
  c.act({ do: 'note', note: { of: 'copy discarded', shard: local.shard } });
  gone(c, local);
}

function following(c: ShardContext, local: Backup, state: At<'following'>, entry: Copy | undefined): void {
  const { shard, epoch } = local;
  if (entry === undefined) {
    c.act({ do: 'note', note: { of: 'copy removed', shard } });
    gone(c, local);
    return;
  }
  if (isHeir(c, local)) {
    c.heir(local);
    return;
  }
  // With the next epoch on its disk it would count as a longer log than one that has what it lacks.
  if (isMarked(entry)) return; // mutation: marked/marked-follows
  if (entry.state === 'joining' && state.synced) {
    state.again = true;
    state.late = false;
    state.waits++;
    c.ask(local, { do: 'wait', ms: REJOINED_MS });
    if (mayFollow(c, local) && !local.damaged) c.act({ do: 'note', note: { of: 'copy joins again', shard } });
  }
  state.synced = entry.state !== 'joining';
  const isHopeless = local.damaged || local.full || (!isLast(c, local, state) && (!mayFollow(c, local) || state.late));
  if (entry.state === 'joining' && isHopeless) {
    // All copies of this server may have been away: the leader has them made anew, a few at a time.
    if (!state.again) {
      // Its first owner is there: it should have been in sync. What is full has been counted.
      if (!local.full && sourceOf(c, local) !== undefined)
        failedOnce(c, local, {
          full: false,
          error: local.damaged ? 'it is not what its owner has' : 'it follows its owner, and does not get in sync',
        });
      renounce(c, local);
    } else if (!state.removing) remove(c, local, state, entry);
  } else {
    const s = c.metadata.shards[shard];
    if (entry.state !== 'joining') {
      local.attempts = 0;
      state.again = false;
      // The owner of this epoch waits for it: what that one lets go of may join again.
      if (entry.state === 'in-sync' && s?.owner !== undefined) local.epoch = s.epoch;
    }
    const owner = s === undefined ? undefined : memberOwning(c, s);
    if (s !== undefined && owner !== undefined) {
      const key = ownerKey(s, owner);
      // Until its first owner is replaced, it follows that one already.
      const isSame = key === state.owner || (state.owner === undefined && s.epoch === epoch);
      state.owner = key;
      if (!isSame) {
        state.suspicion = undefined;
        c.ask(local, { do: 'follow owner', shard, source: s });
      }
    }
    if (!state.removing && wantsOut(c, local, entry)) remove(c, local, state, entry);
    else if (state.suspicion !== undefined && entry.state === 'in-sync' && !local.damaged)
      takeTurn(c, local, state.suspicion, entry);
  }
}

/**
 * Nobody is there who has more: an operator may want the shard with this copy (core/metadata/shard-loss.ts), so it is
 * kept as it is until somebody owns the shard again.
 */
function isLast(c: ShardContext, { shard, epoch }: Backup, { owner: followed, suspicion }: At<'following'>): boolean {
  const s = c.metadata.shards[shard];
  const owner = s === undefined ? undefined : memberOwning(c, s);
  if (s === undefined || owner === undefined) return true; // mutation: lost/vacant-discarded
  // That was said of the owner that it follows.
  const isSame = followed === undefined ? s.epoch === epoch : followed === ownerKey(s, owner);
  return isSame && suspicion !== undefined; // mutation: lost/suspicion-discarded
}

/** What ends for good, or is damaged or full, is waited for by nobody, as soon as it may go. */
function wantsOut(c: ShardContext, { shard, damaged, full }: Backup, entry: Copy): boolean {
  const s = c.metadata.shards[shard];
  const copies = c.metadata.copySets[shard]?.copies;
  if (s === undefined || copies === undefined) return false;
  if (!damaged && !full && !(c.leaving && !isDurable(c, shard))) return false;
  return mayGo(s, copies, entry, policyOf(c.metadata, shard), damaged); // mutation: shards/full-discarded
}

/** It goes on until the metadata has it no more. */
function remove(c: ShardContext, local: Backup, state: At<'following'>, entry: Copy): void {
  state.removing = true;
  c.ask(local, {
    do: 'propose',
    command: removal(c, local, entry, local.damaged ? { damaged: true } : isOver(local) ? { failed: true } : {}),
  });
}

/** With the epoch: an owner that was replaced and is back has let go of all that followed it. */
function ownerKey({ worker, epoch }: Shard, { id, incarnation }: Member): string {
  return [id, incarnation, worker, epoch].join('/'); // mutation: shards/follows-by-name
}

/** The data plane says that the owner is gone. That is a suspicion: the owner may serve for as long as it has leases. */
export function ownerSuspected(c: ShardContext, local: Backup, suspicion: Suspicion | undefined): void {
  const { state } = local;
  if (state.is === 'suspecting' && state.at === 'waiting' && suspicion === undefined) follow(c, local);
  if (state.is !== 'following') return;
  state.suspicion = suspicion;
  advanceBackup(c, local);
}

/**
 * It is none: damaged, it acknowledges nothing any more; unknown to its owner, it gets nothing. If it joins, it begins
 * anew. What is damaged and in sync, or eligible, has itself removed unless nobody else has the values: until it
 * is made anew changes may find too few copies. What is full has all that was ever acknowledged, so it has itself removed
 * only where enough others are in sync.
 */
export function isNone(c: ShardContext, local: Backup, what: 'damaged' | 'unknown' | 'full'): void {
  const { shard, state } = local;
  if (what === 'damaged') {
    local.damaged = true;
    c.act({ do: 'note', note: { of: 'copy damaged', shard, epoch: c.metadata.shards[shard]?.epoch ?? 0 } });
  }
  const joins = entryOf(c, local)?.state === 'joining';
  if (what === 'full') {
    local.full = true;
    if (joins) failedOnce(c, local, { full: true, error: 'a change of its owner did not fit' });
    else c.act({ do: 'note', note: { of: 'copy full', shard } });
  }
  if (state.is !== 'following') return;
  if (what === 'unknown') {
    if (!joins) return;
    state.late = true;
    // It is there, and says so.
    state.suspicion = undefined;
  }
  advanceBackup(c, local);
}

function alone(c: ShardContext, local: Backup, state: At<'suspecting'>, entry: Copy | undefined): void {
  if (entry === undefined) gone(c, local);
  else if (isHeir(c, local)) c.heir(local);
  else if (entry.state !== 'in-sync' || ownerNow(c, local) !== state.owner) followAgain(c, local);
}

/** If the owner is there, or another one, it follows; if not, the data plane says so again. */
function followAgain(c: ShardContext, local: Backup): void {
  transition(local, { ...FOLLOWING, owner: '', waits: 0, synced: true });
  advanceBackup(c, local);
}

function renounce(c: ShardContext, local: Backup): void {
  transition(local, { is: 'renouncing', name: c.random64(), busy: false });
  advanceBackup(c, local);
}

/** As long as the metadata has it by its name, it may be in sync any time; then it is one. */
function renouncing(c: ShardContext, local: Backup, state: At<'renouncing'>, entry: Copy | undefined): void {
  const isNamed = entry?.id === local.incarnation;
  if (!isNamed) clear(c, local, isSound(local) ? 'base' : 'again');
  else if (entry.state !== 'joining') follow(c, local);
  else if (!state.busy) {
    state.busy = true;
    name(c, local, state.name, true); // mutation: lost/given-up-counts
  }
}

/** Its owner may know it, and wait for it. */
function notFollowing(c: ShardContext, local: Backup, failed: Failure): void {
  failedOnce(c, local, failed);
  renounce(c, local); // mutation: shards/followed-discarded
}

function cleared(
  c: ShardContext,
  local: Backup,
  state: At<'clearing'>,
  did: Request['do'],
  failed: Failure | undefined,
): void {
  const { shard } = local;
  if (did === 'stop' && state.open && state.then === 'base') {
    state.at = 'keeping';
    local.incarnation = c.random64();
    local.named = false;
    c.ask(local, { do: 'keep base', shard, copy: local.incarnation });
    return;
  }
  if (did === 'keep base' && failed === undefined) {
    local.base = true;
    c.act({ do: 'note', note: { of: 'copy kept', shard } });
    keep(c, local, local.attempts > 0);
    return;
  }
  if (did !== 'close' && state.open) {
    state.at = 'closing';
    c.ask(local, { do: 'close', shard });
    return;
  }
  // What the metadata has by this name is gone for good: what comes is another copy.
  local.named = false;
  if (state.then === 'end' || local.attempts === 0 || entryOf(c, local) === undefined || isOwners(c, local)) {
    c.end(local);
    return;
  }
  if (isOver(local)) {
    callOff(c, local);
    return;
  }
  transition(local, { is: 'resting' });
  c.ask(local, { do: 'wait', ms: pauseMs(local) });
}

/** Until the copy is wanted, and the pause after the last attempt is over. */
function keep(c: ShardContext, local: Backup, rests: boolean): void {
  transition(local, { is: 'kept', rests });
  c.ask(local, { do: 'wait', ms: rests ? pauseMs(local) : KEPT_MS });
  advanceBackup(c, local);
}

function kept(c: ShardContext, local: Backup, { rests }: At<'kept'>, entry: Copy | undefined): void {
  const s = c.metadata.shards[local.shard];
  if (entry === undefined || s?.owner === c.memberId) {
    if (!isMissed(c, local)) clear(c, local, 'end');
    return;
  }
  if (rests || s?.owner === undefined || s.incarnation === undefined) return;
  local.epoch = s.epoch;
  transition(local, { is: 'copying', at: 'waiting', busy: false });
  advanceBackup(c, local);
}

/** This server ends: what is copied into is no more. */
export function endBackup(c: ShardContext, local: Backup): void {
  const { is } = local.state;
  if (is === 'copying' || is === 'joining') c.ask(local, { do: 'stop', shard: local.shard });
}
