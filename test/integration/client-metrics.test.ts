/** What a client counts, at the client and, once it has reported it, at the server. */
import test from 'ava';
import { isTimed } from '../../client/call-times.js';
import { connect, metricsText, type MetricFamily } from '../../client/index.js';
import { Cluster } from '../support/cluster.js';
import { ask, bearer, samples } from '../support/http.js';

const ARGS = ['--http-listen', '127.0.0.1:0', '--lease-ms', '200'];

test("a client's metrics have its GETs; the server's have those of all clients", async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, args: ARGS });
  const at = cluster.server(0).readyLine?.http[0] ?? '';
  const clients = await Promise.all([
    connect({ servers: cluster.addresses, timeoutMs: 120_000 }),
    connect({ servers: cluster.addresses, timeoutMs: 120_000, transport: 'tcp' }),
  ]);
  t.teardown(() => Promise.all(clients.map((client) => client.close())));
  await clients[0].put('there', 'a value');
  let counted = new Map<string, number>();
  const reported = (result: string): number => counted.get(`farkv_gets_total{result="${result}"}`) ?? 0;
  let rounds = 0;
  while (reported('hit') < 20 || reported('miss') < 20) {
    for (const client of clients) {
      t.is(String(await client.get('there')), 'a value');
      t.is(await client.get('nowhere'), undefined);
    }
    rounds += 1;
    counted = samples((await ask(at, '/metrics')).text);
  }
  t.true(reported('hit') <= 2 * rounds && reported('miss') <= 2 * rounds);
  t.true((counted.get('farkv_get_reads_total') ?? 0) >= 40);
  t.is(counted.get('farkv_clients{transport="tcp"}'), 1);
  for (const [i, transport] of ['shm', 'tcp'].entries()) {
    const families: readonly MetricFamily[] = clients[i]?.metrics() ?? [];
    const own = samples(metricsText(families));
    t.is(own.get('farkv_gets_total{result="hit"}'), rounds);
    t.is(own.get('farkv_gets_total{result="miss"}'), rounds);
    t.true((own.get(`farkv_connections{transport="${transport}"}`) ?? 0) >= 1);
    t.is(own.get('farkv_changes_total'), i === 0 ? 1 : 0);
  }
  const all = metricsText(clients.flatMap((client, i) => client.metrics({ client: String(i) })));
  t.is(all.match(/^# TYPE farkv_gets_total /gm)?.length, 1);
  for (const i of [0, 1]) t.is(samples(all).get(`farkv_gets_total{client="${i}",result="hit"}`), rounds);
  for (const wrong of [null, 'a', { 'not a name': 'a' }, { name: 7 }])
    t.throws(() => clients[0].metrics(wrong as never), { code: 'ERR_ARGUMENT' });
});

test('a client that closes has reported all of its GETs, also those since its last lease', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, args: ['--http-listen', '127.0.0.1:0'] });
  const at = cluster.server(0).readyLine?.http[0] ?? '';
  let done = 0;
  let counted = new Map<string, number>();
  for (const [i, transport] of (['shm', 'tcp'] as const).entries()) {
    const client = await connect({ servers: cluster.addresses, timeoutMs: 120_000, transport });
    t.teardown(() => client.close());
    await client.put('there', 'a value');
    for (let i = 0; i < 100; i++) {
      await client.get('there');
      done += 1;
    }
    await client.close();
    // The figures may be those of before it connected: then they lack its change.
    do counted = samples((await ask(at, '/metrics')).text);
    while (
      counted.get('farkv_ops_total{op="put",code="ok"}') !== i + 1 ||
      counted.get(`farkv_clients{transport="${transport}"}`) !== 0
    );
    t.is(counted.get('farkv_gets_total{result="hit"}'), done, transport);
  }
});

test('requests and reported GETs count for the tenant of the client; without tenants they have no such label', async (t) => {
  const tokens = ['--token', 'of the rest', '--operator-token', 'rule', '--peer-token', 'of servers'];
  const tenants = ['--tenants', 'blue,shards=2,token=of blue'];
  const cluster = await Cluster.start(t, { servers: 1, shards: 2, args: [...ARGS, ...tokens, ...tenants] });
  const at = cluster.server(0).readyLine?.http[0] ?? '';
  const open = async (token: string) => {
    const client = await connect({ servers: cluster.addresses, token, timeoutMs: 120_000 });
    t.teardown(() => client.close());
    return client;
  };
  const rest = await open('of the rest');
  const blue = await open('of blue');
  await rest.put('key', 'a value');
  for (const value of ['no', 'number']) await blue.put('key', value);
  await t.throwsAsync(blue.increment('key'), { code: 'ERR_NOT_INTEGER' });
  let counted = new Map<string, number>();
  const hits = (tenant: string): number | undefined => counted.get(`farkv_gets_total{tenant="${tenant}",result="hit"}`);
  while ((hits('blue') ?? 0) < 20) {
    t.is(String(await blue.get('key')), 'number');
    counted = samples((await ask(at, '/metrics', bearer('rule'))).text);
  }
  t.is(hits(''), 0);
  t.true((counted.get('farkv_get_reads_total{tenant="blue"}') ?? 0) >= 20);
  t.is(counted.get('farkv_get_reads_total{tenant=""}'), 0);
  t.is(counted.get('farkv_ops_total{tenant="blue",op="put",code="ok"}'), 2);
  t.is(counted.get('farkv_ops_total{tenant="",op="put",code="ok"}'), 1);
  t.is(counted.get('farkv_ops_total{tenant="blue",op="increment",code="ERR_NOT_INTEGER"}'), 1);
  t.false(counted.has('farkv_ops_total{tenant="",op="increment",code="ERR_NOT_INTEGER"}'));
  t.is(counted.get('farkv_op_seconds_count{op="put"}'), 3);
});

