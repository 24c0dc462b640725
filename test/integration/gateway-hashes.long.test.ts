/**
 * Hashes of `farkv gateway` beside those of a real redis-server, which has to be installed (apt-get install redis-server):
 * the same commands get the same bytes. Hashes are small here: of large ones redis-server has no order.
 */
import test from 'ava';
import { connect } from '../../client/index.js';
import { both, encode, Raw, startGateway, type Command } from '../support/gateway.js';
import { seeded, type Random } from '../support/random.js';

const FAR = '99999999';
const SCRIPT: readonly Command[] = [
  ...['HSET', 'HSET h', 'HSET h a', 'HSET h a 1 b', 'HSET h a 1', 'HSET h a 2 b 3', 'HSET h c 1 c 2 a 1', 'HGET h c'],
  ...[
    'HGET',
    'HGET h',
    'HGET h a b',
    'HGET h none',
    'HGET none a',
    'HMSET h',
    'HMSET h a',
    'HMSET h a 1 b',
    'HMSET h d 4',
  ],
  ...[
    'HMGET',
    'HMGET h',
    'HMGET h a none b a',
    'HMGET none a b',
    'HGETALL',
    'HGETALL h',
    'HGETALL none',
    'HGETALL h x',
  ],
  ...['HKEYS', 'HKEYS h', 'HKEYS none', 'HVALS', 'HVALS h', 'HVALS none', 'HLEN', 'HLEN h', 'HLEN none', 'HLEN h x'],
  ...[
    'HEXISTS',
    'HEXISTS h',
    'HEXISTS h a',
    'HEXISTS h x',
    'HEXISTS none a',
    'HSTRLEN h',
    'HSTRLEN h a',
    'HSTRLEN none a',
  ],
  ...[
    'HSETNX h a',
    'HSETNX h a 9',
    'HSETNX h e 5',
    'HSETNX new e 5',
    'HGETALL new',
    'HSETNX h e 5 6',
    'TYPE h',
    'TYPE new',
  ],
  ...[
    'HDEL',
    'HDEL h',
    'HDEL h none',
    'HDEL h a none b a',
    'HDEL none a',
    'HGETALL h',
    'HDEL new e',
    'EXISTS new',
    'TYPE new',
  ],
  ...['HINCRBY', 'HINCRBY n a', 'HINCRBY n a x', 'HINCRBY n a 1.5', 'HINCRBY n a 5', 'HINCRBY n a -7', 'HINCRBY n b 0'],
  ...['HINCRBY n a 9223372036854775807', 'HINCRBY n a 9223372036854775807', 'HINCRBY n a 9223372036854775808'],
  ...[
    'HSET n text x',
    'HINCRBY n text 1',
    'HSET n z 007',
    'HINCRBY n z 1',
    'HSET n e 1e3',
    'HINCRBY n e 1',
    'HINCRBY n a 1 2',
  ],
  ...['HSET n least -9223372036854775808', 'HINCRBY n least -1', 'HINCRBY n least 1', 'HGETALL n'],
  ...[
    'SET s text',
    'HSET s a 1',
    'HMSET s a 1',
    'HSETNX s a 1',
    'HGET s a',
    'HMGET s a',
    'HGETALL s',
    'HKEYS s',
    'HVALS s',
  ],
  ...['HLEN s', 'HEXISTS s a', 'HSTRLEN s a', 'HDEL s a', 'HINCRBY s a 1', 'HINCRBY s a x', 'HSET s a', 'GET s'],
  ...[
    'GET h',
    'STRLEN h',
    'GETRANGE h 0 1',
    'APPEND h x',
    'INCR h',
    'INCRBYFLOAT h 1',
    'SETRANGE h 0 x',
    'SETRANGE h 0',
  ],
  ...['GETDEL h', 'GETEX h', 'GETEX h EX 10', 'GETSET h x', 'SET h x GET', 'SET h x NX', 'SETNX h x', 'MGET h s'],
  ...['OBJECT ENCODING h', `HSET h long ${'v'.repeat(65)}`, 'OBJECT ENCODING h', 'EXISTS h', 'OBJECT ENCODING none'],
  ...[`EXPIRE n ${FAR}`, 'HSET n new 1', 'HDEL n new', 'HINCRBY n b 1', 'PERSIST n', 'PERSIST n', 'TTL n'],
  ...['EXPIRE n -1', 'EXISTS n', 'HGETALL n', 'HSET n a 1', 'TTL n', 'DEL n', 'HLEN n', 'HSET n a 1', 'UNLINK n s'],
  ...['SCAN 0 COUNT 9999 TYPE hash', 'SCAN 0 COUNT 9999 TYPE string', 'SCAN 0 COUNT 9999 TYPE HASH', 'DBSIZE'],
  ...['SET h x', 'TYPE h', 'GET h', 'DEL h', 'HSET h a 1', 'MSET h x', 'GET h', 'FLUSHDB', 'HGETALL h'],
].map((text) => text.split(' '));

