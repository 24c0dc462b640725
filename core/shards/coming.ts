/**
 * The life of a shard that moves to this server, until it is this server's: it is copied from its owner while that one
 * goes on to serve it.
 *
 * Whatever goes wrong before `copied`, the owner goes on: the table is thrown away and, as long as the move stands,
 * made anew. After COPY_ATTEMPTS, with pauses that double, the move is called off: what is in the way, such as a
 * network in which this server does not reach the owner's data plane though both reach the metadata group, will not go
 * away by itself, and somebody must know of it. A shard that does not fit in this server's memory will not fit the next
 * time either: its move is called off at once.
 */
import type { Asked, Failure } from './actions.js';
import { isGiven, memberOwning, phaseOf, sourceOf, type Common } from './common.js';
import { become, type Coming, type ComingState } from './life.js';

/**
 * If each fails at the first question, as where nobody answers, it takes half a minute until the move is called off.
 */
const COPY_ATTEMPTS = 4;
/** After the first attempt; twice as long after each more. */
const PAUSE_MS = 1000;

type At<S extends ComingState['is']> = Extract<ComingState, { is: S }>;

/** Begins anew, or for the first time. */
export function open(c: Common, life: Coming): void {
  const { shard, worker, epoch, incarnation } = life;
  const { buckets } = c.metadata.shards[shard] ?? { buckets: 0 };
  become(life, { is: 'opening' });
  const memoryBytes = c.tableMemory;
  c.ask(life, { do: 'open', shard, worker, epoch, incarnation, memoryBytes, durable: false, buckets });
}

/** To be called when the metadata or the life itself has changed. */
export function advanceComing(c: Common, life: Coming): void {
  const { state } = life;
  switch (state.is) {
    case 'copying':
      copying(c, life, state);
      return;
    case 'last':
      if (sourceOf(c, life) === undefined) clear(c, life, 'end');
      return;
    case 'copied':
      copied(c, life, state);
      return;
    case 'resting':
      // The shard may be this server's by then, and empty.
      if (sourceOf(c, life) === undefined) c.end(life);
      return;
    case 'calling off':
      callOff(c, life, state);
      return;
    // Their results come.
    case 'opening':
    case 'clearing':
  }
}

/** What its state asked for is done. */
export function comingDone(c: Common, life: Coming, did: Asked['do'], failed: Failure | undefined): void {
  const { state } = life;
  if (state.is === 'clearing') {
    cleared(c, life, state, did);
    return;
  }
  if (failed !== undefined) {
    notCopied(c, life, failed);
    return;
  }
  switch (state.is) {
    case 'opening':
      if (sourceOf(c, life) === undefined) clear(c, life, 'end');
      else become(life, { is: 'copying', at: 'waiting', busy: false });
      break;
    case 'copying':
      state.busy = false;
      if (did === 'copy') state.at = 'telling';
      break;
    case 'last':
      become(life, { is: 'copied', at: 'telling', busy: false });
      break;
    case 'copied':
      state.busy = false;
      if (did === 'stop') state.at = 'waiting';
      break;
    case 'resting':
      if (sourceOf(c, life) !== undefined) {
        open(c, life);
        return;
      }
      break;
    case 'calling off':
      state.busy = false;
      break;
  }
  advanceComing(c, life);
}

function copying(c: Common, life: Coming, state: At<'copying'>): void {
  const { shard, incarnation } = life;
  const source = sourceOf(c, life);
  if (source === undefined) clear(c, life, 'end');
  else if (state.at === 'waiting') {
    const owner = memberOwning(c, source);
    if (source.incarnation === undefined || owner === undefined) return;
    state.at = 'copying';
    c.act({ do: 'note', note: { of: 'copying', shard, from: owner.id } });
    c.ask(life, { do: 'copy', shard, copy: incarnation, source, owner, base: false });
  } else if (state.at === 'telling' && (life.last || phaseOf(c, life) !== undefined)) {
    life.last = true;
    become(life, { is: 'last' }); // mutation: shards/complete-before-last
    c.ask(life, { do: 'finish', shard });
  } else if (state.at === 'telling' && !state.busy) {
    state.busy = true;
    tell(c, life, 'last');
  }
}

