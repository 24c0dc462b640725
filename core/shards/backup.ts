/**
 * The life of a copy of another server's shard: it is copied from its owner while that one goes on, follows what
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
import type { Asked, Failure } from './actions.js';
import { isMissed, isSound, KEPT_MS } from './base.js';
import { HELD_BACK_MAX_MS } from './brake.js';
import { isDurable, memberOwning, type Common } from './common.js';
import { callOff, clear, failedOnce, gone, isOver, notCopied, pauseMs, removal } from './copy-end.js';
import { entryOf, isHeir, isOwners, mayFollow, sourceOf } from './copy-entry.js';
import { become, type Backup, type BackupState, type Orphan } from './life.js';
import { ownerNow, promote, takeTurn } from './promotion.js';

/** A copy that follows is in sync soon, or when it is not held back any more; one that is not by then has lost its owner's attention. */
const JOINED_MS = 30_000 + HELD_BACK_MAX_MS;
/** One that was in sync, and joins again with what it has, sooner: its owner keeps what it lacks for so long. */
const REJOINED_MS = 10_000 + HELD_BACK_MAX_MS;

type At<S extends BackupState['is']> = Extract<BackupState, { is: S }>;

/** Begins anew, or for the first time. */
export function openBackup(c: Common, life: Backup): void {
  const s = c.metadata.shards[life.shard];
  if (s?.owner === undefined || s.incarnation === undefined || s.owner === c.memberId) {
    c.end(life);
    return;
  }
  life.epoch = s.epoch;
  life.incarnation = c.random64();
  life.named = life.damaged = life.base = false;
  become(life, { is: 'opening' });
  const { shard, worker, epoch, incarnation } = life;
  c.ask(life, {
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

/** To be called when the metadata or the life itself has changed. */
export function advanceBackup(c: Common, life: Backup): void {
  const { state } = life;
  const entry = entryOf(c, life);
  if (entry?.id === life.incarnation) life.named = true;
  switch (state.is) {
    case 'copying':
      copying(c, life, state, entry);
      return;
    case 'following':
      following(c, life, state, entry);
      return;
    case 'orphaned':
      alone(c, life, state, entry);
      return;
    case 'renouncing':
      renouncing(c, life, state, entry);
      return;
    case 'joining':
      if (entry === undefined) gone(c, life);
      else if (entry.state === 'joining' && sourceOf(c, life) === undefined) renounce(c, life);
      return;
    case 'resting':
      if (entry === undefined || sourceOf(c, life) === undefined) c.end(life);
      return;
    case 'kept':
      kept(c, life, state, entry);
      return;
    case 'calling off':
      if (entry === undefined || isOwners(c, life)) c.end(life);
      return;
    // Their results come.
    case 'opening':
    case 'clearing':
    case 'stepping down':
  }
}

/** What its state asked for is done. */
export function backupDone(c: Common, life: Backup, did: Asked['do'], failed: Failure | undefined): void {
  const { state } = life;
  switch (state.is) {
    case 'opening':
      if (failed !== undefined) {
        notCopied(c, life, failed, false);
        return;
      }
      become(life, { is: 'copying', at: 'waiting', busy: false });
      break;
    case 'copying':
      if (failed !== undefined) {
        notCopied(c, life, failed, true);
        return;
      }
      state.busy = false;
      if (did === 'copy') state.at = 'telling';
      break;
    case 'joining':
      if (failed !== undefined && !isHeir(c, life)) {
        notFollowing(c, life, failed);
        return;
      }
      follow(c, life, true);
      return;
    case 'following':
      if (did === 'propose') state.removing = false;
      if (did !== 'wait') break;
      state.waits--;
      state.late = state.waits === 0;
      if (state.late) life.patienceMs = 0;
      break;
    case 'stepping down':
      if (failed === undefined) follow(c, life);
      else c.act({ do: 'fail', shard: life.shard, what: 'given up', error: failed.error });
      return;
    case 'orphaned':
      life.patienceMs = 0;
      if (state.at === 'waiting') promote(c, life, state);
      else followAgain(c, life);
      return;
    case 'renouncing':
      state.busy = false;
      break;
    case 'clearing':
      cleared(c, life, state, did, failed);
      return;
    case 'kept':
      if (state.rests) keep(c, life, false);
      else clear(c, life, 'end');
      return;
    case 'resting':
      if (entryOf(c, life) === undefined) c.end(life);
      else openBackup(c, life);
      return;
    case 'calling off':
      callOff(c, life);
      return;
  }
  advanceBackup(c, life);
}

function copying(c: Common, life: Backup, state: At<'copying'>, entry: Copy | undefined): void {
  const { shard, incarnation } = life;
  const source = sourceOf(c, life);
  if (entry === undefined && life.base) gone(c, life);
  else if (entry === undefined) clear(c, life, 'end');
  // mutation: lost/named-discarded
  else if (source === undefined && life.named) renounce(c, life);
  else if (source === undefined) clear(c, life, life.base ? 'base' : 'again');
  else if (state.at === 'waiting') {
    const owner = memberOwning(c, source);
    if (source.incarnation === undefined || owner === undefined) return;
    state.at = 'copying';
    c.act({ do: 'note', note: { of: 'copy begins', shard, from: owner.id, base: life.base } });
    c.ask(life, { do: 'copy', shard, copy: incarnation, source, owner, base: life.base });
    // mutation: shards/follows-unnamed
  } else if (state.at === 'telling' && life.named) {
    become(life, { is: 'joining' });
    c.ask(life, { do: 'follow', shard });
  } else if (state.at === 'telling' && !state.busy) {
    state.busy = true;
    name(c, life, incarnation);
  }
}

/** Under this id the metadata is to have the copy; `renounced`: what is here is about to go. */
function name(c: Common, life: Backup, copy: string, renounced?: true): void {
  const { shard, worker } = life;
  const { epoch } = c.metadata.shards[shard] ?? life;
  const config = c.metadata.copySets[shard]?.config ?? 0;
  const [member, start] = [c.memberId, c.memberIncarnation];
  const mark = renounced === undefined ? {} : { renounced };
  c.ask(life, {
    do: 'propose',
    command: { t: 'copy-named', shard, epoch, config, member, start, copy, worker, ...mark },
  });
}

const FOLLOWING = {
  is: 'following',
  late: false,
  again: false,
  orphan: undefined,
  removing: false,
} as const satisfies Partial<At<'following'>>;

function follow(c: Common, life: Backup, copied = false): void {
  const { shard, epoch } = life;
  if (copied) life.full = false;
  become(life, { ...FOLLOWING, owner: undefined, waits: 1, synced: false });
  c.act({ do: 'note', note: { of: 'copy follows', shard, epoch, copied } });
  c.ask(life, { do: 'wait', ms: JOINED_MS });
  advanceBackup(c, life);
}

/** It was found on the disk, and the metadata has it as a copy of this start. */
export function comeBack(c: Common, life: Backup, { state }: Copy): void {
  const joins = state === 'joining';
  become(life, { ...FOLLOWING, owner: '', waits: 1, again: joins, synced: !joins });
  c.act({ do: 'note', note: { of: 'copy is back', shard: life.shard } });
  c.ask(life, { do: 'wait', ms: REJOINED_MS });
  advanceBackup(c, life);
}

/** It was found on the disk, and the metadata has it no more. */
export function discardBackup(c: Common, life: Backup): void {
  c.act({ do: 'note', note: { of: 'copy discarded', shard: life.shard } });
  gone(c, life);
}

function following(c: Common, life: Backup, state: At<'following'>, entry: Copy | undefined): void {
  const { shard, epoch } = life;
  if (entry === undefined) {
    c.act({ do: 'note', note: { of: 'copy removed', shard } });
    gone(c, life);
    return;
  }
  if (isHeir(c, life)) {
    c.heir(life);
    return;
  }
  // With the next epoch on its disk it would count as a longer log than one that has what it lacks.
  if (isMarked(entry)) return; // mutation: marked/marked-follows
  if (entry.state === 'joining' && state.synced) {
    state.again = true;
    state.late = false;
    state.waits++;
    c.ask(life, { do: 'wait', ms: REJOINED_MS });
    if (mayFollow(c, life) && !life.damaged) c.act({ do: 'note', note: { of: 'copy joins again', shard } });
  }
  state.synced = entry.state !== 'joining';
  const isHopeless = life.damaged || life.full || (!isLast(c, life, state) && (!mayFollow(c, life) || state.late));
  if (entry.state === 'joining' && isHopeless) {
    // All copies of this server may have been away: the leader has them made anew, a few at a time.
    if (!state.again) {
      // Its first owner is there: it should have been in sync. What is full has been counted.
      if (!life.full && sourceOf(c, life) !== undefined)
        failedOnce(c, life, {
          full: false,
          error: life.damaged ? 'it is not what its owner has' : 'it follows its owner, and does not get in sync',
        });
      renounce(c, life);
    } else if (!state.removing) remove(c, life, state, entry);
  } else {
    const s = c.metadata.shards[shard];
    if (entry.state !== 'joining') {
      life.attempts = 0;
      state.again = false;
      // The owner of this epoch waits for it: what that one lets go of may join again.
      if (entry.state === 'in-sync' && s?.owner !== undefined) life.epoch = s.epoch;
    }
    const owner = s === undefined ? undefined : memberOwning(c, s);
    if (s !== undefined && owner !== undefined) {
      const key = ownerKey(s, owner);
      // Until its first owner is replaced, it follows that one already.
      const isSame = key === state.owner || (state.owner === undefined && s.epoch === epoch);
      state.owner = key;
      if (!isSame) {
        state.orphan = undefined;
        c.ask(life, { do: 'follow owner', shard, source: s });
      }
    }
    if (!state.removing && wantsOut(c, life, entry)) remove(c, life, state, entry);
    else if (state.orphan !== undefined && entry.state === 'in-sync' && !life.damaged)
      takeTurn(c, life, state.orphan, entry);
  }
}

/**
 * Nobody is there who has more: an operator may want the shard with this copy (core/metadata/shard-loss.ts), so it is
 * kept as it is until somebody owns the shard again.
 */
function isLast(c: Common, { shard, epoch }: Backup, { owner: followed, orphan }: At<'following'>): boolean {
  const s = c.metadata.shards[shard];
  const owner = s === undefined ? undefined : memberOwning(c, s);
  if (s === undefined || owner === undefined) return true; // mutation: lost/vacant-discarded
  // That was said of the owner that it follows.
  const isSame = followed === undefined ? s.epoch === epoch : followed === ownerKey(s, owner);
  return isSame && orphan !== undefined; // mutation: lost/orphan-discarded
}

/** What ends for good, or is damaged or full, is waited for by nobody, as soon as it may go. */
function wantsOut(c: Common, { shard, damaged, full }: Backup, entry: Copy): boolean {
  const s = c.metadata.shards[shard];
  const copies = c.metadata.copySets[shard]?.copies;
  if (s === undefined || copies === undefined) return false;
  if (!damaged && !full && !(c.leaving && !isDurable(c, shard))) return false;
  return mayGo(s, copies, entry, policyOf(c.metadata, shard), damaged); // mutation: shards/full-discarded
}

/** It goes on until the metadata has it no more. */
function remove(c: Common, life: Backup, state: At<'following'>, entry: Copy): void {
  state.removing = true;
  c.ask(life, {
    do: 'propose',
    command: removal(c, life, entry, life.damaged ? { damaged: true } : isOver(life) ? { failed: true } : {}),
  });
}

function ownerKey({ worker }: Shard, { id, incarnation }: Member): string {
  return `${id}/${incarnation}/${worker}`;
}

/** The data plane says that the owner is gone. That is a suspicion: the owner may serve for as long as it has leases. */
export function orphaned(c: Common, life: Backup, orphan: Orphan | undefined): void {
  const { state } = life;
  if (state.is === 'orphaned' && state.at === 'waiting' && orphan === undefined) follow(c, life);
  if (state.is !== 'following') return;
  state.orphan = orphan;
  advanceBackup(c, life);
}

/**
 * It is none: damaged, it acknowledges nothing any more; unknown to its owner, it gets nothing. If it joins, it begins
 * anew. What is damaged and in sync, or eligible, has itself removed unless nobody else has the values: until it
 * is made anew changes may find too few copies. What is full has all that was ever acknowledged, so it has itself removed
 * only where enough others are in sync.
 */
export function isNone(c: Common, life: Backup, what: 'damaged' | 'unknown' | 'full'): void {
  const { shard, state } = life;
  if (what === 'damaged') {
    life.damaged = true;
    c.act({ do: 'note', note: { of: 'copy damaged', shard, epoch: c.metadata.shards[shard]?.epoch ?? 0 } });
  }
  const joins = entryOf(c, life)?.state === 'joining';
  if (what === 'full') {
    life.full = true;
    if (joins) failedOnce(c, life, { full: true, error: 'a change of its owner did not fit' });
    else c.act({ do: 'note', note: { of: 'copy full', shard } });
  }
  if (state.is !== 'following') return;
  if (what === 'unknown') {
    if (!joins) return;
    state.late = true;
    // It is there, and says so.
    state.orphan = undefined;
  }
  advanceBackup(c, life);
}

function alone(c: Common, life: Backup, state: At<'orphaned'>, entry: Copy | undefined): void {
  if (entry === undefined) gone(c, life);
  else if (isHeir(c, life)) c.heir(life);
  else if (entry.state !== 'in-sync' || ownerNow(c, life) !== state.owner) followAgain(c, life);
}

/** If the owner is there, or another one, it follows; if not, the data plane says so again. */
function followAgain(c: Common, life: Backup): void {
  become(life, { ...FOLLOWING, owner: '', waits: 0, synced: true });
  advanceBackup(c, life);
}

function renounce(c: Common, life: Backup): void {
  become(life, { is: 'renouncing', name: c.random64(), busy: false });
  advanceBackup(c, life);
}

/** As long as the metadata has it by its name, it may be in sync any time; then it is one. */
function renouncing(c: Common, life: Backup, state: At<'renouncing'>, entry: Copy | undefined): void {
  const isNamed = entry?.id === life.incarnation;
  if (!isNamed) clear(c, life, isSound(life) ? 'base' : 'again');
  else if (entry.state !== 'joining') follow(c, life);
  else if (!state.busy) {
    state.busy = true;
    name(c, life, state.name, true); // mutation: lost/given-up-counts
  }
}

/** Its owner may know it, and wait for it. */
function notFollowing(c: Common, life: Backup, failed: Failure): void {
  failedOnce(c, life, failed);
  renounce(c, life); // mutation: shards/followed-discarded
}

function cleared(c: Common, life: Backup, state: At<'clearing'>, did: Asked['do'], failed: Failure | undefined): void {
  const { shard } = life;
  if (did === 'stop' && state.open && state.then === 'base') {
    state.at = 'keeping';
    life.incarnation = c.random64();
    life.named = false;
    c.ask(life, { do: 'keep base', shard, copy: life.incarnation });
    return;
  }
  if (did === 'keep base' && failed === undefined) {
    life.base = true;
    c.act({ do: 'note', note: { of: 'copy kept', shard } });
    keep(c, life, life.attempts > 0);
    return;
  }
  if (did !== 'close' && state.open) {
    state.at = 'closing';
    c.ask(life, { do: 'close', shard });
    return;
  }
  // What the metadata has by this name is gone for good: what comes is another copy.
  life.named = false;
  if (state.then === 'end' || life.attempts === 0 || entryOf(c, life) === undefined || isOwners(c, life)) {
    c.end(life);
    return;
  }
  if (isOver(life)) {
    callOff(c, life);
    return;
  }
  become(life, { is: 'resting' });
  c.ask(life, { do: 'wait', ms: pauseMs(life) });
}

/** Until the copy is wanted, and the pause after the last attempt is over. */
function keep(c: Common, life: Backup, rests: boolean): void {
  become(life, { is: 'kept', rests });
  c.ask(life, { do: 'wait', ms: rests ? pauseMs(life) : KEPT_MS });
  advanceBackup(c, life);
}

function kept(c: Common, life: Backup, { rests }: At<'kept'>, entry: Copy | undefined): void {
  const s = c.metadata.shards[life.shard];
  if (entry === undefined || s?.owner === c.memberId) {
    if (!isMissed(c, life)) clear(c, life, 'end');
    return;
  }
  if (rests || s?.owner === undefined || s.incarnation === undefined) return;
  life.epoch = s.epoch;
  become(life, { is: 'copying', at: 'waiting', busy: false });
  advanceBackup(c, life);
}

/** This server ends: what is copied into is no more. */
export function endBackup(c: Common, life: Backup): void {
  const { is } = life.state;
  if (is === 'copying' || is === 'joining') c.ask(life, { do: 'stop', shard: life.shard });
}
