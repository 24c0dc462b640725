/** `--http-listen` at an address that other machines reach: refused, for those with secrets, or for all by --insecure. */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { Cluster, farkv } from '../support/cluster.js';
import { ask, bearer } from '../support/http.js';
import { madeSecrets } from '../support/made-secrets.js';
import { TLS_OPTIONS } from '../support/tls-files.js';

/** An address of this host in a network; a host without one listens at all that it has. */
const OWN = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
const LISTEN = `${OWN ?? '0.0.0.0'}:0`;
const HTTP = ['--http-listen', LISTEN];
const PATHS = ['/', '/metrics', '/events'];

async function start(t: Parameters<typeof Cluster.start>[0], args: readonly string[]): Promise<string> {
  const cluster = await Cluster.start(t, { args: [...HTTP, ...args], shards: 2 });
  const port = cluster.server(0).readyLine?.http[0]?.split(':').at(-1) ?? '';
  return `${OWN ?? '127.0.0.1'}:${port}`;
}

test('without secrets it is refused, and the error says what would do', async (t) => {
  t.log(`at ${LISTEN}`);
  const next =
    'Give --secrets (farkv secrets init makes them) or --token-file and --operator-token-file (and --tls-cert, --tls-key), listen on 127.0.0.1, or say --insecure';
  for (const [listens, more, why] of [
    [LISTEN, [], ''],
    [`127.0.0.1:0,${LISTEN}`, [], ''],
    [LISTEN, TLS_OPTIONS, ' (TLS hides what is said, and lets anybody in)'],
  ] as const) {
    const given = ['server', '--listen', '127.0.0.1:0', '--http-listen', listens, ...more];
    const { code, stdout, stderr } = await farkv(given);
    t.is(code, 2, stderr);
    t.is(stdout, '');
    t.is(
      stderr.split('\n')[0],
      `farkv server: ${LISTEN} can be reached from other machines, and there is no token${why}: whoever connects could read and change everything. ${next}`,
    );
  }
});

test('with secrets it is for tokens and certificates of monitors and operators', async (t) => {
  const secrets = await madeSecrets(t, '--server', 's1', '--host', 'localhost');
  const at = await start(t, ['--secrets', secrets]);
  const read = (name: string): string => readFileSync(join(secrets, name), 'utf8');
  const tls = { ca: Buffer.from(read('ca.crt')), servername: 'localhost' };
  const certificate = (role: string) => ({ ...tls, cert: read(`${role}.crt`), key: read(`${role}.key`) });
  const token = (name: string) => ({ ...tls, ...bearer(read(name).trim()) });
  for (const path of PATHS) {
    const { status, headers, text } = await ask(at, path, { ...tls, method: 'GET' });
    t.is(status, 401, path);
    t.regex(String(headers['www-authenticate']), /^Basic realm="farkv"/);
    t.is(text, 'this server wants a token of an operator or a monitor, or a certificate\n');
  }
  for (const role of ['monitor', 'operator']) {
    t.is((await ask(at, '/metrics', certificate(role))).status, 200, `the certificate of ${role}`);
    t.is((await ask(at, '/metrics', token(`${role}-token`))).status, 200, `the token of ${role}`);
  }
  for (const role of ['writer', 'reader', 'server-s1'])
    t.is((await ask(at, '/metrics', certificate(role))).status, 401, `the certificate of ${role}`);
  for (const name of ['token', 'reader-token']) t.is((await ask(at, '/metrics', token(name))).status, 401, name);
  for (const path of ['/healthz', '/readyz', '/role']) t.is((await ask(at, path, tls)).status, 200, path);
});

test('with a token for clients alone nobody may look, and the answer says which one is missing', async (t) => {
  const at = await start(t, ['--token', 'writer']);
  for (const options of [{}, bearer('writer')]) {
    const { status, text } = await ask(at, '/metrics', options);
    t.is(status, 401);
    t.is(
      text,
      'this server was started without a token for operators or monitors (--operator-token-file, --monitor-token-file)\n',
    );
  }
  t.is((await ask(at, '/healthz')).status, 200);
});

test('with --insecure it is for everybody', async (t) => {
  const at = await start(t, ['--insecure']);
  t.like(await ask(at, '/readyz'), { status: 200, text: 'ready\n' });
  t.is((await ask(at, '/')).status, 200);
  t.is((await ask(at, '/events', { method: 'HEAD' })).status, 200);
  const { status, text } = await ask(at, '/metrics');
  t.is(status, 200);
  t.regex(text, /^farkv_build_info\{/m);
});
