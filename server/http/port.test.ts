/** The HTTP port by itself: connections, logins, what is written of them. */
import test, { type ExecutionContext } from 'ava';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { ask, bearer } from '../../test/support/http.js';
import { RecentAddresses } from '../control/addresses.js';
import type { Credentials } from '../control/auth.js';
import { Logins } from '../control/logins.js';
import { Log, type LogFields } from '../log.js';
import type { OwnReadiness } from '../own-readiness.js';
import type { ClusterStatus } from '../status.js';
import { LISTENERS } from './bounds.js';
import { HttpPort, type HttpPortOptions } from './port.js';

const STATUS = {
  members: [],
  shards: [],
  moves: [],
  replication: [],
  term: 1,
  leader: 's1',
} as unknown as ClusterStatus;
const READY: OwnReadiness = {
  ...{ role: 'leader', hasLeader: true, stopping: false, leaseHeld: true },
  ...{ waiting: [], lacking: [], dataPlaneSilentMs: 0 },
};
const GET = (path: string, headers = 'Host: localhost'): string => `GET ${path} HTTP/1.1\r\n${headers}\r\n\r\n`;

interface Opened {
  readonly at: number;
  readonly known: RecentAddresses;
  readonly logins: Logins;
  readonly audited: readonly LogFields[];
}

/** Everybody has a certificate, or the token `watch`. */
async function open(t: ExecutionContext, isCertified = true, more: Partial<HttpPortOptions> = {}): Promise<Opened> {
  const monitor = { access: 'monitor', name: 'watcher' } as const;
  const credentials = {
    certified: () => (isCertified ? monitor : undefined),
    missing: () => undefined,
    identify: (_: string, token?: string) => (token === 'watch' ? monitor : undefined),
  } as unknown as Credentials;
  const audited: LogFields[] = [];
  const known = new RecentAddresses(8);
  const logins = new Logins();
  const port = await HttpPort.open({
    addresses: [{ host: '127.0.0.1', port: 0 }],
    serverId: 's1',
    incarnation: 'a',
    handshakeMs: 60_000,
    tls: undefined,
    credentials,
    known,
    logins,
    own: () => Promise.resolve(STATUS),
    readiness: () => Promise.resolve(READY),
    all: () => Promise.resolve(STATUS),
    log: new Log('info', (_, __, fields) => {
      if (fields !== undefined) audited.push(fields);
    }),
    ...more,
  });
  t.teardown(() => port.close());
  return { at: port.bound[0]?.port ?? 0, known, logins, audited };
}

test('a start is over before anybody asks whether it is', async (t) => {
  let lacking: readonly number[] = [];
  let asked = 0;
  const looked = new EventEmitter();
  const readiness = (): Promise<OwnReadiness> => {
    asked++;
    looked.emit('asked');
    return Promise.resolve({ ...READY, lacking });
  };
  const { at } = await open(t, true, { readiness, lookMs: 1 });
  if (asked === 0) await once(looked, 'asked');
  await setImmediate();
  lacking = [0];
  let answer = await ask(`127.0.0.1:${at}`, '/readyz');
  while (asked < 2) answer = await ask(`127.0.0.1:${at}`, '/readyz');
  t.is(answer.status, 200, answer.text);
});

test('strangers who ask often make few small calls, and none for the status', async (t) => {
  const calls = { own: 0, readiness: 0 };
  let answer: (ready: OwnReadiness) => void = () => undefined;
  const answered = new Promise<OwnReadiness>((resolve) => (answer = resolve));
  const { at } = await open(t, false, {
    lookMs: 3_600_000,
    own: () => Promise.resolve((calls.own++, STATUS)),
    readiness: () => (calls.readiness++, answered),
  });
  const where = `127.0.0.1:${at}`;
  const many = Array.from({ length: 50 }, (_, i) => ask(where, i % 2 === 0 ? '/readyz' : '/role'));
  // By then those before are there too, or nearly so.
  t.is((await ask(where, '/healthz')).status, 200);
  answer(READY);
  const texts = (await Promise.all(many)).map(({ text }) => text);
  t.deepEqual([...new Set(texts)].sort(), ['leader\n', 'ready\n']);
  t.true(calls.readiness >= 1 && calls.readiness <= 3, String(calls.readiness));
  t.is((await ask(where, '/metrics')).status, 401);
  t.is(calls.own, 0);
});

/** What came until the end of the connection. */
async function send(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let got = '';
  socket.on('error', () => undefined).on('data', (data) => (got += data.toString('latin1')));
  socket.write(text);
  await once(socket, 'close');
  return got;
}

const answers = (text: string): number => text.split('HTTP/1.1 ').length - 1;

