/**
 * One operation of a history: what a client asked of one key, between which two moments, and what it was told.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share, as numbers: 2^53 ns are 104 days.
 * An operation takes effect at one moment from `call` to `end`. Every value that is written is unique in its key's
 * history, so a value names the write.
 */

export interface Interval {
  /** Taken before the call. */
  readonly call: number;
  /** Taken after the answer; Infinity when there was none. */
  readonly end: number;
  /** Who asked; for people. */
  readonly by: string;
}

/**
 * What the caller was told of a change.
 *   open      nothing that says whether it took effect: an indeterminate error, or the client died. It may take effect
 *             at any time, or never
 *   no-effect an error that promises that it had none
 */
export type Unanswered = 'open' | 'no-effect';

/** When an entry expires, as far as an answer told it: between these two moments. */
export interface Expiry {
  readonly from: number;
  readonly to: number;
}

/** undefined: there was no such key. */
export interface Get extends Interval {
  readonly kind: 'get';
  readonly value: string | undefined;
  /** Where it was asked for. */
  readonly version?: bigint | undefined;
  /** Where it was told. */
  readonly expiry?: Expiry | undefined;
}

/** There was such a key; which value it had was not asked for. */
export interface Has extends Interval {
  readonly kind: 'has';
  readonly expiry?: Expiry | undefined;
}

export interface Put extends Interval {
  readonly kind: 'put';
  readonly value: string;
  /** Of a value that expires; such a key is checked by expiry.ts. */
  readonly ttlMs?: number | undefined;
  readonly outcome: 'stored' | Unanswered;
}

export interface Delete extends Interval {
  readonly kind: 'delete';
  /** gone: it took effect, and whether there was something was not told. */
  readonly outcome: 'deleted' | 'absent' | 'gone' | Unanswered;
}

/** Compare-and-swap; without a value, compare-and-delete. `expected` 0n: the key must be absent. */
export interface Swap extends Interval {
  readonly kind: 'swap';
  readonly expected: bigint;
  readonly value: string | undefined;
  /** undefined: the entry expires when it would have. */
  readonly ttlMs?: number | undefined;
  /** version: of a swap that was made, the new one; of one that was not, the one that the key has, 0n: it is absent. */
  readonly outcome: { readonly swapped: boolean; readonly version: bigint } | Unanswered;
}

/**
 * The owner's memory was lost in this interval, or was not: known from outside, asked for by nobody. It takes the key
 * away, at most once. Until then the old owner's memory may be read, afterwards nothing that was written before it.
 */
export interface Loss extends Interval {
  readonly kind: 'loss';
}

export type Operation = Get | Has | Put | Delete | Swap | Loss;

/** Of the value, what it writes; undefined for what writes none. */
export function written(o: Operation): string | undefined {
  return o.kind === 'put' || o.kind === 'swap' ? o.value : undefined;
}

export function isOpen(o: Operation): boolean {
  return (o.kind === 'put' || o.kind === 'delete' || o.kind === 'swap') && o.outcome === 'open';
}

/** A change that was answered, and was made. */
export function wasMade(o: Operation): boolean {
  return o.kind === 'swap'
    ? typeof o.outcome === 'object'
    : (o.kind === 'put' || o.kind === 'delete') && o.outcome !== 'open' && o.outcome !== 'no-effect';
}

/** For a report: times in milliseconds since `from`. */
export function describe(o: Operation, from: number): string {
  const at = (time: number): string => (time === Infinity ? '...' : ((time - from) / 1e6).toFixed(3));
  const until = (expiry: Expiry | undefined): string =>
    expiry === undefined ? '' : `, expires in [${at(expiry.from)}, ${at(expiry.to)}]`;
  return `[${at(o.call)}, ${at(o.end)}] ${o.by}: ${what(o, until)}`;
}

function what(o: Operation, until: (expiry: Expiry | undefined) => string): string {
  switch (o.kind) {
    case 'get':
      return `get -> ${o.value ?? 'absent'}${o.version === undefined ? '' : ` version ${o.version}`}${until(o.expiry)}`;
    case 'has':
      return `has -> present${until(o.expiry)}`;
    case 'put':
      return `put ${o.value} -> ${o.outcome}`;
    case 'delete':
      return `delete -> ${o.outcome}`;
    case 'swap': {
      const told =
        typeof o.outcome === 'string'
          ? o.outcome
          : `${o.outcome.swapped ? 'swapped' : 'not swapped'}, version ${o.outcome.version}`;
      return `compare ${o.expected} and ${o.value === undefined ? 'delete' : `swap ${o.value}`} -> ${told}`;
    }
    case 'loss':
      return "the owner's memory is lost";
  }
}
