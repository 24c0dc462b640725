/** What an owner counts for its figures: by operation and error, by transport, and what clients report of their GETs. */
import test from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import type { DataPlaneStats } from '../data-plane-stats.js';
import { DEVICELESS } from '../../test/support/deviceless.js';
import { Driver, Plane } from '../../test/support/native-pair.js';

type Worker = DataPlaneStats['workers'][number];

async function workerOf(plane: Plane): Promise<Worker> {
  const { workers } = await plane.native.stats();
  if (workers[0] === undefined) throw new Error('no worker');
  return workers[0];
}

for (const provider of DEVICELESS) {
  test(`${provider}: clients report their GETs with their leases, each once`, async (t) => {
    const plane = await Plane.start({ provider, leaseMs: 100 });
    const client = Driver.to(plane);
    t.is((await client.put('there', 'a value')).status, 'OK');
    let hits = 0;
    let misses = 0;
    let reported = (await workerOf(plane)).reported;
    // An idle client asks for no lease: GETs go on until those of the beginning were reported.
    while (reported.hits < 100 || reported.misses < 10) {
      t.is((await client.get('there')).status, 'OK');
      hits += 1;
      if (hits % 10 === 0) {
        t.is((await client.get('nowhere')).status, 'NOT_FOUND');
        misses += 1;
      }
      await turn();
      reported = (await workerOf(plane)).reported;
    }
    const { reads, readBytes, getHits, getMisses } = client.native.stats();
    t.is(getHits, hits);
    t.is(getMisses, misses);
    t.true(reported.hits <= hits && reported.misses <= misses);
    t.true(reported.reads > 0 && reported.reads <= reads);
    t.true(reported.readBytes > 0 && reported.readBytes <= readBytes);
    client.close();
    await plane.close();
  });

  test(`${provider}: connections are counted by transport, and no more when they are gone`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane);
    t.is((await client.put('k', 'v')).status, 'OK');
    t.deepEqual((await workerOf(plane)).clientsOver, { [provider]: 1 });
    client.close();
    let over = (await workerOf(plane)).clientsOver;
    while (Object.keys(over).length > 0) over = (await workerOf(plane)).clientsOver;
    t.deepEqual(over, {});
    await plane.close();
  });
}

test('refused requests are counted by operation and error; latencies by size', async (t) => {
  const plane = await Plane.start();
  const client = Driver.to(plane);
  t.is((await client.put('text', 'no number')).status, 'OK');
  t.is((await client.increment('text', 1n)).status, 'ERR_NOT_INTEGER');
  const { refusedOf, refused, latencyNs } = await workerOf(plane);
  t.deepEqual(refusedOf, { increment: { ERR_NOT_INTEGER: 1 } });
  t.is(refused.ERR_NOT_INTEGER, 1);
  const { count, sum, below, max } = latencyNs.put;
  t.is(count, 1);
  t.is(sum, max);
  t.is(below.length, 25);
  t.is(below.at(-1), 1);
  below.forEach((n, i) => t.is(n, i < 24 && max >= 2 ** (10 + i) ? 0 : 1, `2^${10 + i} ns`));
  t.deepEqual(latencyNs.delete.below, []);
  client.close();
  await plane.close();
});
