/**
 * What the benchmark asks of a store. One instance belongs to one benchmark thread; `lane` numbers the operations that
 * the thread has in flight at once, so that an implementation may reuse one buffer a lane.
 *
 * A method answers at once where the store can, with a promise where it cannot: an `await` costs the harness more than
 * a GET over shared memory costs farkv. It throws, or rejects, when the operation failed. Records come and go as the
 * bytes of record.ts.
 */
import type { Parameters } from '../parameters.js';
import type { Properties } from '../properties.js';

export type MaybePromise<T> = T | Promise<T>;

export interface Database {
  readonly name: string;
  /** Connects. What is wrong with the store or the properties is said here. */
  init(): Promise<void>;
  /** The record, valid until the lane's next operation; undefined when there is none. */
  read(key: string, lane: number): MaybePromise<Uint8Array | undefined>;
  insert(key: string, record: Buffer, lane: number): MaybePromise<void>;
  update(key: string, record: Buffer, lane: number): MaybePromise<void>;
  /** For the report: which transport, client and settings were measured. Asked once, when the operations are done. */
  facts(): MaybePromise<Facts>;
  cleanup(): Promise<void>;
}

/** Of one thread; the runner joins texts that differ and adds counts up. */
export interface Facts {
  readonly texts: Readonly<Record<string, string>>;
  readonly counts: Readonly<Record<string, number>>;
  /** NAME: [A, B] is the sum of counts A over the sum of counts B. */
  readonly ratios?: Readonly<Record<string, readonly [of: string, per: string]>>;
}

export interface DatabaseOptions {
  readonly properties: Properties;
  /** Operations in flight at once in this thread. */
  readonly lanes: number;
  readonly parameters: Parameters;
}

/** Tells a promise from a record; a record is never thenable. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Promise<T>>).then === 'function';
}
