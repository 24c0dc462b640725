/**
 * update: read, compute, compare-and-swap, again and again until the swap is made or the call's time is over.
 *
 * Who loses waits before the next try, for a random part of a span that grows fourfold with each loss. So many who
 * change one key at the same time soon come one after the other: 200 of them need some six tries each, where tries at
 * once would be 90 each. Between two tries nothing is held: no lock, no lease.
 */
import { types } from 'node:util';
import { Deadline } from '../net/deadline.js';
import { AbortWatch } from './abort-watch.js';
import type { ReadOptions, SwapOptions } from './arguments.js';
import { guardedNow, Status, statusError, type FarkvError } from './errors.js';
import type { Limits } from './operations.js';
import type { Swap } from './outcomes.js';
import { abortError, type Key } from './pending.js';
import type { Entry } from './value-reader.js';

/** What became of an update. */
export interface Updated {
  /** False: the function answered undefined, and nothing was changed. */
  readonly changed: boolean;
  /** The one that the key has by that; 0n: it is absent. */
  readonly version: bigint;
}

/**
 * The next value from the present one; undefined: leave it. May be called several times, each time with what is there
 * by then; `entry` has the version and what else is stored with the value. Without an entry both are undefined.
 */
export type Update<In, Out> = (
  value: Out | undefined,
  entry: Entry<Out> | undefined,
) => In | undefined | Promise<In | undefined>;

/** Is told when the client is closed, until what it answers is called. */
type WhileOpen = (end: (error: FarkvError) => void) => () => void;

interface Calls<In, Out> {
  getEntry(key: Key, options: ReadOptions): Promise<Entry<Out> | undefined>;
  compareAndSwap(key: Key, expected: bigint, value: In, options: SwapOptions): Promise<Swap>;
}

/** The longest span of which a wait is a part, milliseconds. */
const SPAN_MAX_MS = 1024;

export async function update<In, Out>(
  calls: Calls<In, Out>,
  given: Key,
  next: Update<In, Out>,
  { ttlMs, flags }: { readonly [Name in 'ttlMs' | 'flags']: SwapOptions[Name] | undefined },
  { timeoutMs, signal }: Limits,
  whileOpen: WhileOpen,
): Promise<Updated> {
  const key = types.isUint8Array(given) ? guardedNow(() => Buffer.from(given)) : given;
  const end = performance.now() + timeoutMs;
  const left = (tries: number): ReadOptions => {
    const ms = Math.ceil(end - performance.now());
    if (ms > 0) return signal === undefined ? { timeoutMs: ms } : { timeoutMs: ms, signal };
    throw tries === 0 ? tookAll() : statusError(Status.timeout, lostText(tries));
  };
  for (let tries = 0; ; tries++) {
    const entry = await calls.getEntry(key, left(tries));
    const version = entry?.version ?? 0n;
    const value = await inTime(next(entry?.value, entry), end - performance.now(), signal, whileOpen);
    if (value === undefined) return { changed: false, version };
    const stored = { flags: flags ?? entry?.flags ?? 0, ...(ttlMs === undefined ? {} : { ttlMs }) };
    const swap = await calls.compareAndSwap(key, version, value, { ...left(tries), ...stored });
    if (swap.swapped) return { changed: true, version: swap.version };
    await pause(Math.min(SPAN_MAX_MS, 4 ** tries, end - performance.now()), signal);
  }
}

const lostText = (tries: number): string =>
  `${tries} tries of an update lost to other changes of the key; none took effect`;

const tookAll = (): FarkvError =>
  statusError(Status.timeout, 'the function of an update took all the time that the call has; nothing was changed');

/** Of all updates that wait, for their functions or for the next try. */
const aborts = new AbortWatch<() => void>((end) => end());

/** What the function answers, if the call is not over first. What becomes of its promise then nobody hears. */
async function inTime<T>(
  made: T | Promise<T>,
  ms: number,
  signal: AbortSignal | undefined,
  whileOpen: WhileOpen,
): Promise<T> {
  let fail: (error: FarkvError) => void = () => undefined;
  const over = new Promise<never>((_, reject) => (fail = reject));
  const aborted = (): void => {
    if (signal !== undefined) fail(abortError(signal));
  };
  const deadline = new Deadline(Math.max(0, ms), () => fail(tookAll()));
  const forget = whileOpen(fail);
  if (signal?.aborted === true) aborted();
  else if (signal !== undefined) aborts.add(aborted, signal);
  try {
    return await Promise.race([made, over]);
  } finally {
    deadline.clear();
    forget();
    if (signal !== undefined) aborts.remove(aborted, signal);
  }
}

async function pause(spanMs: number, signal: AbortSignal | undefined): Promise<void> {
  const ms = Math.floor(Math.random() * spanMs);
  if (ms < 1) return;
  await new Promise<void>((resolve, reject) => {
    const over = (): void => {
      if (signal !== undefined) aborts.remove(over, signal);
      clearTimeout(timer);
      if (signal?.aborted === true) reject(abortError(signal));
      else resolve();
    };
    const timer = setTimeout(over, ms);
    if (signal?.aborted === true) over();
    else if (signal !== undefined) aborts.add(over, signal);
  });
}
