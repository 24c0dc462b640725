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
/**
 * They get one part in so many of the caller's time. So there is time left for the answer, also where the caller came
 * while the status for others was being put together.
 */
const PARTS = 4;

/** How long another server may take, milliseconds. Whoever takes longer is shown as unreachable. */
export function othersMs({ timeoutMs = Infinity }: StatusCall): number {
  return Math.max(1, Math.min(OTHERS_MS, Math.floor(timeoutMs / PARTS)));
}

/** Whether the caller waits for less than a status takes where a server does not answer. */
export function isHurried(call: StatusCall): boolean {
  return othersMs(call) < OTHERS_MS;
}
