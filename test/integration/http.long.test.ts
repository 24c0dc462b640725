/** The HTTP port of real servers: who may read what, and how a server counts. */
import test, { type ExecutionContext } from 'ava';
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { connect } from '../../client/index.js';
import { METRICS } from '../../server/http/metric-table.js';
import { Cluster, farkv, type ServerProcess } from '../support/cluster.js';
import { ask, bearer, samples } from '../support/http.js';
import { leaderOf } from '../support/status.js';

const HTTP = ['--http-listen', '127.0.0.1:0'];
const httpOf = (server: ServerProcess): string => server.readyLine?.http[0] ?? '';

async function start(t: ExecutionContext, args: readonly string[] = []): Promise<{ at: string; cluster: Cluster }> {
  const cluster = await Cluster.start(t, { args: [...HTTP, ...args], shards: 2 });
  return { at: httpOf(cluster.server(0)), cluster };
}

test('/metrics counts what was done, with units in its names, and names each family of the table', async (t) => {
  const { at, cluster } = await start(t);
  const client = await connect({ servers: cluster.addresses, timeoutMs: 120_000 });
  t.teardown(() => client.close());
  for (let i = 0; i < 100; i++) await client.put(`key ${i}`, 'a value');
  await client.delete('key 0');
  const { status, headers, text } = await ask(at, '/metrics');
  t.is(status, 200);
  t.regex(headers['content-type'] ?? '', /^text\/plain; version=0\.0\.4/);
  const found = samples(text);
  t.is(found.get('farkv_ops_total{op="put",code="ok"}'), 100);
  t.is(found.get('farkv_ops_total{op="delete",code="ok"}'), 1);
  t.is(found.get('farkv_entries{tenant=""}'), 99);
  t.is(found.get('farkv_shards{tenant="",state="serving"}'), 2);
  t.is(found.get('farkv_raft_is_leader'), 1);
  t.is(found.get('farkv_lease_held'), 1);
  t.is(found.get('farkv_op_seconds_count{op="put"}'), 100);
  t.is(found.get('farkv_op_seconds_bucket{op="put",le="+Inf"}'), 100);
  t.true((found.get('farkv_op_seconds_sum{op="put"}') ?? 0) > 0);
  t.is(found.get('farkv_voters_up'), 1);
  t.is(found.get('farkv_clients{transport="shm"}'), 1);
  t.true((found.get('process_cpu_seconds_total') ?? 0) > 0);
  for (const { name } of METRICS) t.true(text.includes(`# TYPE ${name} `), name);
  t.true(METRICS.length >= 40);
  await client.put('one more', 'a value');
  let again = found;
  while (again.get('farkv_ops_total{op="put",code="ok"}') === 100) again = samples((await ask(at, '/metrics')).text);
  t.is(again.get('farkv_ops_total{op="put",code="ok"}'), 101, 'a counter is not added up by each scrape');
});

test('only GET and HEAD are answered, without a body and under a name of this machine', async (t) => {
  const { at } = await start(t);
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE']) {
    const { status, headers } = await ask(at, '/healthz', { method });
    t.is(status, 405, method);
    t.is(headers.allow, 'GET, HEAD');
  }
  t.like(await ask(at, '/healthz'), { status: 200, text: 'ok\n' });
  t.like(await ask(at, '/readyz'), { status: 200, text: 'ready\n' });
  t.like(await ask(at, '/metrics', { method: 'HEAD' }), { status: 200, text: '' });
  t.is((await ask(at, '/nothing')).status, 404);
  t.is((await ask(at, '/healthz', { headers: { 'content-length': '1' }, body: 'x' })).status, 400);
  for (const path of ['/', '/metrics', '/events', '/healthz'])
    t.is((await ask(at, path, { headers: { host: 'evil.test' } })).status, 421, path);
  t.regex(String((await ask(at, '/nothing')).headers['content-security-policy']), /^default-src 'none'/);
});

test('where there are tokens, one of a monitor or operator opens all but /healthz and /readyz', async (t) => {
  const { at } = await start(t, [
    '--token',
    'writer',
    '--monitor-token',
    'watch',
    '--operator-token',
    'rule',
    '--peer-token',
    'peer',
  ]);
  for (const path of ['/', '/metrics', '/events']) {
    const { status, headers } = await ask(at, path);
    t.is(status, 401, path);
    t.regex(String(headers['www-authenticate']), /^Basic realm="farkv"/);
    for (const wrong of ['writer', 'peer', 'guess']) t.is((await ask(at, path, bearer(wrong))).status, 401, wrong);
  }
  for (const path of ['/healthz', '/readyz']) t.is((await ask(at, path)).status, 200, path);
  for (const right of ['watch', 'rule']) t.is((await ask(at, '/metrics', bearer(right))).status, 200, right);
  t.is((await ask(at, '/metrics', { auth: 'anybody:watch' })).status, 200, 'a browser has a name and a password');
});

test('who guesses tokens waits', async (t) => {
  const { at } = await start(t, ['--token', 'writer', '--monitor-token', 'watch']);
  const seen = new Set<number>();
  while (!seen.has(429)) seen.add((await ask(at, '/metrics', bearer('guess'))).status);
  t.deepEqual([...seen], [401, 429]);
});

