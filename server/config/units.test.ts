import test from 'ava';
import { formatHostPort, formatDuration, isLoopback, parseDuration, parseHostPort } from './units.js';

test('durations are milliseconds unless they say otherwise', (t) => {
  t.deepEqual(
    ['1500', '500ms', '2s', '1.5 s', '2m', '1h', 7].map(parseDuration),
    [1500, 500, 2000, 1500, 120_000, 3_600_000, 7],
  );
  for (const bad of ['', 's', '-5', '5 days', null]) t.throws(() => parseDuration(bad), { message: /is not a time/ });
});

test('addresses are host and port, IPv6 in brackets', (t) => {
  for (const text of ['127.0.0.1:7400', '[::1]:0', 'db-1.example.net:65535', '[fe80::1%eth0]:1'])
    t.is(formatHostPort(parseHostPort(text)), text);
  for (const bad of [
    '',
    '7400',
    '127.0.0.1',
    '::1:7400',
    'a:b',
    'host:65536',
    'host:-1',
    'a b:1',
    '[::1]',
    'http://x:1',
  ])
    t.throws(() => parseHostPort(bad), { message: /is not an address/ }, bad);
});

test('loopback is told from the rest', (t) => {
  for (const host of ['127.0.0.1', '127.8.8.8', '::1', 'localhost', '::ffff:127.0.0.1']) t.true(isLoopback(host), host);
  for (const host of ['0.0.0.0', '::', '10.0.0.1', '128.0.0.1', 'example.net', '127.example.net'])
    t.false(isLoopback(host), host);
});

test('a time is given in the unit that fits', (t) => {
  t.deepEqual([0, 999, 1500, 123_456, 2e6, 1.234e9, 90e9, 5_400e9, 36 * 3600e9].map(formatDuration), [
    '0 ns',
    '999 ns',
    '1.5 µs',
    '123 µs',
    '2 ms',
    '1.23 s',
    '1.5 min',
    '1.5 h',
    '1.5 d',
  ]);
});
