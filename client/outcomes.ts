/** What became of a change, from its status and its record: a value, or the error that is thrown. */
import { Status, statusError } from './errors.js';
import type { ChangeOutcome } from './pending.js';
import { versionOf } from './value-reader.js';

/** What became of a compare-and-swap. */
export type Swap =
  | { readonly swapped: true; readonly version: bigint }
  /** version: the one that the key has now; 0n: it is absent. */
  | { readonly swapped: false; readonly version: bigint };

export const putOutcome: ChangeOutcome<void> = (status) => {
  if (status !== Status.ok) throw statusError(status);
};
export const deleteOutcome: ChangeOutcome<boolean> = (status) => {
  if (status !== Status.ok && status !== Status.notFound) throw statusError(status);
  return status === Status.ok;
};
export const swapOutcome: ChangeOutcome<Swap> = (status, words, at) => {
  if (status === Status.ok) return { swapped: true, version: versionOf(words, at) };
  if (status === Status.versionMismatch) return { swapped: false, version: versionOf(words, at) };
  if (status === Status.notFound) return { swapped: false, version: 0n };
  throw statusError(status);
};
