/**
 * `farkv gateway` beside a real redis-server, which has to be installed (apt-get install redis-server): the same commands
 * get the same bytes. And programs for Redis run on it as they are.
 */
import test from 'ava';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { connect } from '../../client/index.js';
import { farkv } from '../support/cluster.js';
import { both, encode, Raw, startGateway, type Command } from '../support/gateway.js';
import { seeded, type Random } from '../support/random.js';

const run = promisify(execFile);

const FAR = '99999999';
/** Each is sent by itself, in this order: what an earlier one left is what a later one finds. */
const SCRIPT: readonly Command[] = [
  ...['PING', 'ping a', 'PING a b', 'ECHO', 'ECHO x', 'GET', 'GET a b', 'SET', 'SET a', 'GET none'],
  ...['SET a 1', 'GET a', 'SET a 2 NX', 'SET a 2 XX', 'SET b 2 XX', 'SET b 2 NX GET', 'SET b 3 nx get', 'GET b'],
  ...['SET a 1 EX', 'SET a 1 EX 0', 'SET a 1 EX -1', 'SET a 1 EX x', 'SET a 1 PX 1.5', 'SET a 1 NX XX', 'SET a 1 BOO'],
  ...[
    'SET a 1 EX 10 PX 10',
    'SET a 1 EX 10 EX 20',
    'SET a 1 EX 10 EXAT 20',
    'COMMAND COUNT x',
    'SET a 1 EX 10 KEEPTTL',
    'SET a 1 KEEPTTL EX 10',
    'SET a 1 EX 9223372036854775807',
  ],
  ...[`SET a 1 EX ${FAR}`, 'SET a 2 KEEPTTL', 'GET a', 'PERSIST a', 'PERSIST a', 'TTL a', 'PTTL a', 'EXPIRETIME a'],
  ...['SET a 3 GET', 'SET a 4 XX GET', 'SET none 4 XX GET', 'SET a 5 EXAT 1', 'GET a', 'SET a 5 NX PXAT 1', 'GET a'],
  ...['SET a 5', 'SET a 6 NX PXAT 1', 'GET a', 'SET a 6 XX GET EXAT 1', 'GET a', 'SET none 6 XX EXAT 1'],
  ...['SETNX c 1', 'SETNX c 2', 'GET c', 'SETEX c 0 1', 'SETEX c -1 1', `SETEX c ${FAR} 7`, 'GET c', 'PSETEX c 0 1'],
  ...[`PSETEX c ${FAR} 8`, 'GETSET c 9', 'TTL c', 'GETSET none2 9', 'GETDEL c', 'GETDEL c', 'GETDEL', 'GETSET c'],
  ...['MSET a 1 b 2 c', 'MSET a', 'MSET a 1 b 2 a 3', 'MGET a b c a', 'MGET', 'DEL a a none', 'DEL', 'UNLINK b none'],
  ...['SET n 10', 'INCR n', 'INCRBY n 5', 'DECR n', 'DECRBY n 20', 'INCRBY n x', 'INCRBY n 9223372036854775808'],
  ...['INCRBY n 9223372036854775807', 'INCR n', 'INCR new', 'DECRBY n -9223372036854775808', 'DECRBY n x', 'INCR'],
  ...['SET m -9223372036854775808', 'DECR m', 'INCR m', 'SET s text', 'INCR s', 'DECRBY s 1', 'SET z 007', 'INCR z'],
  ...['APPEND s more', 'APPEND fresh x', 'GET fresh', 'STRLEN s', 'STRLEN none', 'APPEND s', 'EXISTS s none s fresh'],
  ...[
    'TOUCH s none fresh',
    'TYPE s',
    'TYPE none',
    'TTL s',
    'TTL none',
    'PTTL none',
    'EXPIRETIME none',
    'PEXPIRETIME s',
  ],
  ...[`EXPIRE s ${FAR}`, 'APPEND s kept', 'INCR n', 'EXPIRE none 10', 'EXPIRE s x', 'EXPIRE s 9223372036854775807'],
  ...['EXPIRE s -1', 'GET s', 'SET s 1', 'PEXPIRE s 0', 'EXISTS s', 'SET s 1', 'EXPIREAT s 1', 'EXISTS s', 'SET s 1'],
  ...['SET r hello', 'GETRANGE r 0 1', 'GETRANGE r -3 -1', 'GETRANGE r 3 1', 'GETRANGE r -1 -3', 'GETRANGE r -9 9'],
  ...['GETRANGE r 5 9', 'GETRANGE none 0 -1', 'GETRANGE r x 1', 'GETRANGE r 0 1.5', 'GETRANGE r 0', 'SUBSTR r 1 2'],
  ...['SUBSTR r', 'GETRANGE r -9223372036854775808 9223372036854775807', 'GETRANGE r -2 0', 'GETRANGE r 0 -9'],
  ...['SETRANGE r 1 EY', 'GET r', 'SETRANGE r 7 end', 'GET r', 'SETRANGE new2 3 x', 'GET new2', 'SETRANGE r -1 x'],
  ...['SETRANGE r x x', 'SETRANGE r 536870912 x', 'SETRANGE r 9223372036854775807 x', 'SETRANGE r 0', 'SETRANGE r -1'],
  ...[`EXPIRE r ${FAR}`, 'SETRANGE r 0 h', 'PERSIST r', 'GETEX r', 'GETEX none3', 'GETEX none3 EX 0', 'GETEX r EX 0'],
  ...['GETEX r EX x', 'GETEX r PX -1', 'GETEX r EXAT 0', 'GETEX r NX', 'GETEX r KEEPTTL', 'GETEX r EX', 'GETEX'],
  ...['GETEX r EX 10 PX 10', 'GETEX r PERSIST EX 10', 'GETEX r EX 10 PERSIST', 'GETEX r EX 9223372036854775807'],
  ...['TTL r', `GETEX r EX ${FAR}`, 'GETEX r PERSIST', 'TTL r', 'GETEX r PERSIST', `GETEX r PX ${FAR}000`, 'PERSIST r'],
  ...['GETEX r PERSIST PERSIST', 'GETEX r PXAT 1', 'EXISTS r', 'SET r 1', 'GETEX r EXAT 1', 'GET r'],
  ...[
    'INCRBYFLOAT f 1',
    'INCRBYFLOAT f 0.1',
    'INCRBYFLOAT f 1e-3',
    'INCRBYFLOAT f -1.101',
    'INCRBYFLOAT f 3.0e3',
    'GET f',
  ],
  ...['INCRBYFLOAT f x', 'INCRBYFLOAT f 1x', 'INCRBYFLOAT f nan', 'INCRBYFLOAT f inf', 'INCRBYFLOAT f -Infinity'],
  ...['INCRBYFLOAT f 1e400', 'INCRBYFLOAT f 1e5000', 'INCRBYFLOAT f 1e-5000', 'SET f 1e400', 'INCRBYFLOAT f -1e400'],
  ...[
    'SET f 0x10',
    'INCRBYFLOAT f 0x1p-1',
    'SET f text',
    'INCRBYFLOAT f 1',
    'SET f 5.0e0',
    'INCRBYFLOAT f 0',
    'INCRBYFLOAT f',
  ],
  ...[
    'SET f 3',
    `EXPIRE f ${FAR}`,
    'INCRBYFLOAT f 1.5',
    'PERSIST f',
    'INCRBYFLOAT z2 -0',
    'INCRBYFLOAT f 1e-18',
    'GET f',
  ],
  ...[
    'SET f 1e4932',
    'INCRBYFLOAT f 1e4932',
    'GET f',
    'INCRBYFLOAT f 17179869184.3',
    'SET f -1e-19',
    'INCRBYFLOAT f 0',
  ],
  ...[
    'SCAN',
    'SCAN x',
    'SCAN 0 COUNT',
    'SCAN 0 COUNT x',
    'SCAN 0 COUNT 0',
    'SCAN 0 COUNT -1',
    'SCAN 0 BOO 1',
    'SCAN 1x',
  ],
  ...[
    'SCAN 99999999999999999999',
    'SCAN 0 TYPE list COUNT 9999',
    'SCAN 0 COUNT 99999 TYPE zset',
    'SCAN 0 MATCH',
    'SCAN 0 TYPE',
  ],
  ...['KEYS', 'KEYS a b', 'RANDOMKEY x', 'DBSIZE x', 'DBSIZE', 'KEYS new2', 'KEYS nothing*', 'KEYS ne?2', 'SELECT 9'],
  ...[
    'DBSIZE',
    'KEYS *',
    'RANDOMKEY',
    'SCAN 0',
    'SET only 1',
    'KEYS *',
    'RANDOMKEY',
    'SCAN 0 MATCH o*y',
    'SCAN 0 MATCH x*',
  ],
  ...['SCAN 0 COUNT 10 COUNT 20 MATCH x MATCH * TYPE STRING', 'SCAN +0', 'DBSIZE', 'SELECT 0'],
  ...['SELECT 9', 'FLUSHDB x', 'FLUSHDB SYNC ASYNC', 'FLUSHDB async', 'DBSIZE', 'FLUSHALL x', 'SELECT 0', 'MSETNX a'],
  ...['FUNCTION', 'FUNCTION FLUSH', 'FUNCTION FLUSH ASYNC', 'FUNCTION FLUSH x', 'FUNCTION FLUSH SYNC x'],
  ...['SET i -5', 'OBJECT ENCODING i', 'SET i 007', 'OBJECT ENCODING i', 'OBJECT ENCODING none', 'OBJECT FREQ i'],
  ...[
    `SET i ${'v'.repeat(44)}`,
    'OBJECT ENCODING i',
    `SET i ${'v'.repeat(45)}`,
    'OBJECT ENCODING i',
    'OBJECT FREQ none',
  ],
  ...['OBJECT', 'OBJECT ENCODING', 'OBJECT ENCODING a b', 'OBJECT FREQ', 'OBJECT BOO a', 'MEMORY', 'MEMORY USAGE'],
  ...[
    'MEMORY USAGE none',
    'MEMORY USAGE i SAMPLES x',
    'MEMORY USAGE i SAMPLES -1',
    'MEMORY USAGE i BOO',
    'MEMORY BOO i',
  ],
  ...['MEMORY USAGE none SAMPLES 5', 'WAIT', 'WAIT 0 1', 'WAIT x 0', 'WAIT 0 x', 'WAIT 0 -1', 'WAIT 1 1'],
  ...['SELECT 1', 'GET n', 'SET n other', 'SELECT 0', 'GET n', 'SELECT x', 'SELECT -1'],
  ...['CLIENT GETNAME', 'CLIENT SETNAME me', 'CLIENT GETNAME', 'CLIENT SETNAME', 'CLIENT BOO', 'CLIENT'],
  ...['CLIENT NO-EVICT', 'CLIENT NO-EVICT OFF', 'CLIENT NO-EVICT x', 'CLIENT LIST BOO', 'CLIENT LIST TYPE boo'],
  ...['CLIENT LIST TYPE pubsub', 'CLIENT LIST TYPE', 'CONFIG', 'CONFIG GET', 'CONFIG GET maxmemory maxmemory'],
  ...['CONFIG GET maxmemory-p*', 'CONFIG GET time?ut', 'CONFIG GET maxmemory-policy'],
  ...['AUTH', 'AUTH x', 'AUTH default x', 'AUTH other x', 'AUTH a b c', 'HELLO x', 'HELLO 1', 'HELLO 4', 'HELLO 2 BOO'],
  ...['CONFIG GET save', 'CONFIG GET appendonly', 'CONFIG GET none', 'RESET', 'CLIENT GETNAME', 'EXEC', 'DISCARD'],
].map((text) => text.split(' '));