test('a request that comes before the last one is answered ends its connection', async (t) => {
  const { at } = await open(t);
  t.true(answers(await send(at, GET('/healthz').repeat(2))) <= 1);
  t.true(answers(await send(at, GET('/healthz').repeat(2000))) <= 1);
  t.is(answers(await send(at, GET('/readyz').repeat(2))), 0, 'an answer that takes time is none');
  for (const headers of ['X: y', 'Host: localhost\r\nExpect: 100-continue', 'Host: localhost\r\nExpect: more'])
    t.is(answers(await send(at, GET('/readyz') + GET('/healthz', headers).repeat(500))), 0, headers);
  t.is((await ask(`127.0.0.1:${at}`, '/healthz')).status, 200);
});

test('requests one after the other share a connection', async (t) => {
  const { at } = await open(t);
  const socket = connect(at, '127.0.0.1');
  const wanted = 20;
  let got = '';
  socket
    .on('error', () => undefined)
    .on('data', (data) => {
      got += data.toString('latin1');
      if (!got.endsWith('ok\n')) return;
      if (answers(got) < wanted) socket.write(GET('/healthz'));
      else socket.end();
    });
  socket.write(GET('/healthz'));
  await once(socket, 'close');
  t.is(answers(got), wanted);
});

test('a request without Host is refused, as HTTP/1.1 wants it', async (t) => {
  const { at } = await open(t);
  t.regex(await send(at, GET('/healthz', 'X: y')), /^HTTP\/1\.1 400 /);
});

test('an offer to upgrade, a whole URL and a body of no bytes are answered as any request', async (t) => {
  const { at } = await open(t);
  const offer = 'Host: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA';
  const closing = 'Host: localhost\r\nConnection: close';
  for (const request of [
    GET('/healthz', `${offer}\r\nConnection: close`),
    GET('http://localhost/healthz', closing),
    GET('/healthz', `${closing}\r\nContent-Length: 0`),
  ])
    t.regex(await send(at, request), /^HTTP\/1\.1 200 [^]*\r\n\r\nok\n$/, request);
  t.regex(await send(at, GET('http://elsewhere.example/healthz', closing)), /^HTTP\/1\.1 421 /);
  t.regex(await send(at, GET('/healthz', `${closing}\r\nContent-Length: 1`)), /^HTTP\/1\.1 400 /);
  const head = await send(at, GET('/events', closing).replace('GET', 'HEAD'));
  t.regex(head, /^HTTP\/1\.1 200 [^]*text\/event-stream[^]*\r\n\r\n$/);
});

test('many requests for events in one write leave room for pages', async (t) => {
  const { at } = await open(t);
  await send(at, GET('/events').repeat(LISTENERS));
  const socket = connect(at, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.write(GET('/events'));
  t.regex(String(((await once(socket, 'data')) as [Buffer])[0]), /^HTTP\/1\.1 200 /);
});

test('a wrong token is in the log and counts at the control port too; none is no attempt', async (t) => {
  const { at, audited, logins } = await open(t, false);
  t.is((await ask(`127.0.0.1:${at}`, '/metrics')).status, 401);
  t.deepEqual(audited, []);
  t.is((await ask(`127.0.0.1:${at}`, '/metrics', bearer('guess'))).status, 401);
  t.is(audited.length, 1);
  t.like(audited[0], {
    event: 'login-failed',
    as: 'admin',
    reason: 'the token is not one of an operator or a monitor',
  });
  t.regex(String((audited[0] as { address?: string } | undefined)?.address), /^127\.0\.0\.1:\d+$/);
  t.is(logins.failed, 1);
});

test('a page whose token is taken out ends, and the log says whose it was', async (t) => {
  const taken: { lapsed?: string } = {};
  const identity = { access: 'monitor', name: 'monitor-token:2', lapsed: () => taken.lapsed } as const;
  const { at, audited } = await open(t, false, {
    credentials: {
      ...{ certified: () => undefined, missing: () => undefined },
      identify: (_: string, token?: string) => (token === 'watch' ? identity : undefined),
    } as unknown as Credentials,
  });
  const socket = connect(at, '127.0.0.1');
  socket.on('error', () => undefined).write(GET('/events', 'Host: localhost\r\nAuthorization: Bearer watch'));
  t.regex(String(((await once(socket, 'data')) as [Buffer])[0]), /^HTTP\/1\.1 200 /);
  t.deepEqual(audited, []);
  const { localPort } = socket;
  taken.lapsed = 'its token was taken out of monitor-token';
  await once(socket.resume(), 'close');
  t.deepEqual(audited, [
    {
      ...{ event: 'credential-ended', role: 'monitor', name: 'monitor-token:2' },
      ...{ address: `127.0.0.1:${localPort}`, reason: taken.lapsed },
    },
  ]);
});

test('an address is known after a login, by certificate as by token', async (t) => {
  for (const isCertified of [true, false]) {
    const { at, known } = await open(t, isCertified);
    await ask(`127.0.0.1:${at}`, '/metrics');
    t.is(known.has('127.0.0.1'), isCertified);
    await ask(`127.0.0.1:${at}`, '/metrics', bearer('watch'));
    t.true(known.has('127.0.0.1'));
  }
});
