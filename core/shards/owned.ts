/**
 * A shard that is this server's: from its opening until another server owns it. Each function
 * looks at its state and at what the metadata says, and asks for the next step; index.ts has the rules.
 */
import { inSync, policyOf, waitsOnLoss } from '../metadata/copy-sets.js';
import { keepersOf } from '../metadata/placement.js';
import type { Request, Failure } from './actions.js';
import { isDurable, isOwn, ownSet, type ShardContext } from './context.js';
import { advanceCopies, countOwn, isOwnNew } from './progress.js';
import { beginHandover, copyAfter, handing, handingDone, heirOf } from './handover.js';
import { transition, isBeforeServing, type Owned, type OwnedState } from './local-shard.js';

/** So long a new shard waits for another server to have a copy of it. Then its owner serves it alone. */
const FIRST_COPY_MS = 5000;

type At<S extends OwnedState['is']> = Extract<OwnedState, { is: S }>;

/** To be called when the metadata, the leases or the shard itself has changed. */
export function advanceOwned(c: ShardContext, local: Owned): void {
  const { state } = local;
  // Its result comes, and tells whether there is something to close.
  if (state.is === 'opening' || state.is === 'closing') return;
  if (!isOwn(c, local)) {
    taken(c, local);
    return;
  }
  if (state.is === 'leading') return;
  advanceCopies(c, local);
  switch (state.is) {
    case 'announced':
      announced(c, local, state);
      return;
    case 'serving': {
      const heir = heirOf(c, local);
      if (heir !== undefined) beginHandover(c, local, heir);
      return;
    }
    case 'handing':
      handing(c, local, state);
  }
}

/** What its state asked for is done. */
export function ownedDone(c: ShardContext, local: Owned, did: Request['do'], failed: Failure | undefined): void {
  const { state } = local;
  if (state.is === 'closing') {
    if (failed !== undefined)
      c.act({ do: 'note', note: { of: 'not closed', shard: local.shard, error: failed.error } });
    c.end(local);
    return;
  }
  if (state.is === 'handing' && did !== 'serve') {
    handingDone(c, local, state, did, failed);
    advanceOwned(c, local);
    return;
  }
  if (failed !== undefined) {
    if (state.is === 'opening' && !isOwn(c, local)) c.end(local);
    else if (state.is === 'leading' && failed.none === true) c.noCopy(local);
    else
      c.act({
        do: 'fail',
        shard: local.shard,
        what: state.is === 'opening' ? 'opened' : isBeforeServing(state) ? 'served' : 'given up',
        error: failed.error,
      });
    return;
  }
  switch (state.is) {
    case 'opening':
    case 'leading':
      transition(local, { is: 'announced', busy: false, waited: 'not yet', kept: false });
      break;
    case 'announced':
      if (did === 'wait') state.waited = 'enough';
      else state.busy = false;
      state.kept ||= did === 'snapshot';
      if (did === 'serve') {
        transition(local, { is: 'serving' });
        local.copies.whole = true;
        c.act({ do: 'note', note: { of: 'served', shard: local.shard, epoch: local.epoch } });
      }
      break;
    case 'handing':
      handingDone(c, local, state, did);
      break;
    default:
  }
  advanceOwned(c, local);
}

/** The metadata names this opening: no client goes on with the regions of another one. */
function isAnnounced(c: ShardContext, { shard, incarnation }: Owned): boolean {
  const s = c.metadata.shards[shard];
  return s?.owner === c.memberId && s.incarnation === incarnation; // mutation: shards/served-unannounced
}

function announced(c: ShardContext, local: Owned, state: At<'announced'>): void {
  const { shard, epoch, incarnation } = local;
  if (state.busy) return;
  if (!isAnnounced(c, local)) c.ask(local, { do: 'announce', shard, epoch, incarnation });
  // mutation: shards/served-alone, shards/served-under-old-leases
  else if (!c.leasesOver || isAlone(c, local, state)) return;
  else {
    const set = ownSet(c, local);
    c.mark();
    const isNew = set !== undefined && isOwnNew(c, local, set);
    // From when it counts it must come back.
    // mutation: recovered/counts-before-disk
    if (isNew && !state.kept && isDurable(c, shard)) c.ask(local, { do: 'snapshot', shard });
    // mutation: shards/served-uncounted
    else if (isNew) countOwn(c, local, set);
    else c.ask(local, { do: 'serve', shard });
  }
  state.busy = true;
}

/** A new shard whose values are to survive its server, and no other server has it yet. */
function isAlone(c: ShardContext, local: Owned, state: At<'announced'>): boolean {
  const set = ownSet(c, local);
  if (set === undefined || !isOwnNew(c, local, set) || !waitsOnLoss(policyOf(c.metadata, local.shard))) return false;
  if (inSync(set.copies) > 0 || keepersOf(c.metadata).length === 1 || state.waited === 'enough') return false;
  if (state.waited === 'not yet') {
    state.waited = 'waiting';
    c.ask(local, { do: 'wait', ms: FIRST_COPY_MS });
  }
  return true;
}

/** What was handed over, or taken by a copy that believed this owner gone, is a copy from now on. */
function taken(c: ShardContext, local: Owned): void {
  const copy = copyAfter(c, local);
  if (copy === undefined) close(c, local);
  else c.steppedDown(local, copy);
}

/** Asked for at once, whatever else is under way: the data plane does what it is asked for in order. */
function close(c: ShardContext, local: Owned): void {
  const { shard, epoch, state } = local;
  if (isBeforeServing(state) || state.is === 'serving') c.act({ do: 'note', note: { of: 'taken', shard, epoch } });
  transition(local, { is: 'closing' });
  c.ask(local, { do: 'close', shard });
}

/** This server ends. What is on its disk stays there. */
export function endOwned(c: ShardContext, local: Owned): void {
  const { is } = local.state;
  if (is === 'opening' || is === 'closing') return;
  transition(local, { is: 'closing' });
  c.ask(local, { do: isDurable(c, local.shard) ? 'pause' : 'close', shard: local.shard });
}
