/// <reference lib="dom" />
/**
 * The page of the largest cluster, 4,096 shards with three copies each, in a real browser; their status is made up. Not for:
 * what a real cluster shows (page.long.test.ts).
 */
import test from 'ava';
import { EventEmitter, once } from 'node:events';
import type { ClusterStatus } from '../../server/status.js';
import { visitMade } from '../support/made-page.js';

const SHARDS = 4096;
const SERVERS = Array.from({ length: 6 }, (_, i) => `s${i + 1}`);

/** `isShort`: shard 4 lacks a copy. */
const status = (entries: number, isShort: boolean): ClusterStatus =>
  ({
    ...{ clusterId: 'ab'.repeat(16), leader: 's1', term: 3, mapEpoch: 1, answeredBy: 's1' },
    ...{ moves: [], moveErrors: [], failovers: [], replication: [] },
    members: SERVERS.map((id) => ({
      ...{ id, state: 'up', leader: id === 's1', role: 'voter', draining: false, memoryBytes: 1 << 30, control: [] },
      node: {
        ...{ group: { diskFull: false }, processId: 1, version: '1', uptimeMs: 7_200_000, clients: 2, leaseHeld: true },
        dataPlane: { workers: [], shards: [] },
      },
    })),
    shards: Array.from({ length: SHARDS }, (_, shard) => ({
      ...{ shard, owner: SERVERS[shard % 6], state: 'serving', entries: shard === 3 ? entries : 7 },
      copies: {
        ...{ wanted: 3, inSync: isShort && shard === 4 ? 2 : 3 },
        ...(isShort && shard === 4 ? { trouble: 'degraded' } : {}),
        copies: [0, 1, 2].map((i) => ({ member: SERVERS[(shard + i) % 6], lacks: '' })),
      },
    })),
  }) as unknown as ClusterStatus;

test('the page of 4,096 shards stays open, and only rows of shards that change are made anew', async (t) => {
  let looks = 0;
  let isShort = false;
  const all = new EventEmitter();
  const { page, wrong, streams } = await visitMade(t, () => {
    looks += 1;
    all.emit('look');
    return status(looks, isShort);
  });
  await page.locator('#legend', { hasText: `${SHARDS} of ${SHARDS} as they should be` }).waitFor();
  t.is(await page.locator('#shards tbody tr').count(), SHARDS);
  t.is(await page.locator('#picture li:not(.more)').count(), 6 * 256);
  await page.evaluate(() => {
    for (const one of document.querySelectorAll('#shards tbody tr, #picture li')) one.setAttribute('data-kept', '');
  });
  const from = looks;
  while (looks < from + 20) await once(all, 'look');
  const row = (shard: number): string => `#shards tbody tr:has(td:first-child:text-is("${shard}"))`;
  await page.waitForFunction((least) => {
    const cell = document.querySelector('#shards tbody tr:nth-child(4) td:nth-child(8)');
    return Number(cell?.textContent) > least;
  }, from + 10);
  t.is(await page.locator('#shards tbody tr[data-kept]').count(), SHARDS, 'each row is the one that it was');
  t.is(await page.locator('#picture li[data-kept]:not(.more)').count(), 6 * 256, 'as is each square');
  isShort = true;
  await page.locator('#legend', { hasText: `${SHARDS - 1} of ${SHARDS} as they should be` }).waitFor();
  t.is(await page.locator('#shards tbody tr').first().locator('td').first().textContent(), '4', 'it comes first');
  t.regex((await page.locator(row(4)).textContent()) ?? '', /2\/3 .*degraded/);
  t.is(streams(), 1, 'it was never cut off');
  t.deepEqual(wrong, []);
});
