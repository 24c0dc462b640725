/**
 * The one table of the SDK's calls: every public method of what connect() gives, how the histories call it, and in
 * which forms of a key. calls.test.ts compares it with the classes, so a method that is new there fails it until it is
 * here. Tests of what is so of every call walk it too (`plain`).
 */
import type { BufferValue, Keyspace } from '../../client/index.js';
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
  /** With this key, among others where it takes several; values are digits. Absent: it takes no key. */
  readonly plain?: (kv: Keyspace<BufferValue, Buffer>, key: string) => unknown;
  /** It asks an owner for a change, which a reader may not. */
  readonly changes?: true;
  /** Spins for its answer: not over tcp. */
  readonly synchronous?: true;
  readonly run: (caller: Caller, form: Form) => Promise<void>;
}

export const CALLS: readonly Call[] = [...READS, ...CHANGES, ...TAILS, ...SCANS, ...OTHERS];
