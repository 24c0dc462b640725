/** What one key can do to an import, against a server of the test's own; redis.long.test.ts has a real one. */
import test, { type ExecutionContext } from 'ava';
import { FarkvError } from '../../core/errors.js';
import { fakeRedis, type FakeRedis } from '../../test/support/fake-redis.js';
import { StoreInMemory } from '../../test/support/stored-entries.js';
import { importFromRedis, type RedisDone } from './import-redis.js';
import { LeftOutKeys, leftOutLines, REASONS_MAX } from './left-out.js';

const KEYS = 2000;
const NAMES = Array.from({ length: KEYS }, (_, i) => `key ${i}`);
const keysWith = (more: readonly (readonly [string, string])[]): ReadonlyMap<string, string> =>
  new Map([
    ...NAMES.slice(0, 700).map((name) => [name, '-1'] as const),
    ...more,
    ...NAMES.slice(700).map((name) => [name, '-1'] as const),
  ]);

async function run(
  t: ExecutionContext,
  redis: FakeRedis,
  { skip = true, store = new StoreInMemory() } = {},
): Promise<RedisDone & { readonly lines: readonly string[]; readonly store: StoreInMemory }> {
  const address = await fakeRedis(t, redis);
  const done = await importFromRedis(store, address, { namespace: 0, keep: false, skip, onRead: () => undefined });
  return { ...done, store, lines: leftOutLines(done.leftOut) };
}

test('a key with a time to live beyond any is named, and all others are imported', async (t) => {
  const far = [
    ['far', '999999999999000'],
    ['farther', '9000000000000000000'],
    ['farthest', '9223372036854775807'],
  ] as const;
  const { written, lines, stopped } = await run(t, { keys: keysWith([...far, ['long', String(2 ** 46)]]) });
  t.is(written, KEYS + 1);
  t.deepEqual(lines, [
    'not imported, a time to live over 70,368,744,177,664 ms (2,230 years): 3 (far, farther, farthest)',
  ]);
  t.false(stopped);
});

test('keys that Redis refuses are named with its reason, and all others are imported', async (t) => {
  const refused: Readonly<Record<string, readonly [command: string, error: string]>> = {
    secret: ['TYPE', 'NOPERM No permissions to access a key'],
    'secret to GET': ['GET', 'NOPERM this user has no permissions to access one of the keys used as arguments'],
    'no slot': ['GET', 'CLUSTERDOWN Hash slot not served'],
    'no slot either': ['STRLEN', 'CLUSTERDOWN Hash slot not served'],
    moved: ['TYPE', 'MOVED 12182 10.0.0.2:6379'],
    'moved too': ['TYPE', 'MOVED 1 10.0.0.3:6379'],
    list: ['GET', 'WRONGTYPE Operation against a key holding the wrong kind of value'],
    odd: ['PTTL', 'ODD \u001b[2J\u009b'],
  };
  const { written, lines } = await run(t, {
    keys: keysWith(Object.keys(refused).map((name) => [name, '-1'])),
    refuses: (command, key) => (refused[key ?? '']?.[0] === command ? refused[key ?? '']?.[1] : undefined),
  });
  t.is(written, KEYS);
  t.deepEqual([...lines].sort(), [
    'not imported, no string any more: 1 (list)',
    'not imported, refused by Redis: CLUSTERDOWN Hash slot not served: 2 (no slot either, no slot)',
    'not imported, refused by Redis: MOVED 12182 10.0.0.2:6379: 2 (moved, moved too)',
    'not imported, refused by Redis: NOPERM No permissions to access a key: 2 (secret, secret to GET)',
    'not imported, refused by Redis: ODD \\x1b[2J\\xc2\\x9b: 1 (odd)',
  ]);
});

test('keys that the cluster refuses are named, and all others are imported', async (t) => {
  const store = new StoreInMemory();
  store.refuses = (key) =>
    String(key).startsWith('bad') ? new FarkvError('ERR_VALUE_TOO_LARGE', 'too large') : undefined;
  const { written, lines } = await run(
    t,
    {
      keys: keysWith([
        ['bad', '-1'],
        ['bad too', '-1'],
      ]),
    },
    { store },
  );
  t.is(written, KEYS);
  t.is(store.entries.size, KEYS);
  t.deepEqual(lines, ['not imported, too large: 2 (bad, bad too)']);
});

test('--on-error stop ends the import at a key that was refused, and says so', async (t) => {
  const keys = keysWith([['far', '999999999999000']]);
  const { written, lines, stopped } = await run(t, { keys }, { skip: false });
  t.true(stopped);
  t.true(written >= 700 && written < KEYS, `${written} were written`);
  t.is(lines.length, 1);
  const alone = await run(t, { keys: new Map([['far', '999999999999000']]) }, { skip: false });
  t.like(alone, { stopped: false, written: 0 }, 'there was none behind it');
  t.is(alone.lines.length, 1);
  t.like(await run(t, { keys: keysWith([]) }, { skip: false }), { stopped: false, written: KEYS });
});

test('what every key would be refused for ends the import, with what to do', async (t) => {
  const refusals = [
    [
      'TYPE',
      "NOPERM User farkv has no permissions to run the 'type' command",
      'ERR_UNAUTHORIZED',
      /an import takes ping, /,
    ],
    [
      'GET',
      "NOPERM this user has no permissions to run the 'get' command or its subcommand",
      'ERR_UNAUTHORIZED',
      /get/,
    ],
    ['MULTI', "NOPERM User farkv has no permissions to run the 'multi' command", 'ERR_UNAUTHORIZED', /refuses MULTI/],
    ['EXEC', "NOPERM User farkv has no permissions to run the 'exec' command", 'ERR_UNAUTHORIZED', /refuses EXEC/],
    ['STRLEN', 'LOADING Redis is loading the dataset in memory', 'ERR_BUSY', /import again later$/],
    ['PTTL', 'NOAUTH Authentication required.', 'ERR_UNAUTHORIZED', /NOAUTH/],
    ['SCAN', 'ERR unknown command', 'ERR_CONFIG', /refuses SCAN: ERR unknown command$/],
  ] as const;
  for (const [refused, error, code, message] of refusals) {
    const refuses = (command: string): string | undefined => (command === refused ? error : undefined);
    await t.throwsAsync(run(t, { keys: keysWith([]), refuses }), { code, message }, error);
  }
});

test('a server that invents reasons takes no memory with them', (t) => {
  const leftOut = new LeftOutKeys();
  for (let i = 0; i < 1000; i++) leftOut.add(`type ${i}`, Buffer.from(`key ${i}`));
  const lines = leftOutLines(leftOut.reasons);
  t.is(lines.length, REASONS_MAX + 1);
  t.regex(lines.at(-1) ?? '', /^not imported, other reasons: 968 \(key 32, /);
});
