/** farkv/session in an express app on a loopback port, and as a store by itself. */
import test, { type ExecutionContext } from 'ava';
import express, { type Request, type Response } from 'express';
import session, { type SessionData } from 'express-session';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { sessionStore, type SessionStore } from '../../adapters/session.js';
import { keysOf, oneServer } from '../support/adapters.js';

declare module 'express-session' {
  interface SessionData {
    visits?: number;
  }
}

const server = oneServer(test);
const HOUR = 3_600_000;

/** A browser: keeps the cookie that it is given. */
type Visit = (path: string) => Promise<string>;

/** An app that counts visits, with a browser. */
async function app(
  t: ExecutionContext,
  store: SessionStore,
  options: Partial<session.SessionOptions> = {},
): Promise<() => Visit> {
  const made = express();
  made.use(
    session({ store, secret: 'secret', resave: false, saveUninitialized: false, cookie: { maxAge: HOUR }, ...options }),
  );
  made.get('/visit', (request: Request, response: Response) => {
    request.session.visits = (request.session.visits ?? 0) + 1;
    response.send(String(request.session.visits));
  });
  made.get('/look', (request: Request, response: Response) => {
    response.send(String(request.session.visits ?? 'new'));
  });
  made.get('/renew', (request: Request, response: Response, next) => {
    request.session.regenerate((error: unknown) =>
      error === undefined || error === null ? response.send('renewed') : next(error),
    );
  });
  made.get('/browser', (request: Request, response: Response) => {
    (request.session.cookie as { expires: unknown }).expires = false;
    response.send('with the browser');
  });
  made.get('/leave', (request: Request, response: Response, next) => {
    request.session.destroy((error: unknown) =>
      error === undefined || error === null ? response.send('gone') : next(error),
    );
  });
  const listening = made.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  t.teardown(() => listening.close());
  const { port } = listening.address() as AddressInfo;
  return () => {
    let cookie = '';
    return async (path) => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { cookie, connection: 'close' } });
      const given = answer.headers.get('set-cookie');
      if (given !== null) cookie = given.split(';')[0] ?? '';
      return `${answer.status === 200 ? '' : `${answer.status} `}${await answer.text()}`;
    };
  };
}

const promised = (store: SessionStore) => ({
  get: promisify<string, SessionData | null>(store.get.bind(store) as never),
  set: promisify<string, SessionData, unknown>(store.set.bind(store) as never),
  touch: promisify<string, SessionData, unknown>(store.touch.bind(store) as never),
  destroy: promisify<string, unknown>(store.destroy.bind(store) as never),
  all: promisify<Record<string, SessionData>>(store.all.bind(store) as never),
  length: promisify<number>(store.length.bind(store) as never),
  clear: promisify<unknown>(store.clear.bind(store) as never),
});

const dataOf = (visits: number, expires?: Date | false): SessionData => ({
  visits,
  cookie: Object.assign(new session.Cookie(), expires === undefined ? {} : { expires }),
});

test('an app keeps sessions, renews and destroys them', async (t) => {
  const kv = server().space();
  const store = sessionStore(session, kv);
  const browser = await app(t, store);
  const [ada, bob] = [browser(), browser()];
  t.is(await ada('/look'), 'new');
  t.deepEqual(await keysOf(kv), [], 'an unused session is not stored');
  t.deepEqual([await ada('/visit'), await ada('/visit'), await bob('/visit')], ['1', '2', '1']);
  t.is(await promised(store).length(), 2);
  // Another process, with a store of its own, has the same sessions.
  t.deepEqual(
    Object.values(await promised(sessionStore(session, kv)).all())
      .map(({ visits }) => visits)
      .sort(),
    [1, 2],
  );
  t.is(await ada('/renew'), 'renewed');
  t.is(await ada('/look'), 'new');
  t.is(await bob('/leave'), 'gone');
  t.is(await bob('/look'), 'new');
  for (const key of await keysOf(kv)) t.regex(key, /^session:/);
});

test('a session lives as long as its cookie, and a visit prolongs both', async (t) => {
  const kv = server().space();
  const store = sessionStore(session, kv);
  const visit = (await app(t, store))();
  await visit('/visit');
  const expiry = async (): Promise<number> => {
    for await (const { expiresAtMs } of kv.scan()) return expiresAtMs ?? Infinity;
    return 0;
  };
  const first = await expiry();
  t.true(first > Date.now() && first <= Date.now() + HOUR + 10_000);
  // Touched: nothing of the session changes, and the clock goes on by itself.
  let later = first;
  while (later <= first) {
    t.is(await visit('/look'), '1');
    later = await expiry();
  }
  t.true(later <= Date.now() + HOUR + 10_000);
  const [stored] = Object.values(await promised(store).all());
  t.true(new Date((stored!.cookie as { readonly expires?: unknown }).expires as string).getTime() > first - 10_000);
});

