/**
 * The C loop must read what farkv's servers serve at this moment, and nothing else: it follows changes, and ends when a
 * value is another one.
 */
import test from 'ava';
import { connect } from '../../client/index.js';
import { DemoCluster } from '../demo-cluster.js';
import { drawingNumbers } from './loops.js';
import { regionLoop, type RegionLoop } from './region-loop.js';
import { inParts, keyOf, valueOf, type FarkvClient } from './stores.js';

const KEYS = 5000;
const never = new AbortController().signal;

/** A cluster with a client, and the loops that `start` starts over it; all are ended whatever the test comes to. */
async function onCluster(
  test: (client: FarkvClient, start: (server: number, value: Buffer) => Promise<RegionLoop>) => Promise<void>,
): Promise<void> {
  const cluster = await DemoCluster.start(2, '128mb', never);
  const loops: RegionLoop[] = [];
  let client: FarkvClient | undefined;
  try {
    client = await connect({ servers: cluster.addresses, transport: 'shm', strict: true });
    await test(client, async (server, value) => {
      const loop = await regionLoop(cluster.addresses[server] ?? '', KEYS, value);
      loops.push(loop);
      return loop;
    });
  } finally {
    await Promise.all(loops.map((loop) => loop.stop()));
    await client?.close();
    await cluster.stop();
  }
}

const load = (client: FarkvClient, value: Buffer, from = 0, count = KEYS): Promise<void> =>
  inParts(count, never, (numbers) => client.putMany(numbers.map((i) => ({ key: keyOf(from + i), value }))));

test('the C loop reads the memory of running servers, also after it has changed and grown', (t) =>
  onCluster(async (client, start) => {
    const value = valueOf(100);
    await load(client, value);
    const loop = await start(0, value);
    const order = drawingNumbers(KEYS);
    t.true((await loop.plainNs(order(20_000))) > 0);
    // Most of them behind buckets and in segments that were not there before.
    await load(client, value, KEYS, 40 * KEYS);
    await load(client, value);
    t.true((await loop.plainNs(order(20_000))) > 0);
  }));

test('the C loop ends when it finds something else than what was loaded', (t) =>
  onCluster(async (client, start) => {
    const value = valueOf(100);
    await load(client, value);
    const [first, second] = [await start(0, value), await start(1, value)];
    await client.put(keyOf(7), valueOf(99));
    await t.throwsAsync(
      first.plainNs(Uint32Array.of(1, 7)),
      { message: /user000000000007: ERR_CORRUPT/ },
      'a value of another length',
    );
    await client.put(keyOf(7), Buffer.alloc(value.length));
    // As often as it takes to be sure that one of them is looked at.
    await t.throwsAsync(
      second.plainNs(new Uint32Array(1024).fill(7)),
      { message: /user000000000007: ERR_CORRUPT/ },
      'other bytes of the same length',
    );
    await t.throwsAsync(start(0, value), { message: /user000000000007: ERR_CORRUPT/ }, 'from the beginning');
  }));
