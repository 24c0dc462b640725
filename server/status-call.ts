/**
 * The arguments of the call `status`, and what follows from them: how long the other servers may take to say how they
 * are. Not for: what a status has (status.ts).
 */
import { maybe, record, uint } from '../core/protocol/check.js';

export interface StatusCall {
  /** How long the caller waits, milliseconds; absent: long enough. */
  readonly timeoutMs?: number;
}
const TIMEOUT_MAX_MS = 3_600_000;
export const checkStatusCall = record<StatusCall>({ timeoutMs: maybe(uint(TIMEOUT_MAX_MS)) });

const OTHERS_MS = 1000;
/** Of a caller with less time than HURRIED_BELOW_MS. Not less: a server that is far away is not a silent one. */
const HURRIED_MS = 250;
const HURRIED_BELOW_MS = 4 * OTHERS_MS;

/** Whether the caller may have no time for a status that gives a silent server its full time. */
export function isHurried({ timeoutMs = Infinity }: StatusCall): boolean {
  return timeoutMs < HURRIED_BELOW_MS;
}

/** How long another server may take, milliseconds. Whoever takes longer is shown as unreachable. */
export function othersMs(call: StatusCall): number {
  return isHurried(call) ? HURRIED_MS : OTHERS_MS;
}