test('some calls of each kind are timed where latencies are wanted, also of those that fail', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1 });
  const client = await connect({ servers: cluster.addresses, timeoutMs: 120_000, latencies: true });
  const idle = await connect({ servers: cluster.addresses, timeoutMs: 120_000, latencies: true });
  t.teardown(() => Promise.all([client.close(), idle.close()]));
  await client.put('text', 'no number');
  const countOf = (call: string): number =>
    samples(metricsText(client.metrics())).get(`farkv_call_seconds_count{call="${call}"}`) ?? 0;
  // In turn, as loops of programs have them: which call is timed is drawn, so none of them is passed over for ever.
  let rounds = 0;
  while (['get', 'increment', 'getSync'].some((call) => countOf(call) === 0)) {
    for (let i = 0; i < 256; i++) {
      await client.get('nowhere');
      await t.throwsAsync(client.increment('text'), { code: 'ERR_NOT_INTEGER' });
      client.getSync('text');
      await client.has('text');
    }
    rounds++;
  }
  const timed = samples(metricsText(client.metrics()));
  for (const call of ['get', 'increment', 'getSync']) {
    t.true(countOf(call) < (256 * rounds) / 8, call);
    t.is(timed.get(`farkv_call_seconds_bucket{call="${call}",le="+Inf"}`), countOf(call));
    t.true((timed.get(`farkv_call_seconds_sum{call="${call}"}`) ?? 0) > 0);
  }
  t.false(metricsText(idle.metrics()).includes('farkv_call_seconds_count'), 'calls count for their own client');
});

test('a timed call counts once, with its time, in each bucket above that', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1 });
  const open = async (latencies: boolean) => {
    const client = await connect({ servers: cluster.addresses, timeoutMs: 120_000, transport: 'shm', latencies });
    t.teardown(() => client.close());
    return client;
  };
  const client = await open(true);
  const without = await open(false);
  const target = Buffer.alloc(100);
  const calls: Readonly<Record<string, () => unknown>> = {
    put: () => client.put('key', 'a value'),
    get: () => client.get('key'),
    getIntoSync: () => client.getIntoSync('key', target),
    getMany: () => client.getMany(['key', 'nowhere']),
  };
  const nextIsTimed = (): void => {
    while (!isTimed());
  };
  for (const [call, make] of Object.entries(calls)) {
    let atMost = 0;
    for (let count = 1; count <= 5; count++) {
      nextIsTimed();
      const begin = performance.now();
      await make();
      atMost += (performance.now() - begin) / 1000;
      const of = (suffix: string, label = ''): number | undefined =>
        samples(metricsText(client.metrics())).get(`farkv_call_seconds_${suffix}{call="${call}"${label}}`);
      t.is(of('count'), count, call);
      const sum = of('sum') ?? 0;
      t.true(sum > 0 && sum <= atMost, `${call}: ${sum} s of ${atMost} s`);
      const buckets = [...samples(metricsText(client.metrics()))].filter(([name]) =>
        name.startsWith(`farkv_call_seconds_bucket{call="${call}",`),
      );
      const below = buckets.map(([, n]) => n);
      t.deepEqual(
        below,
        [...below].sort((a, b) => a - b),
      );
      t.is(of('bucket', ',le="+Inf"'), count);
      // None of them is in a bucket whose calls together would take longer than all did.
      for (const [name, n] of buckets) {
        const least = Number(/le="([0-9.e+-]+)"/.exec(name)?.[1] ?? 0);
        t.true((count - n) * least <= sum, name);
      }
    }
  }
  const timed = new Set(
    [...samples(metricsText(client.metrics())).keys()].flatMap((n) => /call="([a-zA-Z]+)"/.exec(n)?.[1] ?? []),
  );
  t.deepEqual([...timed], Object.keys(calls));
  nextIsTimed();
  await without.get('key');
  t.false(metricsText(without.metrics()).includes('farkv_call_seconds'));
});
