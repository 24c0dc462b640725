/**
 * The end of an attempt to have a copy here (backup.ts): the attempt is counted and told, what is under way of it stops, and
 * its table is closed, or kept as a base (base.ts). After some attempts the copy is called off. Not for: whether it may go,
 * which backup.ts decides: what was followed has another name in the metadata first, or none.
 */
import type { CopiesRemoved, RemovedCopy } from '../metadata/copy-commands.js';
import type { Copy } from '../metadata/state.js';
import type { Failure } from './actions.js';
import { isMissed, isSound } from './base.js';
import type { ShardContext } from './context.js';
import { entryOf, isOwners, sourceOf } from './copy-entry.js';
import { transition, type Backup, type BackupState } from './local-shard.js';

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

export function failedOnce(c: ShardContext, local: Backup, { full, error }: Failure): void {
  const { shard } = local;
  const source = c.metadata.shards[shard];
  local.attempts++;
  local.full = full;
  if (source !== undefined)
    c.act({
      do: 'note',
      note: {
        of: 'copy failed',
        shard,
        source,
        attempts: local.attempts,
        again: isOver(local) ? undefined : pauseMs(local),
        full,
        error,
      },
    });
}

export function notCopied(c: ShardContext, local: Backup, failed: Failure, opened: boolean): void {
  const isWanted = entryOf(c, local) !== undefined;
  if (isWanted && sourceOf(c, local) !== undefined) failedOnce(c, local, failed);
  const again = local.base && isSound(local) ? 'base' : 'again';
  clear(c, local, isWanted ? again : 'end', opened);
}

/** It is no copy, whatever the metadata has. */
export function throwAway(c: ShardContext, local: Backup): void {
  clear(c, local, 'end');
}

/** The metadata has it no more. */
export function gone(c: ShardContext, local: Backup): void {
  clear(c, local, isSound(local) && isMissed(c, local) ? 'base' : 'end');
}

/** The table is closed when nothing of the copy is under way any more: until then the copy has its memory. */
export function clear(c: ShardContext, local: Backup, then: Clearing['then'], isOpen = true): void {
  transition(local, { is: 'clearing', then, open: isOpen, at: 'stopping' });
  c.ask(local, { do: 'stop', shard: local.shard });
}

/** Again until the metadata has it no more. */
export function callOff(c: ShardContext, local: Backup): void {
  const entry = entryOf(c, local);
  if (entry === undefined || isOwners(c, local)) {
    c.end(local);
    return;
  }
  transition(local, { is: 'calling off' });
  c.ask(local, { do: 'propose', command: removal(c, local, entry, { failed: true }) });
}

export function removal(
  c: ShardContext,
  local: Backup,
  { member, start }: Copy,
  why: Pick<RemovedCopy, 'damaged' | 'failed'>,
): CopiesRemoved {
  const { shard } = local;
  const { epoch } = c.metadata.shards[shard] ?? local;
  const config = c.metadata.copySets[shard]?.config ?? 0;
  return { t: 'copies-removed', copies: [{ shard, epoch, config, member, start, whole: false, ...why, lsn: 0 }] };
}