const ODD: readonly Command[] = [
  ['HSET', 'h', '', ''],
  ['HGET', 'h', ''],
  ['HGETALL', 'h'],
  ['HDEL', 'h', ''],
  ['EXISTS', 'h'],
  ['HSET', 'h', Buffer.from([0xff, 0, 1]), Buffer.from([0xfe, 13, 10]), '\r\n', '\0'],
  ['HGET', 'h', Buffer.from([0xff, 0, 1])],
  ['HGET', 'h', Buffer.from([0xff, 0])],
  ['HKEYS', 'h'],
  ['HINCRBY', 'h', '', '5'],
  ['HSET', 'h', 'n', ' 1'],
  ['HINCRBY', 'h', 'n', '1'],
  ['HSET', 'h', 'n', '1'.repeat(300)],
  ['HINCRBY', 'h', 'n', '1'],
  ['HSET', 'h', 'large', Buffer.alloc(8000, 'large')],
  ['HSTRLEN', 'h', 'large'],
  ['HGET', 'h', 'large'],
  ['HDEL', 'h', 'large', 'n', '', '\r\n', Buffer.from([0xff, 0, 1])],
  ['EXISTS', 'h'],
];

test('each command of hashes, good and bad, is answered with the bytes of redis-server', async (t) => {
  const { farkv, redis } = await both(t);
  const same = async (command: Command, of: string): Promise<void> => {
    const bytes = encode(command);
    t.is(await farkv.ask(bytes), await redis.ask(bytes), `${of}: ${JSON.stringify(command).slice(0, 200)}`);
  };
  for (const command of [...SCRIPT, ...ODD]) await same(command, 'RESP2');
  await Promise.all([farkv, redis].map((one) => one.ask(encode(['HELLO', '3']))));
  for (const command of SCRIPT) await same(command, 'RESP3');
});

function randomCommand(random: Random): Command {
  const of = <T>(list: readonly T[]): T => random.pick(list);
  const key = (): string => `key${random.below(3)}`;
  const field = (): string => of(['a', 'b', 'c', 'd', '', 'ab', 'ba']);
  const value = (): string =>
    of(['', '0', '7', '-3', '9223372036854775807', 'text', '007', 'v'.repeat(random.below(64))]);
  const pairs = (): string[] => Array.from({ length: 1 + random.below(4) }, () => [field(), value()]).flat();
  const fields = (): string[] => Array.from({ length: 1 + random.below(5) }, field);
  return of<() => string[]>([
    () => ['HSET', key(), ...pairs()],
    () => ['HSET', key(), ...pairs()],
    () => ['HMSET', key(), ...pairs()],
    () => ['HSETNX', key(), field(), value()],
    () => ['HDEL', key(), ...fields()],
    () => ['HDEL', key(), field()],
    () => ['HINCRBY', key(), field(), of(['1', '-5', '9223372036854775807', 'x'])],
    () => ['HGET', key(), field()],
    () => ['HMGET', key(), ...fields()],
    () => ['HGETALL', key()],
    () => ['HKEYS', key()],
    () => ['HVALS', key()],
    () => ['HLEN', key()],
    () => ['HEXISTS', key(), field()],
    () => ['HSTRLEN', key(), field()],
    () => ['EXPIRE', key(), of([FAR, FAR, '-1'])],
    () => ['PERSIST', key()],
    () => ['TYPE', key()],
    () => ['SET', key(), value()],
    () => ['APPEND', key(), value()],
    () => ['GET', key()],
    () => ['DEL', key()],
  ])();
}

for (const transport of ['shm', 'tcp'])
  test(`random pipelines of hashes get the bytes of redis-server over ${transport}`, async (t) => {
    const { farkv, redis } = await both(t, '--transport', transport, '--strict');
    const random = seeded(t, import.meta.filename);
    for (let round = 0; round < 150; round++) {
      const commands = Array.from({ length: 1 + random.below(60) }, () => randomCommand(random));
      const bytes = Buffer.concat(commands.map(encode));
      const [ours, theirs] = await Promise.all([farkv.ask(bytes), redis.ask(bytes)]);
      if (ours === theirs) continue;
      t.is(ours, theirs, commands.map((command) => command.join(' ').slice(0, 80)).join('\n'));
      return;
    }
    t.pass();
  });

test('many connections change one hash, and each change counts once; the SDK sees bytes of another codec', async (t) => {
  const { cluster, port } = await startGateway(t);
  const clients = Array.from({ length: 20 }, () => new Raw(t, port));
  const one = Buffer.concat(Array.from({ length: 50 }, () => encode(['HINCRBY', 'h', 'n', '1'])));
  await Promise.all(
    clients.map((client, i) => client.ask(Buffer.concat([one, encode(['HSET', 'h', `field${i}`, 'x'])]))),
  );
  const [first = new Raw(t, port)] = clients;
  t.is(await first.ask(encode(['HGET', 'h', 'n'])), '$4\r\n1000\r\n');
  t.is(await first.ask(encode(['HLEN', 'h'])), ':21\r\n');
  const client = await connect({ servers: cluster.addresses, timeoutMs: 60_000 });
  t.teardown(() => client.close());
  const bytes = await client.get('h');
  if (bytes === undefined) throw new Error('no hash');
  // As a restore does it.
  const hashes = client.withCodec({ id: 2, name: 'hash', encode: (value: Buffer) => value, decode: (value) => value });
  await hashes.put('copy', bytes);
  t.is(await first.ask(encode(['HGETALL', 'copy'])), await first.ask(encode(['HGETALL', 'h'])));
  t.is(await first.ask(encode(['HINCRBY', 'copy', 'n', '1'])), ':1001\r\n');
  await t.throwsAsync(client.withCodec('msgpack').get('h'), { code: 'ERR_CODEC', message: /"hash" \(number 2\)/ });
  await t.throwsAsync(client.increment('h'), { code: 'ERR_CODEC' });
});
