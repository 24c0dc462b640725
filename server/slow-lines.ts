/**
 * Lines of the log about requests that were slow (--slow-ms), and about all of them with FARKV_TRACE=1. Keys are never in
 * them: the hash tells whether two lines are about the same key.
 */
import type { DataPlane } from '../native/data-plane.js';
import type { Log } from './log.js';

/** Whether each request is written. */
export const isTraced = (): boolean => process.env.FARKV_TRACE === '1';

/** How often a line may come is bounded by the data plane (native/node/server_call.c). */
export function reportSlow(plane: Pick<DataPlane, 'onSlow'>, log: Log): void {
  const [level, event] = isTraced() ? (['info', 'request'] as const) : (['warn', 'slow-request'] as const);
  plane.onSlow = ({ ms, ...slow }, omitted) => {
    if (omitted > 0)
      log.event(level, `(${omitted} lines of requests were not written)`, {
        event: 'omitted',
        count: omitted,
        of: event,
      });
    const tookMs = Math.round(ms * 1000) / 1000;
    const { operation, result, worker, shard, keyHash, client } = slow;
    const about = `${keyHash === undefined ? '' : ` of key ${keyHash}`}${client === undefined ? '' : ` by client ${client}`}`;
    log.event(level, `${operation}${about} took ${tookMs} ms at worker ${worker}, shard ${shard}: ${result}`, {
      event,
      tookMs,
      ...slow,
    });
  };
}
