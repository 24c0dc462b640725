/** Who comes in with a certificate, over TLS as it is spoken. */
import test, { type ExecutionContext } from 'ava';
import { connect as dialTls, type TlsOptions, type TLSSocket } from 'node:tls';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { ControlClient } from '../../net/control-client.js';
import { trustSource, type Trust } from '../../net/tls.js';
import type { Frame, Hello } from '../../core/protocol/index.js';
import { Certificates } from '../../test/support/certificates.js';
import { opened, rig, TENANTS, type Rig } from '../../test/support/control-rig.js';
import { Log } from '../log.js';
import { Credentials } from './auth.js';
import { serverTls, serverTrust } from './tls.js';

/** FKV_TICKET_READ, FKV_TICKET_WRITE */
const [READ, WRITE] = [1, 2];
const log = new Log('error', () => undefined);

interface Seen {
  readonly frame?: (frame: Frame) => void;
  readonly closed?: () => void;
}

interface Secured {
  readonly made: Certificates;
  readonly port: Rig;
  readonly open: (trust: Trust, hello: Pick<Hello, 'role' | 'token'>, seen?: Seen) => Promise<ControlClient>;
}

interface ServerFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  readonly cluster: string;
}

async function serverFiles(made: Certificates): Promise<ServerFiles> {
  const server = await made.issue('farkv://prod/peer/*', { file: 'server' });
  return {
    cert: made.file(`${server}.crt`),
    key: made.file(`${server}.key`),
    ca: made.file('ca.crt'),
    cluster: 'prod',
  };
}

/** A control port of cluster prod, with tokens too. */
async function secured(t: ExecutionContext, wallMs: () => number = Date.now): Promise<Secured> {
  const made = await Certificates.make(t);
  const files = await serverFiles(made);
  const credentials = new Credentials({
    cluster: 'prod',
    writer: { text: 'secret' },
    operator: { text: "operator's secret" },
    tenants: [{ name: 'a', writer: { text: 'secret of a' } }],
  });
  const port = await rig(t, { credentials, wallMs }, { tls: serverTls(files, log), handshakeMs: 60_000 });
  port.setState(TENANTS);
  return {
    made,
    port,
    open: async (trust, hello, { frame, closed } = {}) => {
      const client = await ControlClient.open({
        address: port.address,
        trust: { value: trust },
        timeoutMs: 60_000,
        hello,
        ...(frame === undefined ? {} : { frame }),
        ...(closed === undefined ? {} : { closed }),
      });
      t.teardown(() => client.close());
      return client;
    },
  };
}

test('a certificate opens its role without a token, and that of a tenant its tenant', async (t) => {
  const { made, open } = await secured(t);
  const shows = async (uri: string): Promise<Trust> => (await made.trust(uri)).value;
  for (const [uri, flags, tenant] of [
    ['farkv://prod/writer/shop', READ | WRITE, 0],
    ['farkv://prod/reader/report', READ, 0],
    ['farkv://prod/writer/a/shop', READ | WRITE, 1],
  ] as const) {
    const { welcome } = await open(await shows(uri), { role: 'client' });
    t.like(opened(welcome), { tenant, flags }, uri);
  }
  for (const access of ['operator', 'monitor']) {
    const client = await open(await shows(`farkv://prod/${access}/alice`), { role: 'admin' });
    t.deepEqual(await client.call('status', {}, 60_000), { access, method: 'status' });
  }
});

test('a certificate that claims a role opens no other, nor anything elsewhere', async (t) => {
  const { made, open } = await secured(t);
  const refused = async (trust: Trust, hello: Pick<Hello, 'role' | 'token'>, message: RegExp): Promise<void> => {
    await t.throwsAsync(open(trust, hello), { code: 'ERR_UNAUTHORIZED', message }, String(message));
  };
  const shows = async (uri: string): Promise<Trust> => (await made.trust(uri)).value;
  await refused(await shows('farkv://prod/writer/x'), { role: 'admin' }, /operators come as operator or monitor/);
  await refused(await shows('farkv://prod/operator/x'), { role: 'client' }, /clients come as writer or reader/);
  await refused(await shows('farkv://prod/peer/s2'), { role: 'admin' }, /operators come as/);
  await refused(await shows('farkv://prod/writer/b/x'), { role: 'client' }, /there is no tenant b/);
  // A good token does not help.
  const otherCluster = { ca: made.ca, ...made.pem(await made.issue('farkv://test/writer/x', { file: 'other' })) };
  await refused(
    await shows('farkv://prod/reader/x'),
    { role: 'client', token: 'secret' },
    /reader, the token one of a writer/,
  );
  await refused(await shows('farkv://prod/writer/y'), { role: 'client', token: 'secret of a' }, /writer of tenant a/);
  await refused(await shows('farkv://prod/writer/z'), { role: 'client', token: 'wrong' }, /not one of a client/);
  const { value: same } = await made.trust('farkv://prod/writer/same');
  t.like(opened((await open(same, { role: 'client', token: 'secret' })).welcome), { flags: READ | WRITE });
  // The dialer knows as well to whom it comes.
  await t.throwsAsync(open(otherCluster, { role: 'client' }), { message: /not of a server of cluster test/ });
});

