import test from 'ava';
import { POLLING } from '../core/polling.js';
import { TRANSPORT_CHOICES } from '../core/providers.js';
import { FarkvError } from './errors.js';
import { IN_ADDRESS, parseOptions, parseServer, type ConnectOptions } from './options.js';

test('addresses in all their forms', (t) => {
  t.deepEqual(parseOptions('db1:7500').servers, ['db1:7500']);
  t.deepEqual(parseOptions('db1').servers, ['db1:7400']);
  t.deepEqual(parseOptions('[::1]').servers, ['[::1]:7400']);
  t.deepEqual(parseOptions('db1:1, db2:2,db1:1').servers, ['db1:1', 'db2:2']);
  t.deepEqual(parseOptions(['db1:1', 'farkv://db2,db3:3?strict=true']).servers, ['db1:1', 'db2:7400', 'db3:3']);
  t.deepEqual(parseOptions({ servers: ['a:1', '[fe80::1%eth0]:2'] }).servers, ['a:1', '[fe80::1%eth0]:2']);
  const settings = parseOptions('farkvs://se%40cret@db1,db2:7401/?transport=tcp&strict=true&namespace=7&timeoutMs=250');
  t.deepEqual(settings.servers, ['db1:7400', 'db2:7401']);
  t.is(settings.token, 'se@cret');
  t.deepEqual(settings.tls, { value: {} });
  t.is(settings.transport, 'tcp');
  t.true(settings.strict);
  t.is(settings.namespace, 7);
  t.is(settings.timeoutMs, 250);
});

test('the location cache has a size, which may be none', (t) => {
  t.is(parseOptions('db1').cachedLocations, 262_144);
  t.is(parseOptions('farkv://db1?cachedLocations=0').cachedLocations, 0);
  t.is(parseOptions({ servers: 'db1', cachedLocations: 2 ** 28 }).cachedLocations, 2 ** 28);
  for (const cachedLocations of [-1, 1.5, 2 ** 28 + 1])
    t.throws(() => parseOptions({ servers: 'db1', cachedLocations }), { code: 'ERR_CONFIG' });
});

test('options beside the address override those in it', (t) => {
  const settings = parseOptions({ servers: 'farkv://old@db1?transport=tcp', token: 'new', transport: 'shm' });
  t.is(settings.token, 'new');
  t.is(settings.transport, 'shm');
});

test('addresses that are none', (t) => {
  for (const text of ['', 'db1:0', 'db1:70000', 'db1:x', 'http://db1', '::1', 'a b', 'user@db1:1', 'db1:1,']) {
    t.throws(() => parseOptions(text), { code: 'ERR_ADDRESS_INVALID' }, text);
  }
  t.throws(() => parseServer('[::1'), { code: 'ERR_ADDRESS_INVALID' });
});

test('unknown options name the nearest known one', (t) => {
  t.throws(() => parseOptions({ servers: 'a', transprot: 'tcp' } as unknown as ConnectOptions), {
    code: 'ERR_CONFIG',
    message: 'unknown option transprot; did you mean transport?',
  });
  t.throws(() => parseOptions('farkv://a?timeout=5'), {
    code: 'ERR_CONFIG',
    message: /unknown option in the address timeout; did you mean timeoutMs/,
  });
  t.throws(() => parseOptions('farkv://a?token=x'), { code: 'ERR_CONFIG' });
});

test('wrong values are refused', (t) => {
  const wrong: Record<string, unknown>[] = [
    { servers: undefined },
    { servers: [] },
    { servers: [5] },
    { servers: null },
    { token: '' },
    { token: 5 },
    { transport: 'rdma' },
    { strict: 'yes' },
    { tls: 'on' },
    { maxOutstanding: 0 },
    { maxOutstanding: 65_537 },
    { maxQueued: -1 },
    { polling: 'often' },
    { polling: 50 },
    { onEvent: 'log' },
    { signal: {} },
    { connectTimeoutMs: 0 },
    { timeoutMs: 0 },
    { timeoutMs: 2 ** 31 },
    { namespace: 70_000 },
    { namespace: -1 },
    { unavailableAfterMs: 0 },
    { unavailableAfterMs: 1.5 },
    { unavailableAfterMs: Number.NaN },
  ];
  for (const options of wrong)
    t.throws(() => parseOptions({ servers: 'a', ...options }), { code: 'ERR_CONFIG' }, JSON.stringify(options));
  for (const servers of [[], ['a', 5], ['']])
    t.throws(() => parseOptions(servers as string[]), undefined, JSON.stringify(servers));
  t.throws(() => parseOptions(undefined as unknown as string), { code: 'ERR_CONFIG' });
  t.throws(() => parseOptions('farkv://a?strict=perhaps'), { code: 'ERR_CONFIG' });
});

test('each option that an address may have is taken from its text', (t) => {
  const texts: Readonly<Record<string, readonly [string, unknown][]>> = {
    transport: [...TRANSPORT_CHOICES].map((one) => [one, one]),
    polling: [...POLLING].map((one) => [one, one]),
    strict: [
      ['true', true],
      ['false', false],
    ],
  };
  for (const name of IN_ADDRESS)
    for (const [text, value] of texts[name] ?? [['7', 7]]) {
      const settings: object = parseOptions(`farkv://a?${name}=${text}`);
      t.like(settings, { [name]: value }, `${name}=${text}`);
    }
  t.throws(() => parseOptions('farkv://a?polling=1'), { code: 'ERR_CONFIG' });
});

test('how long an absent owner is waited for: three seconds, what is asked for, or for ever', (t) => {
  t.is(parseOptions('a').unavailableAfterMs, 3000);
  t.is(parseOptions('farkv://a?unavailableAfterMs=50').unavailableAfterMs, 50);
  t.is(
    parseOptions({ servers: 'a', unavailableAfterMs: Number.POSITIVE_INFINITY }).unavailableAfterMs,
    Number.POSITIVE_INFINITY,
  );
  t.is(parseOptions('farkv://a?unavailableAfterMs=Infinity').unavailableAfterMs, Number.POSITIVE_INFINITY);
});

test('a token that is not encoded as addresses are is an address that is not valid', (t) => {
  t.throws(() => parseOptions('farkv://100%@db1'), {
    instanceOf: FarkvError,
    code: 'ERR_ADDRESS_INVALID',
    message: /%25/,
  });
});
