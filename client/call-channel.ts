/**
 * The calls of every client in this process, on the diagnostics channel `farkv:call` (node:diagnostics_channel,
 * TracingChannel): for tracers, and for logs of what is slow. While nobody subscribes nothing is made of a call but the
 * question whether somebody does: callers ask `isHeard` before they make its message.
 */
import { tracingChannel } from 'node:diagnostics_channel';
import { types } from 'node:util';
import { isTimed, timed } from './call-times.js';
import type { Key } from './pending.js';

/** What the channel's subscribers are given: one object for a call, from its start to its end. */
export interface CallMessage {
  /** The method. */
  readonly call: string;
  readonly namespace: number;
  /** Of a call about one key, as the caller gave it. */
  readonly key?: Key | undefined;
  /** Of a call about several keys: how many. */
  readonly keys?: number | undefined;
  /** Set when it has ended: what it resolved with. */
  result?: unknown;
  /** Set when it has failed. */
  error?: unknown;
}

const calls = tracingChannel<CallMessage, CallMessage>('farkv:call');
const { start, end, asyncStart, asyncEnd, error } = calls;

/** Whose calls messages are of, for trace.ts and call-times.ts: kept once somebody wants to know. */
let callers: WeakMap<CallMessage, object> | undefined;

/** `caller`: an object that is one for all views of a client. */
export function callOf(message: CallMessage, caller: object): CallMessage {
  callers?.set(message, caller);
  return message;
}

/** Who makes calls from now on. */
export function knowCallers(): (message: CallMessage) => object | undefined {
  const known = (callers ??= new WeakMap());
  return (message) => known.get(message);
}

/** Whether somebody would be told of this call, or it is one of those that are timed. */
export function isHeard(): boolean {
  return hasSubscribers() || isTimed();
}

function hasSubscribers(): boolean {
  return (
    start.hasSubscribers ||
    asyncEnd.hasSubscribers ||
    error.hasSubscribers ||
    end.hasSubscribers ||
    asyncStart.hasSubscribers
  );
}

function failed(message: CallMessage, reason: unknown): void {
  message.error = reason;
  error.publish(message);
}

/**
 * Tells of the call that `run` makes: start and end around what is done at once; asyncStart and asyncEnd when its promise
 * is settled, error before them if it failed. A call that answers without a promise has no asyncStart and asyncEnd.
 */
export function heard<T>(message: CallMessage, run: () => T): T {
  const caller = callers?.get(message);
  if (caller !== undefined && isTimed()) return timed(message.call, caller, () => toldIfHeard(message, run));
  return toldIfHeard(message, run);
}

const toldIfHeard = <T>(message: CallMessage, run: () => T): T => (hasSubscribers() ? told(message, run) : run());

function told<T>(message: CallMessage, run: () => T): T {
  return start.runStores(message, () => {
    try {
      const result = run();
      if (!types.isPromise(result)) {
        message.result = result;
        return result;
      }
      const settled = (): void => {
        asyncStart.publish(message);
        asyncEnd.publish(message);
      };
      return result.then(
        (value: unknown) => {
          message.result = value;
          settled();
          return value;
        },
        (reason: unknown) => {
          failed(message, reason);
          settled();
          throw reason;
        },
      ) as T;
    } catch (reason) {
      failed(message, reason);
      throw reason;
    } finally {
      end.publish(message);
    }
  });
}
