/** What the log of a server's start says of how the cluster keeps values. */
import { CACHE } from '../core/metadata/copy-sets.js';
import type { MetadataState, Policy } from '../core/metadata/state.js';
import type { Log } from './log.js';
import { levelLines, levelPassedOver } from './status-copies.js';

/** `asked`: what `--level` was given. */
export function reportLevels(
  state: MetadataState,
  asked: Policy['level'] | undefined,
  mayDiffer: boolean,
  log: Log,
): void {
  for (const [i, text] of levelLines(state).entries()) {
    const { level, replicas } = state.policies[i] ?? CACHE;
    const tenant = i === 0 ? '' : (state.tenants[i - 1]?.name ?? '');
    log.info(text, { event: 'replication-level', tenant, replicationLevel: level, replicas });
  }
  const passedOver = levelPassedOver(state, asked, mayDiffer);
  if (passedOver !== undefined && asked !== undefined) log.warn(passedOver, { event: 'level-passed-over', asked });
}
