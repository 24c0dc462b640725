import test from 'ava';
import { isOwnHost, tokenIn } from './access.js';

const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString('base64')}`;

test('a token comes as Bearer, or as the password of Basic under any name', (t) => {
  t.is(tokenIn('Bearer open'), 'open');
  t.is(tokenIn('bearer open '), 'open');
  t.is(tokenIn(basic('anybody:open:sesame')), 'open:sesame');
  t.is(tokenIn(basic(':open')), 'open');
  for (const none of [undefined, '', 'Bearer', 'Basic', basic('open'), basic('open:'), 'Digest x', 'Bearer a b'])
    t.is(tokenIn(none), undefined, none);
  t.is(tokenIn(`Bearer ${'a'.repeat(1025)}`), undefined);
});

test('at a loopback address a request names this machine, or a name of --http-listen', (t) => {
  const listen = [{ host: 'farkv.test', port: 9100 }];
  for (const own of ['localhost', 'LOCALHOST:9100', '127.0.0.1:1', '127.9.9.9', '[::1]:9100', 'farkv.test:9100'])
    t.true(isOwnHost(own, '127.0.0.1', listen), own);
  for (const other of [undefined, '', 'evil.test', 'evil.test:9100', '10.0.0.1:9100', '127.0.0.1.evil.test', 'a:b:c'])
    t.false(isOwnHost(other, '127.0.0.1', listen), other);
  t.false(isOwnHost('evil.test', '::ffff:127.0.0.1', listen));
  t.true(isOwnHost('anything.test', '10.0.0.1', listen), 'beyond loopback a proxy may have named it');
});
