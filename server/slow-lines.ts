/**
 * Lines of the log about requests that were slow (--slow-ms), and about all others with FARKV_TRACE=1. Keys are never
 * in them: the hash tells whether two lines are about the same key.
 */
import type { MetadataState } from '../core/metadata/state.js';
import type { DataPlane } from '../native/data-plane.js';
import type { Log } from './log.js';

/** Whether each request is written. */
export const isTraced = (): boolean => process.env.FARKV_TRACE === '1';

/** How often a line may come is bounded by the data plane (native/node/server_call.c). */
export function reportSlow(plane: Pick<DataPlane, 'onSlow'>, state: () => MetadataState, log: Log): void {
  plane.onSlow = ({ slow: isSlow, ms, queuedMs, heldMs, last, ...slow }, omitted) => {
    const [level, event] = isSlow ? (['warn', 'slow-request'] as const) : (['info', 'request'] as const);
    if (omitted > 0)
      log.event(level, `(${omitted} lines of requests were not written)`, {
        event: 'omitted',
        count: omitted,
        of: event,
      });
    const tookMs = rounded(ms);
    const { operation, result, worker, shard, keyHash, client } = slow;
    const about = `${keyHash === undefined ? '' : ` of key ${keyHash}`}${client === undefined ? '' : ` by client ${client}`}`;
    const text = `${operation}${about} took ${tookMs} ms at worker ${worker}, shard ${shard}: ${result}`;
    if (queuedMs === undefined || heldMs === undefined || last === undefined) {
      log.event(level, text, { event, tookMs, ...slow });
      return;
    }
    const held = { queuedMs: rounded(queuedMs), heldMs: rounded(heldMs), ...lastOf(state(), shard, last) };
    log.event(level, `${text} (${held.queuedMs} ms until its turn, ${held.heldMs} ms until ${untilOf(held)})`, {
      event,
      tookMs,
      ...slow,
      ...held,
    });
  };
}

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;

interface Last {
  readonly last: 'copy' | 'disk' | 'log' | 'config';
  /** Of the copy: its server, or its id if the shard has it no more. */
  readonly server?: string;
}

function lastOf(state: MetadataState, shard: number, last: string): Last {
  if (last === 'disk' || last === 'log' || last === 'config') return { last };
  const copy = state.copySets[shard]?.copies.find(({ id }) => id === last);
  return { last: 'copy', server: copy?.member ?? last };
}

function untilOf({ last, server = '' }: Last): string {
  return {
    copy: `${server} had it`,
    disk: 'it was on the disk',
    log: 'its log had it',
    config: 'the copies were others',
  }[last];
}
