/** The HTTP port of a server with a certificate. */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { Cluster } from '../support/cluster.js';
import { ask } from '../support/http.js';
import { TLS_OPTIONS, tlsFile } from '../support/tls-files.js';

test('with a certificate the port speaks TLS alone', async (t) => {
  const cluster = await Cluster.start(t, { args: ['--http-listen', '127.0.0.1:0', ...TLS_OPTIONS], shards: 2 });
  const at = cluster.server(0).readyLine?.http[0] ?? '';
  const ca = readFileSync(tlsFile('ca.pem'));
  t.like(await ask(at, '/healthz', { ca }), { status: 200, text: 'ok\n' });
  t.is((await ask(at, '/metrics', { ca })).status, 200);
  await t.throwsAsync(ask(at, '/healthz'));
});
