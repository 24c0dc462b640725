import test from 'ava';
import { parseClusterAddress, parseServerAddress } from './address.js';

const read = (text: string) => parseClusterAddress(text, parseServerAddress);

test('the port of an address to dial may be left out', (t) => {
  t.deepEqual(read('db1, db1:1,127.0.0.1,[::1],[::1]:9').servers, [
    'db1:7400',
    'db1:1',
    '127.0.0.1:7400',
    '[::1]:7400',
    '[::1]:9',
  ]);
  for (const bad of ['', '::1', 'a b', ':7400', 'http://db1', 'farkv://']) t.throws(() => read(bad), undefined, bad);
});

test('an address of a cluster says its servers, token, TLS and options', (t) => {
  t.deepEqual(read('farkvs://a%20b@db1,db2:1?transport=tcp&strict=true'), {
    servers: ['db1:7400', 'db2:1'],
    token: 'a b',
    tls: true,
    query: new Map([
      ['transport', 'tcp'],
      ['strict', 'true'],
    ]),
  });
  for (const token of ['100%', '%zz', '%ff'])
    t.throws(() => read(`farkv://${token}@db1`), { message: /^the token in the address has a % .* write %25 for %$/ });
  t.deepEqual(read('farkv://db1/'), { servers: ['db1:7400'], query: new Map() });
});
