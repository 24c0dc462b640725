/**
 * Trying again: a long transfer shall outlast a server that restarts or a shard that moves. An operation that fails for
 * such a reason is done again, for a minute; what no waiting mends is thrown at once.
 */
import { FarkvError, type ErrorCode } from '../../core/errors.js';

export const PATIENCE_MS = 60_000;
const PAUSE_MIN_MS = 20;
const PAUSE_MAX_MS = 1000;

const PASSING: ReadonlySet<ErrorCode> = new Set([
  'ERR_BUSY',
  'ERR_TIMEOUT',
  'ERR_DISCONNECTED',
  'ERR_NOT_OWNER',
  'ERR_SHARD_UNAVAILABLE',
  'ERR_TOO_FEW_COPIES',
  // What is done again here has the same effect twice.
  'ERR_INDETERMINATE',
]);

/** Throws the last error when the time is over. */
export async function patiently<T>(work: () => Promise<T>, patienceMs = PATIENCE_MS): Promise<T> {
  const deadline = performance.now() + patienceMs;
  for (let pauseMs = PAUSE_MIN_MS; ; pauseMs = Math.min(PAUSE_MAX_MS, 2 * pauseMs)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof FarkvError) || !PASSING.has(error.code) || performance.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