test('a port in use, and one that others can reach without secrets, are errors that name the option', async (t) => {
  const { at } = await start(t);
  const taken = await farkv(['server', '--listen', '127.0.0.1:0', '--http-listen', at]);
  t.is(taken.code, 1);
  t.regex(taken.stderr, /another program listens there, .*: stop it, or choose another --http-listen/);
  const open = await farkv(['server', '--listen', '127.0.0.1:0', '--http-listen', '0.0.0.0:0']);
  t.is(open.code, 2);
  t.regex(open.stderr, /0\.0\.0\.0:0 can be reached from other machines/);
});

test('headers that are too long, or end never, end their connection', async (t) => {
  const { at } = await start(t);
  const [host = '', port = ''] = at.split(':');
  const socket = connectSocket(Number(port), host);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(`GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(16 << 10)}`);
  await once(socket.resume(), 'close');
  t.is((await ask(at, '/healthz')).status, 200);
});

test('/metrics tells of the ways to other servers, and that one is gone', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 3, args: HTTP });
  // Followers send nothing to each other.
  const leader = await leaderOf(cluster);
  const at = httpOf(cluster.server(leader));
  const [one = '', other = ''] = cluster.servers.filter((_, i) => i !== leader).map(({ id }) => id);
  const look = async (): Promise<Map<string, number>> => samples((await ask(at, '/metrics')).text);
  let found = await look();
  const has = (name: string, peer: string): number => found.get(`${name}{peer="${peer}"}`) ?? 0;
  while (has('farkv_peer_rtt_seconds', one) === 0 || has('farkv_peer_rtt_seconds', other) === 0) found = await look();
  t.is(found.get('farkv_voters'), 3);
  t.is(found.get('farkv_voters_up'), 3);
  t.true((found.get('farkv_raft_leader_changes_total') ?? 0) >= 1);
  t.true((found.get('farkv_lease_seconds_left') ?? 0) > 0);
  for (const peer of [one, other]) {
    t.is(has('farkv_peer_up', peer), 1);
    t.true(has('farkv_peer_rtt_seconds', peer) < 60);
  }
  const lost = has('farkv_peer_send_failures_total', other);
  await cluster.servers.find(({ id }) => id === other)?.kill();
  const isLost = (): boolean => has('farkv_peer_send_failures_total', other) > lost;
  while (has('farkv_peer_up', other) === 1 || (!isLost() && found.get('farkv_raft_is_leader') === 1))
    found = await look();
  t.is(found.get('farkv_voters_up'), 2);
  t.is(has('farkv_peer_up', one), 1);
});

test('a shard that refuses changes for want of memory is in the metrics, and needs attention', async (t) => {
  const { at, cluster } = await start(t);
  const client = await connect({ servers: cluster.addresses, timeoutMs: 120_000 });
  t.teardown(() => client.close());
  const look = async (): Promise<Map<string, number>> => samples((await ask(at, '/metrics')).text);
  const before = await look();
  t.is(before.get('farkv_put_rejected_total{reason="ERR_TABLE_FULL"}'), 0, 'so that a rate sees the first one');
  t.is(before.get('farkv_shards_nearly_full{tenant=""}'), 0);
  t.is(before.get('farkv_shards_memory_limit_bytes{tenant=""}'), before.get('farkv_memory_limit_bytes'));
  const value = Buffer.alloc(200_000);
  const filled = async (): Promise<void> => {
    for (let i = 0; ; i++) await client.put(`key ${i}`, value);
  };
  await t.throwsAsync(filled, { code: 'ERR_TABLE_FULL' });
  let found = before;
  while (found.get('farkv_put_rejected_total{reason="ERR_TABLE_FULL"}') === 0) found = await look();
  t.true((found.get('farkv_shards_nearly_full{tenant=""}') ?? 0) >= 1);
  const { code, stdout } = await farkv(['status', '--connect', cluster.addresses[0] ?? '']);
  t.is(code, 1);
  t.regex(stdout, /^needs attention: (shards? [01].* at s1: more than 90 %|s1 uses 9\d %)/m);
});

test('a server that was told to stop is not ready, while it waits for the leases of its clients', async (t) => {
  const { at, cluster } = await start(t, ['--lease-ms', '10000']);
  const client = await connect(cluster.addresses);
  t.teardown(() => client.close());
  await client.put('a key', 'a value');
  t.is(String(await client.get('a key')), 'a value');
  t.is((await ask(at, '/readyz')).status, 200);
  cluster.server(0).signal('SIGTERM');
  let answer = await ask(at, '/readyz');
  while (answer.status === 200) answer = await ask(at, '/readyz');
  t.like(answer, { status: 503, text: 'this server is stopping\n' });
});

test('OpenMetrics is for those who ask for it', async (t) => {
  const { at } = await start(t);
  const { headers, text } = await ask(at, '/metrics', {
    headers: { accept: 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5' },
  });
  t.regex(headers['content-type'] ?? '', /^application\/openmetrics-text; version=1\.0\.0/);
  t.regex(text, /^# TYPE farkv_ops counter$/m);
  t.regex(text, /^farkv_ops_total\{op="lease",code="ok"\} \d+$/m);
  t.true(text.endsWith('\n# EOF\n'));
  t.regex((await ask(at, '/metrics')).headers['content-type'] ?? '', /^text\/plain/);
});

test('/role says what a server is, to anybody', async (t) => {
  const { at } = await start(t, ['--token', 'writer', '--monitor-token', 'watch']);
  t.like(await ask(at, '/role'), { status: 200, text: 'leader\n' });
});
