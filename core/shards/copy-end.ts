/**
 * The end of an attempt to have a copy here (backup.ts): the attempt is counted and told, what is under way of it stops, and
 * its table is closed, or kept as a base (base.ts). After some attempts the copy is called off. Not for: whether it may go,
 * which backup.ts decides: what was followed has another name in the metadata first, or none.
 */
import type { CopiesRemoved, RemovedCopy } from '../metadata/copy-commands.js';
import type { Copy } from '../metadata/state.js';
import type { Failure } from './actions.js';
import { isMissed, isSound } from './base.js';
import type { Common } from './common.js';
import { entryOf, isOwners, sourceOf } from './copy-entry.js';
import { become, type Backup, type BackupState } from './life.js';

/** After the first attempt; twice as long after each more. */
const PAUSE_MS = 1000;
/** After so many attempts it is called off. */
const ATTEMPTS = 4;

type Clearing = Extract<BackupState, { is: 'clearing' }>;

export function pauseMs({ attempts }: Backup): number {
  return PAUSE_MS * 2 ** (attempts - 1);
}

/** It is called off: it would keep places that others need. What does not fit will not fit a second later either. */
export function isOver({ attempts, full }: Backup): boolean {
  return attempts >= ATTEMPTS || full;
}

export function failedOnce(c: Common, life: Backup, { full, error }: Failure): void {
  const { shard } = life;
  const source = c.metadata.shards[shard];
  life.attempts++;
  life.full = full;
  if (source !== undefined)
    c.act({
      do: 'note',
      note: {
        of: 'copy failed',
        shard,
        source,
        attempts: life.attempts,
        again: isOver(life) ? undefined : pauseMs(life),
        full,
        error,
      },
    });
}

export function notCopied(c: Common, life: Backup, failed: Failure, opened: boolean): void {
  const isWanted = entryOf(c, life) !== undefined;
  if (isWanted && sourceOf(c, life) !== undefined) failedOnce(c, life, failed);
  const again = life.base && isSound(life) ? 'base' : 'again';
  clear(c, life, isWanted ? again : 'end', opened);
}

/** It is no copy, whatever the metadata has. */
export function throwAway(c: Common, life: Backup): void {
  clear(c, life, 'end');
}

/** The metadata has it no more. */
export function gone(c: Common, life: Backup): void {
  clear(c, life, isSound(life) && isMissed(c, life) ? 'base' : 'end');
}

/** The table is closed when nothing of the copy is under way any more: until then the copy has its memory. */
export function clear(c: Common, life: Backup, then: Clearing['then'], isOpen = true): void {
  become(life, { is: 'clearing', then, open: isOpen, at: 'stopping' });
  c.ask(life, { do: 'stop', shard: life.shard });
}

/** Again until the metadata has it no more. */
export function callOff(c: Common, life: Backup): void {
  const entry = entryOf(c, life);
  if (entry === undefined || isOwners(c, life)) {
    c.end(life);
    return;
  }
  become(life, { is: 'calling off' });
  c.ask(life, { do: 'propose', command: removal(c, life, entry, { failed: true }) });
}

export function removal(
  c: Common,
  life: Backup,
  { member, start }: Copy,
  why: Pick<RemovedCopy, 'damaged' | 'failed'>,
): CopiesRemoved {
  const { shard } = life;
  const { epoch } = c.metadata.shards[shard] ?? life;
  const config = c.metadata.copySets[shard]?.config ?? 0;
  return { t: 'copies-removed', copies: [{ shard, epoch, config, member, start, whole: false, ...why, lsn: 0 }] };
}