const ODD: readonly Command[] = [
  ['SET', 'empty', ''],
  ['GET', 'empty'],
  ['STRLEN', 'empty'],
  ['APPEND', 'empty', ''],
  ['SET', 'e\r\n', 'v\r\n\0'],
  ['GET', 'e\r\n'],
  ['INCRBYFLOAT', 'empty', '1'],
  ['INCRBYFLOAT', 'float', ' 1'],
  ['INCRBYFLOAT', 'float', '1 '],
  ['INCRBYFLOAT', 'float', '1\0'],
  ['INCRBYFLOAT', 'float', ''],
  ['INCRBYFLOAT', 'float', '1'.repeat(255)],
  ['INCRBYFLOAT', 'float', '0'.repeat(5119)],
  ['INCRBYFLOAT', 'float', '0'.repeat(5120)],
  ['SETRANGE', 'none4', '600000000', ''],
  ['SETRANGE', 'none4', '-1', ''],
  ['SETRANGE', 'none4', '5', ''],
  ['EXISTS', 'none4'],
  ['SETRANGE', 'none4', '1000000', 'large'],
  ['SETRANGE', 'none4', '0', ''],
  ['GETRANGE', 'none4', '999998', '-1'],
  ['SETRANGE', 'none4', '20', '\r\n'],
  ['GETDEL', 'none4'],
  ['SET', Buffer.from([0xff, 0, 1]), Buffer.from([0xfe])],
  ['GET', Buffer.from([0xff, 0, 1])],
  ['SET', 'large', Buffer.alloc(3_000_000, 'large')],
  ['GET', 'large'],
  ['MGET', 'large', 'none', 'large'],
  ['STRLEN', 'large'],
  ['GETDEL', 'large'],
  ['SET', 'k'.repeat(1024), 'x'],
  ['GET', 'k'.repeat(1024)],
];

