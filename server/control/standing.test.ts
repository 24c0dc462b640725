/** Connections end with what they were let in with: at both ports, by token and by certificate. */
import test, { type ExecutionContext } from 'ava';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { raftIdOf } from '../../core/metadata/placement.js';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { Hello } from '../../core/protocol/index.js';
import { ControlClient } from '../../net/control-client.js';
import type { TrustSource } from '../../net/tls.js';
import { Certificates } from '../../test/support/certificates.js';
import { isSoon, Watch, withResolve } from '../../test/support/ends.js';
import { rig } from '../../test/support/control-rig.js';
import { Log, type LogFields } from '../log.js';
import { Peers } from '../metadata/peers.js';
import { RecentAddresses } from './addresses.js';
import { Credentials } from './auth.js';
import { Listener } from './listener.js';
import { PeerPlane } from './peer-plane.js';
import { serverTls } from './tls.js';

const log = new Log('error', () => undefined);
const PATIENCE_MS = 60_000;
const DAY_MS = 86_400_000;

interface Ports {
  readonly control: string;
  readonly peer: string;
  readonly audited: LogFields[];
}

interface Both {
  readonly credentials: Credentials;
  readonly wallMs?: () => number;
  readonly tls?: ReturnType<typeof serverTls> | undefined;
}

/** The port between servers of `serverId`. */
async function peerPort(
  t: ExecutionContext,
  { credentials, wallMs = Date.now, tls }: Both,
  audit = log,
  serverId = 's1',
): Promise<string> {
  const plane = new PeerPlane({
    serverId,
    instance: '0a'.repeat(8),
    handshakeMs: PATIENCE_MS,
    credentials,
    wallMs,
    state: () => EMPTY,
    arrives: () => undefined,
    message: () => undefined,
    call: () => Promise.resolve({}),
    known: new RecentAddresses(10),
    log: audit,
  });
  const listener = await Listener.open({
    addresses: [{ host: '127.0.0.1', port: 0 }],
    tls,
    places: { strangers: 100, known: 100, isKnown: () => false },
    handshakeMs: PATIENCE_MS,
    connection: (socket, guest) => plane.accept(socket, guest),
  });
  t.teardown(() => listener.close());
  return `127.0.0.1:${listener.bound[0]?.port ?? 0}`;
}

async function ports(t: ExecutionContext, { credentials, wallMs = Date.now, tls }: Both): Promise<Ports> {
  const audited: LogFields[] = [];
  const audit = new Log('error', (_level, _text, fields) => {
    if (fields !== undefined) audited.push(fields);
  });
  const control = await rig(t, { credentials, wallMs, log: audit }, { tls, handshakeMs: PATIENCE_MS });
  return { control: control.address, peer: await peerPort(t, { credentials, wallMs, tls }, audit), audited };
}

interface Open {
  readonly client: ControlClient;
  /** False: nobody would wait any longer. */
  readonly ended: () => Promise<boolean>;
}

async function open(
  t: ExecutionContext,
  address: string,
  hello: Pick<Hello, 'role' | 'token' | 'from'>,
  trust?: TrustSource,
): Promise<Open> {
  const { promise, resolve } = withResolve<undefined>();
  const client = await ControlClient.open({
    address,
    trust,
    timeoutMs: PATIENCE_MS,
    hello,
    closed: () => resolve(undefined),
  });
  t.teardown(() => client.close());
  return { client, ended: () => isSoon(promise) };
}

test('a token that is taken out of its file ends the connections that were let in with it, and no other', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-standing-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const tokens = (file: string, ...lines: string[]): { readonly file: string } => {
    writeFileSync(join(directory, file), `${lines.join('\n')}\n`, { mode: 0o600 });
    return { file: join(directory, file) };
  };
  const ROLES = ['client', 'admin', 'peer'] as const;
  const before = (role: string): string[] => [`first of ${role}`, `second of ${role}`];
  // Each look at the time finds that the file may be looked at again.
  const clock = { ms: 0 };
  const credentials = new Credentials(
    {
      writer: tokens('client', ...before('client')),
      operator: tokens('admin', ...before('admin')),
      peer: tokens('peer', ...before('peer')),
      tenants: [],
    },
    () => ({ nowMs: () => (clock.ms += 10_000) }),
  );
  const { control, peer, audited } = await ports(t, { credentials });
  const come = async (which: string): Promise<Open[]> =>
    await Promise.all(
      ROLES.map((role) =>
        open(t, role === 'peer' ? peer : control, { role, token: `${which} of ${role}`, from: 's2' }),
      ),
    );
  const [first, second] = [await come('first'), await come('second')];
  for (const role of ROLES) tokens(role, `second of ${role}`, `third of ${role}`);
  for (const [i, one] of first.entries()) t.true(await one.ended(), ROLES[i]);
  for (const [i, { client }] of second.entries()) {
    t.false(client.connection.closed, ROLES[i]);
    if (ROLES[i] !== 'client') await t.notThrowsAsync(client.call('status', {}, PATIENCE_MS));
  }
  t.deepEqual(
    audited
      .filter(({ event }) => event === 'credential-ended')
      .map(({ role, reason }) => [role, reason])
      .sort(),
    [
      ['operator', 'its token was taken out of admin'],
      ['peer', 'its token was taken out of peer'],
      ['writer', 'its token was taken out of client'],
    ],
  );
});