function copied(c: Common, life: Coming, state: At<'copied'>): void {
  const { shard } = life;
  const known = phaseOf(c, life) === 'complete';
  if (state.at === 'telling' && known) {
    state.at = 'stopping';
    c.act({ do: 'note', note: { of: 'copied', shard } });
    c.ask(life, { do: 'stop', shard });
  } else if (state.at === 'telling' && sourceOf(c, life) === undefined) clear(c, life, 'end');
  else if (state.at === 'telling' && !state.busy) {
    state.busy = true;
    tell(c, life, 'copied');
    // mutation: shards/used-before-given
  } else if (state.at === 'waiting' && isGiven(c, life)) c.given(life);
  else if (state.at === 'waiting' && !known) clear(c, life, 'end');
}

function tell(c: Common, life: Coming, phase: 'last' | 'copied'): void {
  const { shard, epoch, worker, planned, incarnation } = life;
  c.ask(life, {
    do: 'propose',
    command: {
      t: 'shard-copy',
      shard,
      epoch: epoch - 1,
      to: c.memberId,
      memberIncarnation: c.memberIncarnation,
      phase,
      worker,
      copy: incarnation,
      planned,
    },
  });
}

function notCopied(c: Common, life: Coming, { full, error }: Failure): void {
  const opened = life.state.is !== 'opening';
  const source = sourceOf(c, life);
  if (source === undefined) {
    clear(c, life, 'end', opened);
    return;
  }
  life.attempts++;
  life.full = full;
  const over = full || life.attempts >= COPY_ATTEMPTS;
  c.act({
    do: 'note',
    note: {
      of: 'not copied',
      shard: life.shard,
      source,
      attempts: life.attempts,
      most: COPY_ATTEMPTS,
      again: over ? undefined : pauseMs(life),
      full,
      error,
    },
  });
  clear(c, life, over ? 'call off' : 'again', opened);
}

function pauseMs({ attempts }: Coming): number {
  return PAUSE_MS * 2 ** (attempts - 1);
}

/** The table is closed when nothing of the copy is under way any more: until then the copy has its memory. */
function clear(c: Common, life: Coming, then: At<'clearing'>['then'], isOpen = true): void {
  become(life, { is: 'clearing', then, open: isOpen, at: 'stopping' });
  c.ask(life, { do: 'stop', shard: life.shard });
}

function cleared(c: Common, life: Coming, state: At<'clearing'>, did: Asked['do']): void {
  if (did === 'stop' && state.open) {
    state.at = 'closing';
    c.ask(life, { do: 'close', shard: life.shard });
    return;
  }
  if (state.then === 'end' || sourceOf(c, life) === undefined) {
    c.end(life);
  } else if (state.then === 'again') {
    become(life, { is: 'resting' });
    c.ask(life, { do: 'wait', ms: pauseMs(life) });
  } else {
    become(life, { is: 'calling off', busy: false });
    advanceComing(c, life);
  }
}

function callOff(c: Common, life: Coming, state: At<'calling off'>): void {
  const source = sourceOf(c, life);
  const { shard, epoch, planned } = life;
  if (source?.owner === undefined) c.end(life);
  else if (!state.busy) {
    state.busy = true;
    c.ask(life, { do: 'propose', command: { t: 'shard-move', shard, epoch: epoch - 1, to: source.owner, planned } });
  }
}

/** This server ends. Nothing is stopped where the shard may be this server's by now, with all that is in it. */
export function endComing(c: Common, life: Coming): void {
  const { is } = life.state;
  if (is === 'copying' || is === 'last') c.ask(life, { do: 'stop', shard: life.shard });
}
