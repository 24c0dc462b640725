/** How operations end that cannot go on: a closed client, a signal, a killed server. sdk-ends.long.test.ts has more. */
import test from 'ava';
import { DEVICELESS } from '../support/deviceless.js';
import { Cluster } from '../support/cluster.js';
import { clientOf, settled, sharedCluster } from '../support/sdk-clients.js';

const MIB = 1 << 20;
const shared = sharedCluster(test);

for (const transport of DEVICELESS) {
  test(`${transport}: close ends what is under way; nothing hangs`, async (t) => {
    const kv = await clientOf(t, shared(), { transport });
    const work = [
      ...Array.from({ length: 3000 }, (_, i) => kv.put(`k${i}`, Buffer.alloc(i % 10 === 0 ? 100_000 : 100))),
      ...Array.from({ length: 1000 }, (_, i) => kv.get(`k${i}`)),
      kv.put('large', Buffer.alloc(20 * MIB)),
      kv.getMany(Array.from({ length: 2000 }, (_, i) => `k${i}`)),
    ];
    // What was posted has left, and no answer was looked at yet.
    await Promise.resolve();
    await kv.close();
    await kv.close();
    const codes = new Set(await settled(work));
    t.deepEqual(
      [...codes].filter((code) => code !== 'ok' && code !== 'ERR_CLOSED' && code !== 'ERR_INDETERMINATE'),
      [],
    );
    t.true(codes.has('ERR_CLOSED') || codes.has('ERR_INDETERMINATE'));
    t.deepEqual(await settled([kv.get('a'), kv.put('a', 'x'), kv.getMany(['a'])]), [
      'ERR_CLOSED',
      'ERR_CLOSED',
      'ERR_CLOSED',
    ]);
  });

  test(`${transport}: an AbortSignal ends an operation that is under way`, async (t) => {
    const kv = await clientOf(t, shared(), { transport });
    const abort = new AbortController();
    const reason = new Error('enough');
    const work = Array.from({ length: 200 }, (_, i) =>
      kv.put(`k${i}`, Buffer.alloc(200_000), { signal: abort.signal }),
    );
    await Promise.resolve();
    abort.abort(reason);
    const codes = await settled(work);
    // What had been sent may have taken effect.
    t.true(codes.includes('ERR_ABORTED') || codes.includes('ERR_INDETERMINATE'));
    t.deepEqual(
      [...new Set(codes)].filter((code) => code !== 'ok' && code !== 'ERR_ABORTED' && code !== 'ERR_INDETERMINATE'),
      [],
    );
    const error = await t.throwsAsync(kv.get('k0', { signal: abort.signal }), { code: 'ERR_ABORTED' });
    t.is(error.cause, reason);
    await kv.put('after', 'x');
    t.is(String(await kv.get('after')), 'x');
  });

  test(`${transport}: a killed server that comes back serves its clients again, and nothing stale`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 1, args: ['--lease-ms', '200'] });
    // How long the server is away is this machine's affair.
    const kv = await clientOf(t, cluster, { transport, unavailableAfterMs: Number.POSITIVE_INFINITY });
    await kv.put('a', 'old');
    t.is(String(await kv.get('a')), 'old');
    await cluster.server(0).kill();
    await cluster.server(0).start();
    // Values live in memory: the new process has none, and the old memory, still mapped here, must not be believed.
    t.is(await kv.get('a'), undefined);
    await kv.put('a', 'new');
    t.is(String(await kv.get('a')), 'new');
  });
}
