/**
 * The one table of the SDK's calls: every public method of what connect() gives, how the histories call it, and in
 * which forms of a key. calls.test.ts compares it with the classes, so a method that is new there fails it until it is
 * here.
 */
import type { Caller } from './caller.js';
import { CHANGES } from './calls-changes.js';
import { READS } from './calls-reads.js';
import { OTHERS, SCANS } from './calls-scans.js';
import { TAILS } from './calls-tails.js';
import type { Form } from './keys.js';

export interface Call {
  /** The method; [Symbol.asyncDispose] as `asyncDispose`. */
  readonly name: string;
  /** How often, relative to the others; 0: only in the tour of every call that each client begins with. */
  readonly weight: number;
  /** It takes a key, in every form, or several keys. */
  readonly keyed: boolean;
  /** Over shm and verbs only. */
  readonly synchronous?: true;
  readonly run: (caller: Caller, form: Form) => Promise<void>;
}

export const CALLS: readonly Call[] = [...READS, ...CHANGES, ...TAILS, ...SCANS, ...OTHERS];