test('a certificate of another authority, of another cluster, or of the past is refused, also with a token', async (t) => {
  const { made, open, port } = await secured(t);
  const stranger = await Certificates.make(t);
  const strange = stranger.pem(await stranger.issue('farkv://prod/writer/shop'));
  const client = { role: 'client', token: 'secret' } as const;
  await t.throwsAsync(open({ ca: made.ca, ...strange }, client), {
    code: 'ERR_UNAUTHORIZED',
    message: /not trusted \((UNABLE_TO|SELF_SIGNED|CERT_)/,
  });
  const old = made.pem(await made.issue('farkv://prod/writer/old', { days: -1 }));
  await t.throwsAsync(open({ ca: made.ca, ...old }, client), { code: 'ERR_UNAUTHORIZED', message: /CERT_HAS_EXPIRED/ });
  // The dialer goes by the host name here, so that it does not refuse first.
  const other = made.pem(await made.issue('farkv://test/writer/shop'));
  await t.throwsAsync(open({ ca: made.ca, ...other, servername: 'localhost' }, client), {
    code: 'ERR_UNAUTHORIZED',
    message: /this is cluster prod/,
  });
  t.is(port.plane.clients, 0);
});

test('without a certificate a token is needed, and the server is known by its role name wherever it is', async (t) => {
  const { made, open } = await secured(t);
  await t.throwsAsync(open({ ca: made.ca }, { role: 'client' }), {
    message: /wants a token of a client, or a certificate/,
  });
  await t.notThrowsAsync(open({ ca: made.ca }, { role: 'client', token: 'secret' }));
  await t.throwsAsync(open({ ca: made.ca, servername: 'elsewhere.example.net' }, { role: 'client', token: 'secret' }), {
    code: 'ERR_DISCONNECTED',
  });
});

test('a client whose certificate expires is sent away with the next change or ticket', async (t) => {
  const clock = { ms: Date.now() };
  const { made, open, port } = await secured(t, () => clock.ms);
  const { value } = await made.trust('farkv://prod/writer/shop');
  let came: (epoch: number) => void = () => undefined;
  let ended = (): void => undefined;
  const frame = (one: Frame): void => came(one.t === 'map' ? one.map.mapEpoch : 0);
  const change = async (mapEpoch: number): Promise<string> => {
    const next = new Promise<string>((resolve) => {
      came = (epoch) => {
        if (epoch === mapEpoch) resolve('the map');
      };
      ended = () => resolve('the end');
    });
    port.setState({ ...TENANTS, mapEpoch });
    return await next;
  };
  await open(value, { role: 'client' }, { frame, closed: () => ended() });
  t.is(await change(2), 'the map');
  clock.ms += 11 * 86_400_000;
  t.is(await change(3), 'the end');
});

test('a session does not go on: each connection is verified anew', async (t) => {
  const { made, port } = await secured(t);
  const trust = { ca: made.ca, ...made.pem(await made.issue('farkv://prod/writer/shop')) };
  const dial = (more: { readonly session?: Buffer } = {}): TLSSocket => {
    const socket = dialTls({ port: port.port, host: '127.0.0.1', ...trust, ...more }).resume();
    t.teardown(() => socket.destroy());
    return socket;
  };
  // The server says under which name the session could go on.
  const [session] = (await once(dial(), 'session')) as [Buffer];
  const again = dial({ session });
  await once(again, 'secureConnect');
  t.false(again.isSessionReused());
});

test('a certificate that was exchanged is shown to whoever comes next', async (t) => {
  const made = await Certificates.make(t);
  const [one, two] = [await made.issue('farkv://prod/peer/s1'), await made.issue('farkv://prod/peer/s2')];
  const tls: { value: TlsOptions } = { value: made.pem(one) };
  const { port } = await rig(t, {}, { tls, handshakeMs: 60_000 });
  const shown = async (): Promise<string | string[] | undefined> => {
    const socket = dialTls({ port, host: '127.0.0.1', ca: made.ca });
    t.teardown(() => socket.destroy());
    await once(socket, 'secureConnect');
    return socket.getPeerCertificate().subject.CN;
  };
  t.is(await shown(), 's1');
  tls.value = made.pem(two);
  t.is(await shown(), 's2');
});

/** Changes files of what `open` has opened, and waits until the change is taken, or refused, with what the log has. */
async function changed(
  open: typeof serverTls | typeof serverTrust,
  files: ServerFiles,
  change: () => void,
): Promise<{ readonly isTaken: boolean; readonly told: string }> {
  const lines: string[] = [];
  const source = open(files, new Log('warn', (_, text) => lines.push(text)));
  const before = source.value;
  change();
  while (source.value === before && lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  return { isTaken: source.value !== before, told: lines.join('\n') };
}

test('a file of authorities without a certificate, or with one cut off, is refused, and the last one stays', async (t) => {
  const files = await serverFiles(await Certificates.make(t));
  const pem = readFileSync(files.ca, 'utf8');
  for (const [text, why] of [
    ['', /ca.crt has no certificate/],
    ['hello\n', /ca.crt has no certificate/],
    [pem.slice(0, -40), /ca.crt has no certificate/],
    [pem + pem.slice(0, -40), /ca.crt has a certificate without an end/],
    [`${pem}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`, /ca.crt: certificate 2 cannot be read/],
  ] as const) {
    writeFileSync(files.ca, text);
    for (const open of [serverTls, serverTrust]) t.throws(() => open(files, log), { code: 'ERR_CONFIG', message: why });
  }
  for (const open of [serverTls, serverTrust]) {
    writeFileSync(files.ca, pem);
    const { isTaken, told } = await changed(open, files, () => writeFileSync(files.ca, 'hello\n'));
    t.false(isTaken);
    t.regex(told, /not used yet: .*ca.crt has no certificate/);
  }
  writeFileSync(files.ca, pem);
  for (const open of [serverTls, serverTrust])
    t.true((await changed(open, files, () => writeFileSync(files.ca, readFileSync(files.ca, 'utf8') + pem))).isTaken);
});

test('a certificate and a key that cannot be read, or do not belong together, are refused by name', async (t) => {
  const made = await Certificates.make(t);
  const files = await serverFiles(made);
  const other = made.pem(await made.issue('farkv://prod/peer/s2', { file: 'other' }));
  const own = { cert: readFileSync(files.cert), key: readFileSync(files.key) };
  for (const [file, text, why] of [
    [files.cert, 'hello\n', /server.crt has no certificate that can be read: /],
    [files.cert, own.key, /server.crt has no certificate that can be read: /],
    [files.key, 'hello\n', /server.key has no private key that can be read: /],
    [files.key, own.cert, /server.key has no private key that can be read: /],
    [files.key, other.key, /server.key is the key of another certificate than the one in .*server.crt$/],
    [files.cert, other.cert, /server.key is the key of another certificate than the one in .*server.crt$/],
  ] as const) {
    writeFileSync(file, text);
    for (const open of [serverTls, serverTrust]) t.throws(() => open(files, log), { code: 'ERR_CONFIG', message: why });
    writeFileSync(files.cert, own.cert);
    writeFileSync(files.key, own.key);
  }
  const { isTaken, told } = await changed(serverTls, files, () => writeFileSync(files.key, other.key));
  t.false(isTaken);
  t.regex(told, /not used yet: .*server.key is the key of another certificate/);
  t.throws(() => trustSource({ ...own, key: other.key }), {
    code: 'ERR_CONFIG',
    message: /key is the key of another certificate than the one in cert$/,
  });
});

test('a key that others may read is used neither for who comes nor for who is dialed, until it is private again', async (t) => {
  const files = await serverFiles(await Certificates.make(t));
  for (const open of [serverTls, serverTrust]) {
    const { isTaken, told } = await changed(open, files, () => chmodSync(files.key, 0o644));
    t.false(isTaken);
    t.regex(told, /not used yet: .*server.key can be read or changed by others/);
    chmodSync(files.key, 0o600);
  }
});
