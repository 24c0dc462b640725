/** FARKV_TRACE=1: where one operation spends its time, at the client and at the owner, and no key or value in it. */
import test from 'ava';
import { Cluster, farkv } from '../support/cluster.js';

const KEY = 'a-key-that-is-private';
const VALUE = 'a-value-that-is-private';

test('the steps of an operation are written at both ends under one hash', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, env: { FARKV_TRACE: '1' } });
  const at = ['--connect', cluster.addresses.join(), '--transport', 'tcp'];
  const put = await farkv(['put', KEY, VALUE, ...at], { env: { FARKV_TRACE: '1' } });
  t.is(put.code, 0, put.stderr);
  const hash = /^farkv trace: put, namespace 0, key ([0-9a-f]{16}) of 21 B, shard \d+$/m.exec(put.stderr)?.[1];
  t.truthy(hash, put.stderr);
  t.regex(put.stderr, /^ {2}\+\d+\.\d{3} ms {2}SDK: handed to the native client$/m);
  t.regex(put.stderr, /^ {2}\+\d+\.\d{3} ms {2}native client: 1 change sent to the owner over tcp, and answered$/m);
  t.regex(put.stderr, /^ {2}\+\d+\.\d{3} ms {2}SDK: ended, with /m);
  const get = await farkv(['get', KEY, ...at], { env: { FARKV_TRACE: '1' } });
  t.is(get.stdout, `${VALUE}\n`);
  t.true(get.stderr.includes(`, key ${String(hash)} of 21 B, `), get.stderr);
  t.regex(get.stderr, /native client: (1 READ|2 READs) of \d+ B over tcp/);
  await cluster
    .server(0)
    .waitUntil(() => cluster.server(0).stderr.includes(`put of key ${String(hash)} by client `), 'the owner to say so');
  for (const text of [put.stderr, get.stderr, cluster.server(0).stderr])
    for (const secret of [KEY, VALUE]) t.false(text.includes(secret));
  const silent = await farkv(['get', KEY, ...at]);
  t.is(silent.stderr, '');
});
