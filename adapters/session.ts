/**
 * `farkv/session`: a store of express-session.
 *
 *     app.use(session({ store: sessionStore(session, '127.0.0.1:7400'), ... }));
 *
 * The host is given and not imported, so that this package needs none at run time: stores extend its class Store. A
 * session is JSON under `session:ID` and lives as long as its cookie, or `ttlMs` where the cookie has no end.
 */
import type { SessionData, Store } from 'express-session';
import { argumentError, guarded, guardedNow } from '../client/errors.js';
import type { Source } from './connection.js';
import { PrefixedKeys } from './prefixed-keys.js';
import { writeOptions } from './time-to-live.js';

export interface SessionStoreOptions {
  /** Before each id, with a colon; without one itself. Default `session`. Stores of one prefix share their sessions. */
  readonly prefix?: string;
  /** Milliseconds that a session lives whose cookie ends with the browser; default one day. */
  readonly ttlMs?: number;
}

/** What express-session is, as far as a store needs it. */
export interface SessionHost {
  readonly Store: typeof Store;
}

type Answer<T> = (error: unknown, result?: T) => void;

/** A store with all that express-session's contract has. */
export interface SessionStore extends Store {
  all(callback: Answer<Record<string, SessionData>>): void;
  length(callback: Answer<number>): void;
  clear(callback?: Answer<void>): void;
  touch(id: string, session: SessionData, callback?: Answer<void>): void;
  /** Ends the store's own connection; a client that it was given stays open. */
  close(): Promise<void>;
}

const DAY_MS = 86_400_000;

/**
 * Calls back outside of the promise: what the callback throws is the program's own uncaught exception. `run` reads the
 * arguments of the call, before this returns.
 */
function answer<T>(run: () => Promise<T>, callback: Answer<T> | undefined): void {
  const given: unknown = callback;
  if (given !== undefined && given !== null && typeof given !== 'function')
    throw argumentError('a callback is a function');
  guarded(run).then(
    (result) => process.nextTick(() => callback?.(null, result)),
    (error: unknown) => process.nextTick(() => callback?.(error)),
  );
}

const parse = (bytes: Buffer): SessionData => JSON.parse(bytes.toString()) as SessionData;

export function sessionStore(host: SessionHost, source: Source, options: SessionStoreOptions = {}): SessionStore {
  const { prefix = 'session', ttlMs = DAY_MS } = guardedNow((): SessionStoreOptions => ({ ...options }));
  const HostStore = guardedNow(() => host.Store);
  if (typeof HostStore !== 'function')
    throw argumentError("sessionStore takes express-session itself: sessionStore(session, '127.0.0.1:7400')");
  writeOptions(ttlMs); // throws where it is none
  const keys = new PrefixedKeys(source, prefix, (kv) => kv.withCodec('buffer'));

  /** Milliseconds; 0 and less: it has ended. */
  const left = ({ cookie }: SessionData): number => {
    // A cookie that came from JSON has its end as text. false: express-session's own way to say that it has none.
    const { expires } = cookie as { readonly expires?: Date | string | false | null | undefined };
    if (expires === undefined || expires === null || expires === false) return ttlMs;
    return new Date(expires).getTime() - Date.now();
  };
  const get = async (id: string): Promise<SessionData | null> => {
    const bytes = await (await keys.use()).get(keys.key(id));
    return bytes === undefined ? null : parse(bytes);
  };
  const destroy = async (id: string): Promise<void> => {
    await (await keys.use()).delete(keys.key(id));
  };
  const set = async (id: string, json: string, ttl: number): Promise<void> => {
    if (ttl > 0) await (await keys.use()).put(keys.key(id), json, writeOptions(ttl));
    else await destroy(id);
  };
  /**
   * Stores the session anew with its new cookie, if it is still as it was read: a session that was destroyed meanwhile
   * does not come back, and one that was set meanwhile has a new end of its own.
   */
  const touch = async (id: string, session: SessionData): Promise<void> => {
    const kv = await keys.use();
    const entry = await kv.getEntry(keys.key(id));
    if (entry === undefined) return;
    const ttl = left(session);
    const json = JSON.stringify({ ...parse(entry.value), cookie: session.cookie });
    // mutation: adapters/touch-overwrites
    if (ttl > 0) await kv.compareAndSwap(keys.key(id), entry.version, json, { ttlMs: null, ...writeOptions(ttl) });
    else await kv.compareAndDelete(keys.key(id), entry.version);
  };
  const all = async (): Promise<Record<string, SessionData>> => {
    const kv = await keys.use();
    const sessions = new Map<string, SessionData>();
    for await (const ids of keys.list('')) {
      const values = await kv.getMany(ids.map((id) => keys.key(id)));
      for (const [i, id] of ids.entries()) if (values[i] !== undefined) sessions.set(id, parse(values[i]));
    }
    return Object.fromEntries(sessions);
  };

  return guardedNow(() => {
    class FarkvStore extends HostStore implements SessionStore {
      override get(id: string, callback: Answer<SessionData | null>): void {
        answer(() => get(id), callback);
      }

      override set(id: string, session: SessionData, callback?: Answer<void>): void {
        // Now: the request may go on to change the session.
        answer(() => set(id, JSON.stringify(session), left(session)), callback);
      }

      override destroy(id: string, callback?: Answer<void>): void {
        answer(() => destroy(id), callback);
      }

      override touch(id: string, session: SessionData, callback?: Answer<void>): void {
        answer(() => touch(id, session), callback);
      }

      override all(callback: Answer<Record<string, SessionData>>): void {
        answer(all, callback);
      }

      override length(callback: Answer<number>): void {
        answer(async () => (await keys.all('')).length, callback);
      }

      override clear(callback?: Answer<void>): void {
        answer(() => keys.clear(''), callback);
      }

      close(): Promise<void> {
        return keys.close();
      }
    }
    return new FarkvStore();
  });
}

export type { Source } from './connection.js';
