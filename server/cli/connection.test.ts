import test from 'ava';
import { readConnection, type ConnectionArguments } from './connection.js';

const args: ConnectionArguments = {
  connect: 'db1',
  token: undefined,
  tokenFile: undefined,
  tls: false,
  tlsCa: undefined,
  tlsCert: undefined,
  tlsKey: undefined,
  secrets: undefined,
  timeout: '5s',
};

test("operators' commands take the address that clients take", (t) => {
  const plain = readConnection({ ...args, connect: 'farkv://secret@db1,db2:1?transport=tcp' });
  t.like(plain, { addresses: ['db1:7400', 'db2:1'], token: 'secret', tls: undefined });
  t.truthy(readConnection({ ...args, connect: 'farkvs://db1' }).tls);
  t.is(readConnection({ ...args, connect: 'farkv://secret@db1', token: 'other' }).token, 'other');
  t.throws(() => readConnection({ ...args, connect: 'http://db1' }), { code: 'ERR_ADDRESS_INVALID' });
});
