/** `farkv ready`, as a health check of a container calls it. */
import test from 'ava';
import { Cluster, farkv, freePorts } from '../support/cluster.js';
import { TLS_OPTIONS } from '../support/tls-files.js';

test('farkv ready finds the port that the environment names, and ends with 0 once the server serves', async (t) => {
  const [port = 0] = await freePorts(1);
  const env = { FARKV_HTTP_LISTEN: `0.0.0.0:${port}` };
  const before = await farkv(['ready'], { env });
  t.is(before.code, 69);
  t.regex(before.stderr, new RegExp(`^farkv ready: 127.0.0.1:${port} does not answer http: `));
  await Cluster.start(t, { args: ['--http-listen', `127.0.0.1:${port}`] });
  t.like(await farkv(['ready'], { env }), { code: 0, stdout: 'ready\n', stderr: '' });
  t.like(await farkv(['ready', `127.0.0.1:${port}`, '--live']), { code: 0, stdout: 'ok\n' });
  t.like(await farkv(['ready', `https://127.0.0.1:${port}`]), {
    code: 69,
    stderr: `farkv ready: 127.0.0.1:${port} speaks http, and was asked by https: farkv ready http://127.0.0.1:${port}\n`,
  });
});

test('a server that waits for others is live and not ready', async (t) => {
  const [port = 0] = await freePorts(1);
  const args = ['--http-listen', `127.0.0.1:${port}`];
  const cluster = await Cluster.start(t, { servers: 3, absent: [1, 2], ready: false, args });
  await cluster.server(0).said('waiting for');
  t.like(await farkv(['ready', `127.0.0.1:${port}`, '--live']), { code: 0, stdout: 'ok\n' });
  const waiting = await farkv(['ready', `127.0.0.1:${port}`]);
  t.is(waiting.code, 1);
  t.regex(waiting.stderr, /^farkv ready: .+\n$/);
});

test('farkv ready speaks TLS to a server with certificates', async (t) => {
  const cluster = await Cluster.start(t, { args: ['--http-listen', '127.0.0.1:0', ...TLS_OPTIONS] });
  const at = cluster.server(0).readyLine?.http[0] ?? '';
  t.like(await farkv(['ready', `https://${at}`]), { code: 0, stdout: 'ready\n' });
  t.like(await farkv(['ready', at], { env: { FARKV_TLS_CERT: '/some/file' } }), { code: 0 });
  t.like(await farkv(['ready', at]), {
    code: 69,
    stderr: `farkv ready: ${at} speaks https, and was asked by http: farkv ready https://${at}\n`,
  });
  t.is((await farkv(['ready', 'no port'])).code, 2);
});
