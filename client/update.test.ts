/** update, against the fake native client. */
import test from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import { setup } from '../test/support/keyspace.js';

const any = (value: unknown): never => value as never;

test('an update computes from the present entry, and keeps flags and expiry unless it is told otherwise', async (t) => {
  const { native, kv, settle } = setup();
  const version = native.store('a', Buffer.from('1'), 0, 9);
  const seen: unknown[] = [];
  const first = kv.update('a', (value, entry) => {
    seen.push(String(value), entry?.version, entry?.flags);
    return '2';
  });
  await settle();
  t.like(await first, { changed: true });
  t.deepEqual(seen, ['1', version, 9]);
  const others = [
    kv.update('b', (value, entry) => `${typeof value} ${typeof entry}`, { ttlMs: 50, flags: 3 }),
    kv.update('c', () => Promise.resolve('x'), { ttlMs: null }),
    kv.update('d', () => undefined),
  ];
  await settle();
  await settle();
  t.deepEqual(
    (await Promise.all(others)).map(({ changed }) => changed),
    [true, true, false],
  );
  t.deepEqual(native.log, ['swap 0/a ttl -1 flags 9', 'swap 0/b ttl 50 flags 3', 'swap 0/c ttl 0 flags 0']);
});

test('an update that loses reads again, and one that always loses ends with its time, without effect', async (t) => {
  const { native, kv, settle } = setup();
  native.store('a', Buffer.from('1'));
  let tries = 0;
  const once = kv.update('a', (value) => {
    if (tries++ === 0) native.store('a', Buffer.from('10'));
    return String(Number(value) + 1);
  });
  await settle();
  await settle();
  t.like(await once, { changed: true });
  t.is(String(await kv.get('a')), '11');
  let lost = 0;
  const never = kv.update(
    'a',
    () => {
      native.store('a', Buffer.from(`other ${lost++}`));
      return 'mine';
    },
    { timeoutMs: 40 },
  );
  const failed = t.throwsAsync(never, { code: 'ERR_TIMEOUT' });
  const ended = { now: false };
  void failed.then(() => (ended.now = true));
  while (!ended.now) await settle();
  await failed;
  t.true(lost > 1);
  t.is(String(await kv.get('a')), `other ${lost - 1}`);
});

test('what the function throws is thrown, a signal ends the wait, and what is no function is refused', async (t) => {
  const { native, kv, settle } = setup();
  native.store('a', Buffer.from('1'));
  const own = new Error('own');
  await t.throwsAsync(
    kv.update('a', () => {
      throw own;
    }),
    { is: own },
  );
  const stop = new AbortController();
  let lost = 0;
  const ended = t.throwsAsync(
    kv.update(
      'a',
      () => {
        native.store('a', Buffer.from('other'));
        if (++lost === 8) stop.abort();
        return 'mine';
      },
      { signal: stop.signal, timeoutMs: 600_000 },
    ),
    { code: 'ERR_ABORTED' },
  );
  const over = { now: false };
  void ended.then(() => (over.now = true));
  while (!over.now) await settle();
  await ended;
  await t.throwsAsync(kv.update('a', any('x')), { code: 'ERR_ARGUMENT', message: /a function/ });
  await t.throwsAsync(
    kv.update('a', () => 'x', { ttlMs: 0 }),
    { code: 'ERR_ARGUMENT' },
  );
  await t.throwsAsync(
    kv.update('a', () => 'x', any({ ttl: 5 })),
    { code: 'ERR_ARGUMENT' },
  );
  await t.throwsAsync(
    kv.update('', () => 'x'),
    { code: 'ERR_KEY_INVALID' },
  );
});

test('a function that never ends is not waited for beyond the time, the signal, or the client', async (t) => {
  const { native, operations, kv, settle } = setup();
  native.store('a', Buffer.from('1'));
  const began: (() => void)[] = [];
  const starts = (count: number): Promise<void>[] =>
    Array.from({ length: count }, () => new Promise<void>((resolve) => began.push(resolve)));
  const never = (): Promise<string> => {
    began.shift()?.();
    return new Promise(() => undefined);
  };
  await t.throwsAsync(kv.update('a', never, { timeoutMs: 20 }), {
    code: 'ERR_TIMEOUT',
    message: /the function of an update .* nothing was changed/,
  });
  const stop = new AbortController();
  const cause = new Error('enough');
  let waiting = starts(20);
  const aborted = waiting.map(() => kv.update('a', never, { signal: stop.signal, timeoutMs: 600_000 }));
  await settle();
  await Promise.all(waiting);
  const ends: unknown[] = [];
  for (const one of aborted) void one.catch((error: unknown) => ends.push((error as Error).cause));
  stop.abort(cause);
  await turn();
  t.deepEqual(
    ends,
    aborted.map(() => cause),
  );
  waiting = starts(1);
  const closed = t.throwsAsync(kv.update('a', never, { timeoutMs: 600_000 }), { code: 'ERR_CLOSED' });
  await settle();
  await Promise.all(waiting);
  operations.close();
  await closed;
  t.deepEqual(native.log, [], 'nothing was changed');
});

test('a function that has ended its call itself changes nothing', async (t) => {
  const { native, operations, kv, settle } = setup();
  const stop = new AbortController();
  const aborted = kv.update(
    'a',
    () => {
      stop.abort();
      return 'x';
    },
    { signal: stop.signal },
  );
  await t.throwsAsync(Promise.all([aborted, settle()]), { code: 'ERR_ABORTED' });
  const closed = kv.update('a', () => {
    operations.close();
    return 'x';
  });
  await t.throwsAsync(Promise.all([closed, settle()]), { code: 'ERR_CLOSED' });
  t.deepEqual(native.log, []);
});