test('each command, good and bad, is answered with the bytes of redis-server', async (t) => {
  const { farkv, redis } = await both(t);
  for (const command of [...SCRIPT, ...ODD])
    t.is(await farkv.ask(encode(command)), await redis.ask(encode(command)), JSON.stringify(command).slice(0, 200));
  await Promise.all([farkv, redis].map((one) => one.ask(encode(['HELLO', '3']))));
  for (const words of ['GET none', 'MGET none', 'CONFIG GET save', 'CLIENT GETNAME', 'INCR n3', 'SET n3 x GET'])
    t.is(await farkv.ask(encode(words.split(' '))), await redis.ask(encode(words.split(' '))), `RESP3: ${words}`);
  t.regex(await farkv.ask(encode(['INFO'])), /^=\d+\r\ntxt:# Server\r\n/);
});

test('bytes that are no commands are refused with the words of redis-server, and inline commands are taken', async (t) => {
  const { port, redisPort } = await both(t);
  for (const text of [
    'PING\r\n',
    'set  "a b" \'c\'\r\nget "a b"\n\r\n',
    'get "a\r\n',
    '*1\r\n:1\r\n',
    '*x\r\n',
    '*1\r\n$x\r\n',
    '*1\r\n$-1\r\n',
    '*0\r\n*-5\r\nPING\r\n',
  ]) {
    const [ours, theirs] = await Promise.all([port, redisPort].map((to) => new Raw(t, to).ask(Buffer.from(text))));
    t.is(ours, theirs, JSON.stringify(text.slice(0, 60)));
  }
});

function randomCommand(random: Random): Command {
  const of = <T>(list: readonly T[]): T => random.pick(list);
  const key = (): string => `key${random.below(5)}`;
  const value = (): string =>
    of(['', '0', '7', '-3', '9223372036854775807', 'text', '007', ' 1', 'v'.repeat(random.below(400))]);
  const options = (): string[] =>
    [
      of(['NX', 'XX', '']),
      of(['GET', '']),
      of(['KEEPTTL', '', '', '']),
      ...of([['EX', FAR], ['PXAT', '5'], []]),
    ].filter((word) => word !== '');
  return of<() => string[]>([
    () => ['GET', key()],
    () => ['GET', key()],
    () => ['SET', key(), value(), ...options()],
    () => ['SET', key(), value()],
    () => ['SETNX', key(), value()],
    () => ['GETSET', key(), value()],
    () => ['GETDEL', key()],
    () => ['MSET', key(), value(), key(), value(), key(), value()],
    () => ['MGET', key(), key(), key()],
    () => ['DEL', key(), key()],
    () => ['EXISTS', key(), key()],
    () => ['INCR', key()],
    () => ['INCRBY', key(), of(['1', '-5', '9223372036854775807', 'x'])],
    () => ['DECRBY', key(), of(['1', '-9223372036854775808', '3'])],
    () => ['APPEND', key(), value()],
    () => ['GETRANGE', key(), of(['0', '-3', '2']), of(['-1', '1', '9'])],
    () => ['SETRANGE', key(), of(['0', '3', '-1']), value()],
    () => ['INCRBYFLOAT', key(), of(['1', '0.25', '-1e2', 'x', 'inf'])],
    () => ['GETEX', key(), ...of([[], ['PERSIST'], ['EX', FAR], ['PXAT', '5'], ['EX', '0']])],
    () => ['STRLEN', key()],
    () => ['PERSIST', key()],
    () => ['EXPIRE', key(), of([FAR, '-1', '0'])],
    () => ['TYPE', key()],
    () => ['PING'],
  ])();
}

for (const transport of ['shm', 'tcp'])
  test(`random pipelines get the bytes of redis-server over ${transport}`, async (t) => {
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

test('the SDK and Redis programs see each other: bytes, namespaces, times to live, other codecs', async (t) => {
  const { cluster, port } = await startGateway(t, '--namespace', '100');
  const client = await connect({ servers: cluster.addresses, namespace: 100, timeoutMs: 60_000 });
  t.teardown(() => client.close());
  const redis = new Redis({ host: '127.0.0.1', port, db: 2 });
  t.teardown(() => redis.disconnect());
  await redis.set('a', Buffer.from([0xff, 0]), 'PX', 3_600_000);
  const entry = await client.namespace(102).getEntry('a');
  t.deepEqual(entry?.value, Buffer.from([0xff, 0]));
  t.true(Math.abs((entry?.expiresAtMs ?? 0) - Date.now() - 3_600_000) < 120_000);
  await client.namespace(102).put('b', '5', { ttlMs: 3_600_000 });
  t.is(await redis.incr('b'), 6);
  t.true((await redis.pttl('b')) > 3_000_000);
  t.is(
    await redis.expiretime('b'),
    Math.round(Number((await client.namespace(102).getEntry('b'))?.expiresAtMs) / 1000),
  );
  await client.namespace(102).withCodec('msgpack').put('c', { some: 'object' });
  await t.throwsAsync(redis.get('c'), { message: /^WRONGTYPE / });
  await t.throwsAsync(redis.append('c', 'x'), { message: /^WRONGTYPE / });
  t.deepEqual(await redis.mget('a', 'c'), ['\ufffd\0', null]);
  await t.throwsAsync(redis.set('k'.repeat(1025), 'x'), { message: /1025 bytes.*see docs\/gateway\.md/ });
  await t.throwsAsync(redis.lpush('l', 'x'), { message: "ERR unknown command 'lpush', see docs/gateway.md" });
  // Many connections, and each counts once.
  const clients = Array.from({ length: 40 }, () => new Redis({ host: '127.0.0.1', port }));
  await Promise.all(clients.map((one) => Promise.all(Array.from({ length: 100 }, () => one.incr('counter')))));
  for (const one of clients) one.disconnect();
  t.is(String(await client.get('counter')), '4000');
});

test('redis-cli and redis-benchmark run as they are', async (t) => {
  const { port, stop } = await startGateway(t);
  const where = ['-h', '127.0.0.1', '-p', String(port)];
  t.is((await run('redis-cli', [...where, 'SET', 'a', '1'])).stdout, 'OK\n');
  t.is((await run('redis-cli', [...where, '-n', '3', 'INCR', 'a'])).stdout, '1\n');
  t.is((await run('redis-cli', [...where, '--scan', '--pattern', 'a*'])).stdout, 'a\n');
  t.is((await run('redis-cli', [...where, '-3', 'MGET', 'a', 'b'])).stdout, '1\n\n');
  for (const pipelined of ['1', '16']) {
    const args = [...where, '-t', 'set,get,incr,mset', '-n', '5000', '-r', '1000', '-P', pipelined, '--csv'];
    const { stdout, stderr } = await run('redis-benchmark', args);
    t.regex(stdout, /^"SET",.*\n"GET",.*\n"INCR",.*\n"MSET \(10 keys\)",/m);
    t.notRegex(stderr, /ERR|WARN/);
  }
  const open = new Raw(t, port);
  t.is(await open.ask(encode(['PING'])), '+PONG\r\n');
  t.deepEqual(await stop(), [0, null], 'it ends as told, with a connection open');
});

test('what cannot be served is said before anything is: beyond loopback, a port in use', async (t) => {
  const { cluster, port } = await startGateway(t);
  const gateway = (...args: string[]) =>
    farkv(['gateway', ...args], { env: { FARKV_CONNECT: cluster.addresses.join(',') } });
  const open = await gateway('--listen', '0.0.0.0:0');
  t.is(open.code, 2);
  t.regex(open.stderr, /^farkv gateway: --listen 0\.0\.0\.0:0: .* listen on 127\.0\.0\.1, or say --insecure$/m);
  const taken = await gateway('--listen', `127.0.0.1:${port}`);
  t.is(taken.code, 1);
  t.regex(taken.stderr, /the port is taken, perhaps by a redis-server; choose another one/);
  const elsewhere = await gateway('--listen', '192.0.2.1:0', '--insecure');
  t.is(elsewhere.code, 2);
  t.regex(elsewhere.stderr, /^farkv gateway: --listen 192\.0\.2\.1:0: this host has no such address$/m);
  t.is((await gateway('--max-connections', '0')).code, 2);
});

test('SIGHUP, SIGUSR1 and SIGUSR2 end no gateway', async (t) => {
  const { port, signal, stop } = await startGateway(t);
  const raw = new Raw(t, port);
  for (const name of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) {
    t.true(signal(name));
    t.is(await raw.ask(encode(['PING'])), '+PONG\r\n', name);
  }
  t.deepEqual(await stop(), [0, null]);
});
