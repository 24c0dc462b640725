/** The ticket secret is exchanged and tickets are revoked while clients work. */
import test, { type ExecutionContext } from 'ava';
import { connect, type Client, type ClientEvent } from '../../client/index.js';
import type { BufferValue } from '../../client/index.js';
import { Cluster, succeeds } from '../support/cluster.js';
import { PATIENT } from '../support/sdk-clients.js';

type Kv = Client<BufferValue, Buffer>;
type Transport = 'shm' | 'tcp';

async function come(
  t: ExecutionContext,
  cluster: Cluster,
  transport: Transport,
  onEvent: (event: ClientEvent) => void = () => undefined,
): Promise<Kv> {
  const kv = await connect({ servers: cluster.addresses, transport, onEvent, ...PATIENT });
  t.teardown(() => kv.close());
  return kv;
}

/** Puts and gets `count` times more whenever it is asked; the first call that fails rejects. */
async function work(kv: Kv, name: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const key = `${name}-${i % 50}`;
    await kv.put(key, `${i}`);
    if ((await kv.get(key))?.toString() !== `${i}`) throw new Error(`${key} has another value`);
  }
}

for (const transport of ['shm', 'tcp'] as const) {
  test.serial(`${transport}: no call fails while the ticket secret is exchanged and clients come`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 3 });
    const first = await come(t, cluster, transport);
    const load = { over: false };
    const lasting = (async () => {
      while (!load.over) await work(first, 'first', 100);
    })();
    await succeeds(t, cluster, 'secrets', 'rotate-tickets');
    for (let i = 0; i < 5; i++) await work(await come(t, cluster, transport), `c${i}`, 200);
    load.over = true;
    await t.notThrowsAsync(lasting);
  });

  test.serial(`${transport}: revoked clients lose their connections and come back with their token`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 1 });
    let lost = (): void => undefined;
    const gone = new Promise<void>((resolve) => (lost = resolve));
    const kv = await come(t, cluster, transport, (event) => {
      if (event.type === 'control' && !event.connected) lost();
    });
    await kv.put('k', 'v');
    await succeeds(t, cluster, 'revoke', '--tenant', '');
    await gone;
    t.is((await kv.get('k'))?.toString(), 'v');
    await kv.put('k', 'w');
  });
}
