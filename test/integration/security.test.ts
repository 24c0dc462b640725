import test from 'ava';
import { readFileSync } from 'node:fs';
import { connect as connectTls } from 'node:tls';
import { once } from 'node:events';
import { Cluster, farkv } from '../support/cluster.js';
import { TLS_OPTIONS, tlsFile } from '../support/tls-files.js';
import { statusWhen, whole } from '../support/status.js';

test.serial('a token is asked for, and a wrong one is 77', async (t) => {
  const cluster = await Cluster.start(t, { memory: '32mb', env: { FARKV_OPERATOR_TOKEN: 'right' } });
  const status = (...args: string[]) => farkv(['status', '--connect', cluster.server(0).address, ...args]);
  t.is((await status('--token', 'right')).code, 0);
  const none = await status();
  t.is(none.code, 77);
  t.regex(none.stderr, /wants a token of an operator/);
  t.is((await status('--token', 'wrong')).code, 77);
  t.is((await farkv(['status', '--connect', cluster.server(0).address], { env: { FARKV_TOKEN: 'right' } })).code, 0);
});

test.serial('three servers with TLS and a token; only TLS 1.3 with a trusted authority is spoken', async (t) => {
  const cluster = await Cluster.start(t, {
    servers: 3,
    shards: 3,
    memory: '32mb',
    args: [...TLS_OPTIONS, '--token', 'of clients', '--operator-token', 'right', '--peer-token', 'of servers'],
  });
  const { address } = cluster.server(1);
  await statusWhen(address, whole, { token: 'right', ca: readFileSync(tlsFile('ca.pem')) });

  t.is(
    (await farkv(['status', '--connect', address, '--token', 'right', '--tls-ca', tlsFile('stranger.pem')])).code,
    77,
  );
  for (const command of [['status'], ['get', 'a']]) {
    const without = await farkv([...command, '--connect', address, '--token', 'right', '--timeout', '1s']);
    t.is(without.code, 69, 'without TLS');
    t.regex(
      without.stderr,
      /closed the connection without an answer: does it want TLS\?|was closed without an answer: does it want TLS\?/,
    );
  }
  for (const other of ['of servers', 'of clients'])
    t.is((await farkv(['status', '--connect', address, '--token', other, '--tls-ca', tlsFile('ca.pem')])).code, 77);

  const old = connectTls({
    host: '127.0.0.1',
    port: Number(address.split(':')[1]),
    rejectUnauthorized: false,
    maxVersion: 'TLSv1.2',
  });
  t.teardown(() => old.destroy());
  await t.throwsAsync(once(old, 'secureConnect'), { message: /protocol version|reset|disconnected/i });
});
