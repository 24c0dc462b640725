/**
 * The life of a shard that is this server's: from its opening until another server owns it. Each function
 * looks at where the life is and what the metadata says, and asks for the next step; index.ts has the rules.
 */
import { inSync, policyOf, waitsOnLoss } from '../metadata/copy-sets.js';
import { keepersOf } from '../metadata/placement.js';
import type { Asked, Failure } from './actions.js';
import { isDurable, isOwn, ownSet, type Common } from './common.js';
import { advanceCopies, countOwn, isOwnNew } from './companions.js';
import { beginHandover, copyAfter, handing, handingDone, heirOf } from './handover.js';
import { become, isBeforeServing, type Held, type HeldState } from './life.js';

/** So long a new shard waits for another server to have a copy of it. Then its owner serves it alone. */
const FIRST_COPY_MS = 5000;

type At<S extends HeldState['is']> = Extract<HeldState, { is: S }>;

/** To be called when the metadata, the leases or the life itself has changed. */
export function advanceHeld(c: Common, life: Held): void {
  const { state } = life;
  // Its result comes, and tells whether there is something to close.
  if (state.is === 'opening' || state.is === 'closing') return;
  if (!isOwn(c, life)) {
    taken(c, life);
    return;
  }
  if (state.is === 'leading') return;
  advanceCopies(c, life);
  switch (state.is) {
    case 'announced':
      announced(c, life, state);
      return;
    case 'serving': {
      const heir = heirOf(c, life);
      if (heir !== undefined) beginHandover(c, life, heir);
      return;
    }
    case 'handing':
      handing(c, life, state);
  }
}

/** What its state asked for is done. */
export function heldDone(c: Common, life: Held, did: Asked['do'], failed: Failure | undefined): void {
  const { state } = life;
  if (state.is === 'closing') {
    if (failed !== undefined) c.act({ do: 'note', note: { of: 'not closed', shard: life.shard, error: failed.error } });
    c.end(life);
    return;
  }
  if (state.is === 'handing' && did !== 'serve') {
    handingDone(c, life, state, did, failed);
    advanceHeld(c, life);
    return;
  }
  if (failed !== undefined) {
    if (state.is === 'opening' && !isOwn(c, life)) c.end(life);
    else if (state.is === 'leading' && failed.none === true) c.noCopy(life);
    else
      c.act({
        do: 'fail',
        shard: life.shard,
        what: state.is === 'opening' ? 'opened' : isBeforeServing(state) ? 'served' : 'given up',
        error: failed.error,
      });
    return;
  }
  switch (state.is) {
    case 'opening':
    case 'leading':
      become(life, { is: 'announced', busy: false, waited: 'not yet', kept: false });
      break;
    case 'announced':
      if (did === 'wait') state.waited = 'enough';
      else state.busy = false;
      state.kept ||= did === 'snapshot';
      if (did === 'serve') {
        become(life, { is: 'serving' });
        life.copies.whole = true;
        c.act({ do: 'note', note: { of: 'served', shard: life.shard, epoch: life.epoch } });
      }
      break;
    case 'handing':
      handingDone(c, life, state, did);
      break;
    default:
  }
  advanceHeld(c, life);
}

/** The metadata has the regions of this opening. */
function isAnnounced(c: Common, { shard, incarnation }: Held): boolean {
  const s = c.metadata.shards[shard];
  return s?.owner === c.memberId && s.incarnation === incarnation; // mutation: shards/served-unannounced
}

function announced(c: Common, life: Held, state: At<'announced'>): void {
  const { shard, epoch, incarnation } = life;
  if (state.busy) return;
  if (!isAnnounced(c, life)) c.ask(life, { do: 'announce', shard, epoch, incarnation });
  // mutation: shards/served-alone, shards/served-under-old-leases
  else if (!c.leasesOver || isAlone(c, life, state)) return;
  else {
    const set = ownSet(c, life);
    c.mark();
    const isNew = set !== undefined && isOwnNew(c, life, set);
    // From when it counts it must come back.
    // mutation: recovered/counts-before-disk
    if (isNew && !state.kept && isDurable(c, shard)) c.ask(life, { do: 'snapshot', shard });
    // mutation: shards/served-uncounted
    else if (isNew) countOwn(c, life, set);
    else c.ask(life, { do: 'serve', shard });
  }
  state.busy = true;
}

/** A new shard whose values are to survive its server, and no other server has it yet. */
function isAlone(c: Common, life: Held, state: At<'announced'>): boolean {
  const set = ownSet(c, life);
  if (set === undefined || !isOwnNew(c, life, set) || !waitsOnLoss(policyOf(c.metadata, life.shard))) return false;
  if (inSync(set.copies) > 0 || keepersOf(c.metadata).length === 1 || state.waited === 'enough') return false;
  if (state.waited === 'not yet') {
    state.waited = 'waiting';
    c.ask(life, { do: 'wait', ms: FIRST_COPY_MS });
  }
  return true;
}

/** What was handed over, or taken by a copy that believed this owner gone, is a copy from now on. */
function taken(c: Common, life: Held): void {
  const copy = copyAfter(c, life);
  if (copy === undefined) close(c, life);
  else c.steppedDown(life, copy);
}

/** Asked for at once, whatever else is under way: the data plane does what it is asked for in order. */
function close(c: Common, life: Held): void {
  const { shard, epoch, state } = life;
  if (isBeforeServing(state) || state.is === 'serving') c.act({ do: 'note', note: { of: 'taken', shard, epoch } });
  become(life, { is: 'closing' });
  c.ask(life, { do: 'close', shard });
}

/** This server ends. What is on its disk stays there. */
export function endHeld(c: Common, life: Held): void {
  const { is } = life.state;
  if (is === 'opening' || is === 'closing') return;
  become(life, { is: 'closing' });
  c.ask(life, { do: isDurable(c, life.shard) ? 'pause' : 'close', shard: life.shard });
}
