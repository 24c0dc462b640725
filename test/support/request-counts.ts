/** Counts of requests by their kind, as a worker's statistics have them, for tests that need all kinds. */
import { CHANGES, type RequestKind } from '../../native/data-plane-stats.js';

const KINDS: readonly RequestKind[] = ['lease', 'layout', 'get', 'scan', ...CHANGES];

/** Of the kinds that are not named, 0. */
export const requestsOf = (counts: Partial<Record<RequestKind, number>>): Record<RequestKind, number> => ({
  ...(Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<RequestKind, number>),
  ...counts,
});
