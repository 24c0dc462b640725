/** The `event` of each shard event that is a line of the log; docs/operations.md lists them. */
import type { ShardEvent } from '../../core/shards/index.js';
import type { LogEvent } from '../log-events.js';

export const SHARD_EVENT_NAMES: Readonly<Record<ShardEvent['of'], LogEvent>> = {
  served: 'shard-served',
  taken: 'shard-taken',
  'not closed': 'shard-not-closed',
  'hands over': 'shard-hands-over',
  'not handed over': 'shard-not-handed-over',
  'handed over': 'shard-handed-over',
  deposed: 'shard-deposed',
  'copy begins': 'copy-begins',
  'copy follows': 'copy-follows',
  'copy kept': 'copy-kept',
  'copy failed': 'copy-failed',
  'copy removed': 'copy-removed',
  'copy joins again': 'copy-joins-again',
  'copy damaged': 'copy-damaged',
  'copy full': 'copy-full',
  'copy is back': 'copy-is-back',
  'copy discarded': 'copy-discarded',
  'copy missing': 'copy-missing',
  'copy leads': 'copy-leads',
  'copy in sync': 'copy-in-sync',
  'copy late': 'copy-late',
  'copy refused': 'copy-refused',
  'copy marked': 'copy-marked',
  'copy held back': 'copy-held-back',
  'owner gone': 'owner-gone',
};
