/**
 * A Redis server that lies: about how many keys a page has, how long they are, what type they have, how large a value
 * is, and where it ends. Each import from it ends, by an error or with what is true, and holds no more than a bound.
 */
import test, { type ExecutionContext } from 'ava';
import { importFromRedis } from '../../tools/redis/import-redis.js';
import { leftOutLines } from '../../tools/redis/left-out.js';
import { falseRedis } from '../support/false-server.js';

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const page = (cursor: string, keys: readonly string[]): string =>
  `*2\r\n${bulk(cursor)}*${keys.length}\r\n${keys.map(bulk).join('')}`;

/** What an honest server with one key answers, but for the lies. */
function answer(lies: Readonly<Record<string, (words: readonly string[]) => string | Buffer>>) {
  const honest: typeof lies = {
    PING: () => '+PONG\r\n',
    DBSIZE: () => ':1\r\n',
    SCAN: () => page('0', ['key']),
    TYPE: () => '+string\r\n',
    STRLEN: () => ':5\r\n',
    MULTI: () => '+OK\r\n',
    GET: () => '+QUEUED\r\n',
    PTTL: () => '+QUEUED\r\n',
    EXEC: () => `*2\r\n${bulk('value')}:-1\r\n`,
  };
  const all = { ...honest, ...lies };
  return (words: readonly string[]): string | Buffer => all[words[0] ?? '']?.(words) ?? '-ERR\r\n';
}

async function imported(t: ExecutionContext, lies: Parameters<typeof answer>[0]) {
  const stored = new Map<string, number>();
  const view = { put: (key: Buffer, value: Buffer) => Promise.resolve(void stored.set(String(key), value.length)) };
  const target = { namespace: () => ({ withCodec: () => view }) } as unknown as Parameters<typeof importFromRedis>[0];
  const address = await falseRedis(t, answer(lies));
  const done = await importFromRedis(target, address, {
    namespace: 0,
    keep: false,
    skip: true,
    onRead: () => undefined,
  });
  return { stored, lines: leftOutLines(done.leftOut), done };
}

test('an honest one', async (t) => {
  const { stored, lines } = await imported(t, {});
  t.deepEqual([...stored], [['key', 5]]);
  t.deepEqual(lines, []);
});

test('a page of more keys than can be, or of lists within lists, is refused', async (t) => {
  const keys = Array.from({ length: 40_000 }, (_, i) => `key ${i}`);
  await t.throwsAsync(imported(t, { SCAN: () => page('0', keys) }), { code: 'ERR_PROTOCOL' });
  const deep = `*2\r\n${bulk('0')}*30000\r\n${'*30000\r\n'.repeat(3)}`;
  await t.throwsAsync(imported(t, { SCAN: () => deep }), { code: 'ERR_PROTOCOL' });
});

test('keys that are too long take no memory, and are named', async (t) => {
  const { stored, lines } = await imported(t, { SCAN: () => page('0', ['k'.repeat(1 << 20), 'key']) });
  t.deepEqual([...stored.keys()], ['key']);
  t.deepEqual(lines, [`not imported, keys of 0 or more than 1024 bytes: 1 (${'k'.repeat(80)}...)`]);
});

test('types that are made up are counted together beyond some', async (t) => {
  let type = 0;
  const keys = Array.from({ length: 500 }, (_, i) => `key ${i}`);
  const { lines } = await imported(t, {
    SCAN: () => page('0', keys),
    TYPE: () => `+${String(type++).padStart(4, '0')}${'t'.repeat(3000)}\r\n`,
  });
  t.is(lines.length, 33);
  t.true(lines.every((line) => line.length < 300));
  t.regex(lines[32] ?? '', /^not imported, other reasons: 468 /);
});

test('a word that is far longer than a word is refused', async (t) => {
  await t.throwsAsync(imported(t, { TYPE: () => `+${'t'.repeat(5000)}\r\n` }), { code: 'ERR_PROTOCOL' });
});

test('values that are larger than was said are read one at a time, or not at all', async (t) => {
  const keys = ['a', 'b', 'c'];
  const large = Buffer.alloc(9 << 20, 'x');
  const exec = Buffer.concat([Buffer.from(`*2\r\n$${large.length}\r\n`), large, Buffer.from('\r\n:-1\r\n')]);
  const { stored, lines } = await imported(t, { SCAN: () => page('0', keys), EXEC: () => exec });
  t.deepEqual(
    [...stored].sort(([a], [b]) => (a < b ? -1 : 1)),
    keys.map((key) => [key, large.length]),
  );
  t.deepEqual(lines, []);
  const endless = await imported(t, {
    EXEC: () =>
      Buffer.concat([Buffer.from('*2\r\n$67108865\r\n'), Buffer.alloc(67_108_865), Buffer.from('\r\n:-1\r\n')]),
  });
  t.is(endless.stored.size, 0);
  t.deepEqual(endless.lines, ['not imported, larger than 64 MiB: 1 (key)']);
});

test('a cursor that goes round', async (t) => {
  const round = imported(t, { SCAN: ([, cursor]) => page(cursor === '1' ? '2' : '1', ['key']) });
  await t.throwsAsync(round, { code: 'ERR_PROTOCOL', message: /goes round/ });
});

test('answers that nobody has asked for', async (t) => {
  const list = `*2\r\n${bulk('a')}${bulk('b')}`;
  for (const lies of [
    { PING: () => list },
    { TYPE: () => list },
    { DBSIZE: () => list },
    { MULTI: () => list.repeat(9) },
  ])
    await t.throwsAsync(imported(t, lies), { code: 'ERR_PROTOCOL' });
});
