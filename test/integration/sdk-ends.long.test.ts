/** How operations end that cannot go on, more slowly than in sdk-ends.test.ts: a stopped server, a full table. */
import test from 'ava';
import { Cluster } from '../support/cluster.js';
import { clientOf, settled } from '../support/sdk-clients.js';

for (const transport of ['shm', 'tcp'] as const) {
  test(`${transport}: a stopped server costs its clients their time-outs, and no more when it goes on`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 1, args: ['--lease-ms', '200'] });
    const kv = await clientOf(t, cluster, { transport });
    await kv.put('a', 'before');
    t.is(String(await kv.get('a')), 'before');
    cluster.server(0).signal('SIGSTOP');
    // A lease may still cover a GET; when it is over, GETs wait for a new one until their time is over.
    for (;;) {
      const [code] = await settled([kv.get('a', { timeoutMs: 100 })]);
      if (code !== 'ok') {
        t.is(code, 'ERR_TIMEOUT');
        break;
      }
    }
    const [put] = await settled([kv.put('a', 'during', { timeoutMs: 100 })]);
    t.true(put === 'ERR_TIMEOUT' || put === 'ERR_INDETERMINATE', put);
    cluster.server(0).signal('SIGCONT');
    await kv.put('a', 'after');
    t.is(String(await kv.get('a')), 'after');
  });

  test(`${transport}: a full table says so, and keeps what it has`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 1, shards: 1, memory: '8mb' });
    const kv = await clientOf(t, cluster, { transport, namespace: 0 });
    const value = Buffer.alloc(10_000, 'x');
    let stored = 0;
    const error = await t.throwsAsync(
      async () => {
        for (; stored < 2000; stored++) await kv.put(`k${stored}`, value);
      },
      { code: 'ERR_TABLE_FULL' },
    );
    t.regex(error.message, /stays readable/);
    t.true(stored > 300);
    for (let i = 0; i < stored; i++) t.is((await kv.get(`k${i}`))?.length, 10_000);
  });
}
