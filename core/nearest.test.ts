import test from 'ava';
import { nearest } from './nearest.js';

test('a misspelt name finds the one that was meant', (t) => {
  const known = ['recordcount', 'operationcount', 'readproportion', 'insertproportion'];
  t.is(nearest('recordcnt', known), 'recordcount');
  t.is(nearest('ReadProportion', known), 'readproportion');
  t.is(nearest('operatoincount', known), 'operationcount');
});

test('a name that is like nothing known finds nothing', (t) => {
  t.is(nearest('colour', ['recordcount', 'target']), undefined);
  t.is(nearest('x', []), undefined);
});

test('the beginning of a name, and what other programs call it, find it too', (t) => {
  t.is(nearest('ttl', ['timeoutMs', 'signal', 'ttlMs', 'flags']), 'ttlMs');
  t.is(nearest('timeout', ['connectTimeoutMs', 'timeoutMs']), 'timeoutMs');
  for (const name of ['host', 'url', 'port']) t.is(nearest(name, ['servers', 'token', 'tls']), 'servers', name);
  t.is(nearest('password', ['servers', 'token']), 'token');
  t.is(nearest('host', ['recordcount']), undefined);
});