test('the end of a session: of its cookie, by default, over already', async (t) => {
  const kv = server().space();
  const store = promised(sessionStore(session, kv, { ttlMs: HOUR }));
  await store.set('browser', dataOf(1));
  await store.set('dated', dataOf(2, new Date(Date.now() + 2 * HOUR)));
  await store.set('over', dataOf(3));
  await store.set('over', dataOf(3, new Date(Date.now() - 1)));
  await store.set('short', dataOf(4, new Date(Date.now() + 5)));
  const expiries = new Map<string, number>();
  for await (const { key, expiresAtMs } of kv.scan()) expiries.set(String(key), (expiresAtMs ?? Infinity) - Date.now());
  t.true(expiries.get('session:browser')! <= HOUR + 10_000);
  t.true(expiries.get('session:dated')! > HOUR && expiries.get('session:dated')! <= 2 * HOUR + 10_000);
  t.is(await store.get('over'), null);
  while ((await store.get('short')) !== null);
  await store.touch('dated', dataOf(2, new Date(Date.now() - 1)));
  t.deepEqual(Object.keys(await store.all()), ['browser']);
});

test('a cookie whose `expires` is false ends with the browser: the session has the default end', async (t) => {
  const kv = server().space();
  const store = promised(sessionStore(session, kv, { ttlMs: HOUR }));
  const left = async (): Promise<number> => (await kv.getEntry('session:id'))!.expiresAtMs! - Date.now();
  await store.set('id', dataOf(1, false));
  t.true((await left()) > HOUR / 2 && (await left()) <= HOUR + 10_000);
  await store.set('id', dataOf(2, new Date(Date.now() + 5 * HOUR)));
  t.true((await left()) > 2 * HOUR);
  await store.touch('id', dataOf(2, false));
  t.true((await left()) > HOUR / 2 && (await left()) <= HOUR + 10_000);
  t.is((await store.get('id'))?.visits, 2);
  const lasting = promised(sessionStore(session, kv, { ttlMs: Number.POSITIVE_INFINITY }));
  await lasting.set('id', dataOf(3, new Date(Date.now() + HOUR)));
  await lasting.touch('id', dataOf(3, false));
  t.is((await kv.getEntry('session:id'))?.expiresAtMs, undefined);

  // In an app, where the cookie itself was told.
  const own = server().space();
  const visit = (await app(t, sessionStore(session, own)))();
  await visit('/visit');
  t.is(await visit('/browser'), 'with the browser');
  t.is(await visit('/visit'), '2');
});

test('a cookie of the year 9999 is stored, for as long as farkv stores anything', async (t) => {
  const kv = server().space();
  const store = promised(sessionStore(session, kv));
  const expires = new Date('9999-12-31T23:59:59Z');
  await store.set('id', dataOf(1, expires));
  await store.touch('id', dataOf(1, expires));
  t.true((await kv.getEntry('session:id'))!.expiresAtMs! > Date.now() + 2 ** 45);
  t.is((await store.get('id'))?.visits, 1);
});

test('touch() neither brings back a destroyed session nor undoes what was set meanwhile', async (t) => {
  const kv = server().space();
  let between: () => Promise<unknown> = () => Promise.resolve();
  const view = kv.withCodec('buffer');
  const getEntry = view.getEntry.bind(view);
  view.getEntry = async (key) => {
    const entry = await getEntry(key);
    await between();
    return entry;
  };
  kv.withCodec = () => view;
  const store = promised(sessionStore(session, kv));
  await store.set('id', dataOf(1));
  between = () => store.set('id', dataOf(2));
  await store.touch('id', dataOf(1));
  t.is((await store.get('id'))?.visits, 2);
  between = () => store.destroy('id');
  await store.touch('id', dataOf(1));
  t.is(await store.get('id'), null);
  await store.touch('absent', dataOf(1));
  t.is(await store.length(), 0);
});

test('clear() takes the sessions of its prefix alone', async (t) => {
  const kv = server().space();
  const [one, two] = ['app', 'app2'].map((prefix) => promised(sessionStore(session, kv, { prefix })));
  await kv.put('session:mine', 'stays');
  await one!.set('id', dataOf(1));
  await two!.set('id', dataOf(2));
  await one!.clear();
  t.deepEqual(await keysOf(kv), ['app2:id', 'session:mine']);
  t.is((await two!.get('id'))?.visits, 2);
});

test('a store whose connection has ended says so, and the app answers with an error', async (t) => {
  const { address } = server();
  const store = sessionStore(session, address, { prefix: 'closed' });
  const visit = (await app(t, store))();
  t.is(await visit('/visit'), '1');
  await store.close();
  t.regex(await visit('/visit'), /^500 /);
  await t.throwsAsync(promised(store).get('id'), { code: 'ERR_CLOSED' });
  // Without a callback nobody is told, and nothing is thrown.
  t.notThrows(() => store.destroy('id'));
});
