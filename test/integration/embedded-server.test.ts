import test from 'ava';
import { existsSync } from 'node:fs';
import { FarkvError, startServer, type ServerHandle } from '../../server/index.js';
import { freePorts } from '../support/cluster.js';
import { statusOf } from '../support/status.js';

const OPTIONS = { listen: '127.0.0.1:0', memory: '32mb', leaseMs: 200 } as const;

test.serial('startServer gives a handle that shows the server and closes it', async (t) => {
  const lines: string[] = [];
  const server = await startServer(OPTIONS, { env: {}, log: (level, text) => lines.push(`${level} ${text}`) });
  t.like(server, { id: 's1', shards: [0, 1, 2, 3] });
  t.regex(server.addresses[0] ?? '', /^127\.0\.0\.1:\d+$/);
  t.true(lines.some((l) => l.startsWith('info control on')));
  const status = await server.status();
  t.deepEqual(status, { ...status, clusterId: server.clusterId, leader: 's1' });
  t.is((await statusOf(server.addresses[0]!)).clusterId, server.clusterId);
  t.true(existsSync(server.dataDir));
  await Promise.all([server.close(), server.close()]);
  await server.closed;
  t.false(existsSync(server.dataDir));
  await t.throwsAsync(server.status(), { instanceOf: FarkvError, code: 'ERR_CLOSED' });
});

test.serial('several servers live in one process, and `await using` closes them', async (t) => {
  let kept: ServerHandle | undefined;
  {
    await using a = await startServer(OPTIONS, { env: {} });
    await using b = await startServer(OPTIONS, { env: {} });
    t.not(a.clusterId, b.clusterId);
    kept = b;
  }
  await t.throwsAsync(kept.status(), { code: 'ERR_CLOSED' });
});

test.serial('what prevents a start crosses over as a FarkvError with its code', async (t) => {
  const server = await startServer(OPTIONS, { env: {} });
  t.teardown(() => server.close());
  const start = (options: object) => startServer({ ...OPTIONS, ...options }, { env: {} });
  await t.throwsAsync(start({ listen: server.addresses[0] }), { instanceOf: FarkvError, code: 'ERR_ADDRESS_IN_USE' });
  await t.throwsAsync(start({ dataDir: '/dev/null/x' }), { instanceOf: FarkvError, code: 'ERR_DATA_DIR' });
  await t.throwsAsync(start({ dataDir: server.dataDir }), { instanceOf: FarkvError, code: 'ERR_DATA_DIR' });
  await t.throwsAsync(start({ memory: '4mb' }), { instanceOf: FarkvError, code: 'ERR_CONFIG', message: /too little/ });
  await t.throwsAsync(start({ memroy: '4mb' }), {
    instanceOf: FarkvError,
    code: 'ERR_CONFIG',
    message: /did you mean memory\?/,
  });
  await t.throwsAsync(start({ listen: '0.0.0.0:0' }), { instanceOf: FarkvError, code: 'ERR_CONFIG' });
  await t.throwsAsync(start({ listen: '192.0.2.1:0', insecure: true }), {
    instanceOf: FarkvError,
    code: 'ERR_ADDRESS_INVALID',
  });
});

test.serial('a start that waits for its cluster can be given up', async (t) => {
  const [p1, p2, p3] = await freePorts(3);
  const peers = { a: `127.0.0.1:${p1!}`, b: `127.0.0.1:${p2!}` };
  const listen = `127.0.0.1:${p3!}`;
  const abort = new AbortController();
  const starting = startServer({ ...OPTIONS, id: 'a', listen, peers }, { env: {}, signal: abort.signal });
  abort.abort();
  await t.throwsAsync(starting, { code: 'ERR_ABORTED' });
  await t.throwsAsync(startServer(OPTIONS, { env: {}, signal: AbortSignal.abort() }), { code: 'ERR_ABORTED' });
  // The ports are free again.
  const server = await startServer({ ...OPTIONS, id: 'x', listen, peerListen: peers.a }, { env: {} });
  t.deepEqual(server.peerAddresses, [peers.a]);
  await server.close();
});
