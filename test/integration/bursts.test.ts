/** Many more calls at once than a server takes, or a client posts: each is answered, over one connection. */
import test from 'ava';
import { connect, type BufferValue, type Client, type ConnectOptions, type FarkvError } from '../../client/index.js';
import { startServer } from '../../server/index.js';
import { CALLS } from '../chaos/calls.js';
import { DEVICELESS } from '../support/deviceless.js';

/** One server that takes so few requests of a client, and a client that counts its broken connections. */
async function pair(
  t: { teardown: (end: () => Promise<void>) => void },
  options: Partial<ConnectOptions>,
  clientQuota: number,
): Promise<{ kv: Client<BufferValue, Buffer>; breaks: () => number }> {
  const server = await startServer({ listen: '127.0.0.1:0', memory: '256mb', clientQuota });
  t.teardown(() => server.close());
  let breaks = 0;
  const kv = await connect({
    servers: server.addresses,
    strict: true,
    timeoutMs: 60_000,
    onEvent: (event) => {
      if (event.type === 'transport' && !event.transport.connected) breaks++;
    },
    ...options,
  });
  t.teardown(() => kv.close());
  return { kv, breaks: () => breaks };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

for (const transport of DEVICELESS) {
  test(`${transport}: a burst of changes breaks no connection, however few a server takes at once`, async (t) => {
    const { kv, breaks } = await pair(t, { transport }, 2);
    const all = numbers(2000);
    const large = Buffer.alloc(24 << 20, 'L');
    // An update of a key that many change at once is done again and again.
    const changes = CALLS.filter(({ name, changes }) => changes && name !== 'update');
    const kinds: readonly (() => unknown)[] = [
      ...changes.map(
        ({ plain }) =>
          () =>
            plain?.(kv, 'k'),
      ),
      () => kv.putMany(numbers(20).map((i) => ({ key: 'k', value: String(i) }))),
      () => kv.deleteMany(['k', 'k', 'k']),
    ];
    // While the value comes, all changes of its key wait at the server.
    const first = kv.put('k', large);
    const ends = await Promise.allSettled(all.map(async (i) => await kinds[i % kinds.length]!()));
    await first;
    // As increments of what is no number do.
    const codes = ends.map((end) => (end.status === 'fulfilled' ? 'ok' : (end.reason as FarkvError).code));
    t.deepEqual(new Set(codes.filter((code) => code !== 'ERR_NOT_INTEGER')), new Set(['ok']));
    t.is(breaks(), 0);
  });

  test(`${transport}: batches of many times what may be outstanding, or wait, are answered whole`, async (t) => {
    const { kv, breaks } = await pair(t, { transport, maxOutstanding: 48, maxQueued: 2048 }, 256);
    const all = numbers(20_000);
    function* items(): Generator<{ key: string; value: string; ttlMs?: number }> {
      for (const i of all)
        yield i % 5000 < 100 ? { key: `k${i}`, value: `v${i}`, ttlMs: 600_000 } : { key: `k${i}`, value: `v${i}` };
    }
    await kv.putMany(items());
    const keys = all.map((i) => `k${i}`);
    const [values, again] = await Promise.all([
      kv.getMany(keys),
      kv.getMany(keys, { signal: new AbortController().signal }),
    ]);
    t.true(values.every((value, i) => String(value) === `v${i}`));
    t.true(again.every((value, i) => String(value) === `v${i}`));
    const target = Buffer.alloc(8 * all.length);
    const spans = new Uint32Array(2 * all.length);
    await kv.getManyInto(keys, target, spans);
    t.true(
      all.every(
        (i) => target.toString('latin1', spans[2 * i], (spans[2 * i] ?? 0) + (spans[2 * i + 1] ?? 0)) === `v${i}`,
      ),
    );
    const gets = await Promise.all(keys.slice(0, 2000).map((key) => kv.get(key)));
    t.true(gets.every((value, i) => String(value) === `v${i}`));
    t.is(await kv.deleteMany(keys), all.length);
    t.is(breaks(), 0);
  });
}
