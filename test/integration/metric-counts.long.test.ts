/**
 * What the counters of retries and refusals are at real servers and clients, once there was something to count: GETs of a
 * key that another client changes all the time, GETs of a client that stood still beyond its lease, and requests that the
 * owner answered with something else than what was asked for.
 */
import test from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connect, metricsText, type MetricFamily } from '../../client/index.js';
import { Cluster } from '../support/cluster.js';
import { ask, samples } from '../support/http.js';
import { PATIENT, patient } from '../support/sdk-clients.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const LEASE_MS = 300;
const ARGS = ['--http-listen', '127.0.0.1:0', '--lease-ms', String(LEASE_MS)];
const BYTES = 20_000;
const CHECKS = ['torn', 'late', 'foreign'] as const;

type Counts = ReadonlyMap<string, number>;
const retries = (seen: Counts, check: (typeof CHECKS)[number]): number =>
  seen.get(`farkv_get_retries_total{check="${check}"}`) ?? NaN;
const countsOf = (client: { metrics(): readonly MetricFamily[] }): Counts => samples(metricsText(client.metrics()));

async function start(t: Parameters<typeof Cluster.start>[0]) {
  const cluster = await Cluster.start(t, { servers: 1, shards: 2, args: ARGS });
  const at = cluster.server(0).readyLine?.http[0] ?? '';
  /** Looks until it is so. */
  const until = async (condition: (seen: Counts) => boolean): Promise<Counts> => {
    for (;;) {
      const seen = samples((await ask(at, '/metrics')).text);
      if (condition(seen)) return seen;
    }
  };
  return { cluster, until };
}

for (const transport of ['tcp', 'shm'] as const)
  test(`READs over ${transport} that a change has torn are counted, and no GET gives such a value`, async (t) => {
    const { cluster, until } = await start(t);
    const reader = await connect({ servers: cluster.addresses, transport, cachedLocations: 0, ...PATIENT });
    t.teardown(() => reader.close());
    const writer = await patient(t, cluster.addresses);
    const value = (round: number): Buffer => Buffer.alloc(BYTES, round % 256);
    await writer.put('hot', value(0));
    for (const check of CHECKS) t.is(retries(countsOf(reader), check), 0);
    let gets = 0;
    for (let round = 1; retries(countsOf(reader), 'torn') === 0; round++) {
      const writes = Promise.all(Array.from({ length: 8 }, () => writer.put('hot', value(round))));
      for (let i = 0; i < 8; i++) {
        gets++;
        const found = (await reader.get('hot'))!;
        t.is(found.length, BYTES);
        t.true(found.equals(value(found[0] ?? -1)), 'bytes of one change alone');
      }
      await writes;
    }
    const own = countsOf(reader);
    t.is(
      own.get('farkv_gets_total{result="hit"}'),
      gets,
      'once also where it needed more room than the client had ready',
    );
    await reader.close();
    const seen = await until((now) => now.get('farkv_gets_total{result="hit"}') === gets);
    t.is(retries(seen, 'torn'), retries(own, 'torn'), 'the server knows it of its client');
    t.log(`${retries(own, 'torn')} of ${gets} GETs`);
  });

/** GETs without end; says its counters when it is asked, and at its end. */
const PROGRAM = `
  import { connect, metricsText } from 'farkv';
  import { createInterface } from 'node:readline';
  const [, servers] = process.argv;
  const kv = await connect({ servers, transport: 'tcp', timeoutMs: 120_000, connectTimeoutMs: 120_000 });
  let ends = false;
  const say = () => console.log(JSON.stringify(metricsText(kv.metrics())));
  const getting = Array.from({ length: 16 }, async () => {
    while (!ends) if ((await kv.get('key'))?.length !== 20_000) throw new Error('another value');
  });
  createInterface({ input: process.stdin }).on('line', async (line) => {
    if (line === 'end') {
      ends = true;
      await Promise.all(getting);
      say();
      await kv.close();
      process.exit(0);
    }
    say();
  });
`;

test('READs that came when the lease was over are counted, of a client that stood still', async (t) => {
  const { cluster, until } = await start(t);
  await (await patient(t, cluster.addresses)).put('key', Buffer.alloc(20_000, 'v'));
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, cluster.addresses.join()], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout });
  const told = async (word: string): Promise<Counts> => {
    child.stdin.write(`${word}\n`);
    const [line] = (await once(lines, 'line')) as [string];
    return samples(JSON.parse(line) as string);
  };
  let counts = await told('say');
  while (retries(counts, 'late') === 0) {
    child.kill('SIGSTOP');
    // The fault is a length of time.
    await sleep(2 * LEASE_MS);
    child.kill('SIGCONT');
    counts = await told('say');
  }
  counts = await told('end');
  const hits = counts.get('farkv_gets_total{result="hit"}');
  const seen = await until((now) => now.get('farkv_gets_total{result="hit"}') === hits);
  for (const check of CHECKS) t.is(retries(seen, check), retries(counts, check), check);
  t.log(`${retries(counts, 'late')} of ${hits} GETs`);
});

test('what an owner refused is counted by operation and error; another version and a missing key are answers', async (t) => {
  const { cluster, until } = await start(t);
  const kv = await patient(t, cluster.addresses);
  await kv.put('key', 'no number');
  t.false((await kv.compareAndSwap('key', 0n, 'other')).swapped);
  t.false(await kv.delete('nowhere'));
  for (let i = 0; i < 3; i++) await t.throwsAsync(kv.increment('key'), { code: 'ERR_NOT_INTEGER' });
  let filled = 0;
  let refused = 0;
  while (refused < 2) {
    try {
      await kv.put(`filled-${filled}`, Buffer.alloc(1 << 20));
      filled++;
    } catch (error) {
      t.is((error as { readonly code: unknown }).code, 'ERR_TABLE_FULL');
      refused++;
    }
  }
  const ops = (seen: Counts, op: string, code: string): number =>
    seen.get(`farkv_ops_total{op="${op}",code="${code}"}`) ?? 0;
  const seen = await until((now) => ops(now, 'put', 'ok') === filled + 1);
  t.is(ops(seen, 'put', 'ERR_TABLE_FULL'), 2);
  t.is(seen.get('farkv_put_rejected_total{reason="ERR_TABLE_FULL"}'), 2);
  t.is(ops(seen, 'increment', 'ERR_NOT_INTEGER'), 3);
  t.is(ops(seen, 'increment', 'ok'), 0);
  t.is(ops(seen, 'cas', 'ok'), 1);
  t.is(ops(seen, 'delete', 'ok'), 1);
  t.is(seen.get('farkv_put_rejected_total{reason="ERR_NOT_INTEGER"}'), 3);
  t.is(seen.get('farkv_refused_total{error="ERR_TABLE_FULL"}'), 2);
  t.is(seen.get('farkv_refused_total{error="ERR_NOT_INTEGER"}'), 3);
});