test('a certificate that expires ends the connection that was let in with it, also where a good token was shown', async (t) => {
  const clock = { ms: Date.now() };
  const made = await Certificates.make(t);
  const server = await made.issue('farkv://prod/peer/*', { file: 'server' });
  const files = { cert: made.file(`${server}.crt`), key: made.file(`${server}.key`), ca: made.file('ca.crt') };
  const tls = serverTls({ ...files, cluster: 'prod' }, log);
  const credentials = new Credentials({ cluster: 'prod', operator: { text: 'right' }, tenants: [] });
  const { control, peer } = await ports(t, { credentials, wallMs: () => clock.ms, tls });
  const come = async (days: number, name: string): Promise<Open[]> => {
    const trust = async (uri: string): Promise<TrustSource> => ({
      value: { ca: made.ca, ...made.pem(await made.issue(uri, { days })) },
    });
    const operator = await trust(`farkv://prod/operator/${name}`);
    return [
      await open(t, control, { role: 'admin' }, operator),
      await open(t, control, { role: 'admin', token: 'right' }, operator),
      await open(t, control, { role: 'client' }, await trust(`farkv://prod/writer/${name}`)),
      await open(t, peer, { role: 'peer', from: `s${days}` }, await trust(`farkv://prod/peer/s${days}`)),
    ];
  };
  const [short, long] = [await come(2, 'short'), await come(20, 'long')];
  clock.ms += 3 * DAY_MS;
  for (const [i, one] of short.entries()) t.true(await one.ended(), String(i));
  for (const [i, { client }] of long.entries()) t.false(client.connection.closed, String(i));
});

test('a server ends the connections that it dialed when its own certificate expires, or that of the server at the other end', async (t) => {
  const made = await Certificates.make(t);
  const credentials = new Credentials({ cluster: 'prod', tenants: [] });
  const ca = made.file('ca.crt');
  // The accepting ends live in the present: what they would end is no matter here.
  const at = async (id: string, days: number): Promise<string> => {
    const file = await made.issue(`farkv://prod/peer/${id}`, { days });
    const files = { cert: made.file(`${file}.crt`), key: made.file(`${file}.key`), ca, cluster: 'prod' };
    return await peerPort(t, { credentials, tls: serverTls(files, log) }, log, id);
  };
  const servers = [
    { id: 's1', addresses: ['127.0.0.1:1'] },
    { id: 'short', addresses: [await at('short', 2)] },
    { id: 'long', addresses: [await at('long', 20)] },
  ].map((one) => ({ ...one, raftId: raftIdOf(one.id) }));
  const clock = { ms: Date.now() };
  const watch = new Watch();
  const ended: string[] = [];
  const peers = new Peers({
    id: 's1',
    instance: '01'.repeat(8),
    known: servers,
    told: { of: new Map(), any: [] },
    tokens: undefined,
    trust: { value: { ca: made.ca, ...made.pem(await made.issue('farkv://prod/peer/s1', { days: 10 })) } },
    timeoutMs: PATIENCE_MS,
    state: () => EMPTY,
    clusterId: () => '',
    outcast: (error) => t.fail(error.message),
    up: () => undefined,
    gone: () => undefined,
    wallMs: () => clock.ms,
    log: new Log('debug', (_level, _text, fields) => {
      if (fields !== undefined) ended.push(`${String(fields.name)}: ${String(fields.reason)}`);
      watch.changed();
    }),
  });
  t.teardown(() => peers.close());
  peers.start(['127.0.0.1:1']);
  const both = (): boolean => peers.reach.connected.length === 2;
  await watch.until(both);
  clock.ms += 3 * DAY_MS;
  t.true(await isSoon(watch.until(() => ended.length > 0)));
  t.deepEqual([...new Set(ended)], ['short: its certificate has expired']);
  clock.ms += 8 * DAY_MS;
  t.true(await isSoon(watch.until(() => ended.some((one) => one.startsWith('long')))));
  t.true(ended.includes("long: the dialing end's certificate has expired"));
});
