/**
 * The page in a real browser, of real servers under load: what its charts show, also after the load, and a shard on its
 * way. Not for: a server that is killed (page.long.test.ts).
 */
import test from 'ava';
import { visit } from '../support/browser.js';
import { Cluster, farkv } from '../support/cluster.js';
import { LASTING } from '../support/owners.js';
import { drawn, highestIn, inWords, lastValue, noValue, type Line } from '../support/page-charts.js';
import { patient } from '../support/sdk-clients.js';
import { leaderOf, statusWhen } from '../support/status.js';
import { SteadyLoad } from '../support/steady-load.js';

const HTTP = ['--http-listen', '127.0.0.1:0'];
const PUTS: Line = { chart: 'operations', name: 'put' };
/** With what a client over tcp has: per second, READs, microseconds, and MiB of three servers. */
const LINES: readonly (Line & { readonly least: number; readonly most: number })[] = [
  { chart: 'operations', name: 'GETs of clients', least: 1, most: 1e6 },
  { ...PUTS, least: 1, most: 1e6 },
  { chart: 'operations', name: 'tcp READ', least: 1, most: 1e6 },
  { chart: 'reads', name: 'READs per GET', least: 0.01, most: 3 },
  { chart: 'latency', name: 'put p50', least: 0.1, most: 1e7 },
  { chart: 'latency', name: 'put p99', least: 0.1, most: 1e7 },
  { chart: 'memory', name: 'used', least: 0.01, most: 3 * 64 },
  { chart: 'memory', name: 'registered', least: 0.01, most: 3 * 64 },
];
/** Looks, of which a server keeps a tenth. */
const LOADED = 12;
/** Of a page whose server is late for its sample; of two looks each. */
const RELOADS = 20;

test.serial('the charts follow the load, and a page that is opened afterwards shows it too', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 6, args: HTTP });
  const client = await patient(t, cluster.addresses, { transport: 'tcp' });
  const { page, wrong } = await visit(t, cluster.server(0).readyLine?.http[0] ?? '');
  await lastValue(page, PUTS, { most: 0 });
  const load = await SteadyLoad.start(client);
  const before = await inWords(page, 'operations', 2);
  const moments = Number(/ (\d+) moments, \d\d:\d\d:\d\d to \d\d:\d\d:\d\d\./.exec(before)?.[1]);
  for (const line of LINES) t.log(line.name, await lastValue(page, line, line));
  const words = await inWords(page, 'operations', moments + LOADED);
  t.true(highestIn(words, PUTS.name) >= 1, words);
  for (const line of LINES) t.true((await drawn(page, line)) > 0, `${line.name} is drawn`);
  await load.stop(t);
  await lastValue(page, PUTS, { most: 0 });
  await noValue(page, { chart: 'reads', name: 'READs per GET' });
  await page.close();

  // The second server has had no page: it has looked by itself.
  for (const server of [cluster.server(0), cluster.server(1)]) {
    const later = await visit(t, server.readyLine?.http[0] ?? '');
    // Its first look is compared with one of the load, maybe, and of the reloaded page none is.
    await lastValue(later.page, PUTS, { most: 0 });
    let words = '';
    for (let i = 0; i < RELOADS && !(highestIn(words, PUTS.name) >= 1); i++) {
      await later.page.reload();
      words = await inWords(later.page, 'operations', 2);
    }
    t.true(highestIn(words, PUTS.name) >= 1, `${server.id}: ${words}`);
    await lastValue(later.page, PUTS, { most: 0 });
    t.true((await drawn(later.page, PUTS)) > 0, `${server.id}: the load of before is drawn`);
    t.true(highestIn(await inWords(later.page, 'latency', 2), 'put p99') > 0);
    t.deepEqual(later.wrong, []);
    await later.page.close();
  }
  t.deepEqual(wrong, []);
});

test.serial('a shard that moves under load is on the page as it does, and then at its new owner', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 3, args: [...HTTP, ...LASTING] });
  const lead = cluster.server(await leaderOf(cluster));
  const load = await SteadyLoad.start(await patient(t, cluster.addresses));
  const { page, wrong } = await visit(t, lead.readyLine?.http[0] ?? '');
  await page.locator('#facts', { hasText: '3 of 3 served' }).waitFor();
  await page.locator('#moves', { hasText: /^none$/ }).waitFor();
  const { shards } = await statusWhen(lead.address, ({ shards: all }) =>
    all.every(({ copies }) => copies?.inSync === 2 && copies.copies.length === 2),
  );
  const { shard = 0, owner = '', copies } = shards.find((one) => one.owner === lead.id) ?? {};
  // It needs a copy before the shard is handed over to it.
  const target = cluster.servers.find(({ id }) => copies?.copies.every(({ member }) => member !== id));
  if (target === undefined) throw new Error(`${lead.id} owns no shard, or every server has a copy`);
  const row = page.locator('#shards tbody tr', { has: page.locator(`td:first-child:text-is("${shard}")`) });
  t.is(await row.locator('td').nth(2).innerText(), owner);
  // It copies nothing before it goes on.
  target.signal('SIGSTOP');
  const moved = farkv(['shard', 'move', String(shard), target.id, '--timeout', '2m', '--connect', lead.address]);
  await page.locator('#moves li', { hasText: `shard ${shard} is moving (${owner} -> ${target.id}): ` }).waitFor();
  t.is(await row.locator('td').nth(2).innerText(), owner, 'its owner serves it still');
  const happened = page.locator('#happened li');
  await happened.filter({ hasText: `a move to ${target.id} has begun: shard ${shard}` }).waitFor();
  target.signal('SIGCONT');
  const { code, stdout, stderr } = await moved;
  t.is(code, 0, stdout + stderr);
  await page.locator('#moves', { hasText: /^none$/ }).waitFor();
  await row.locator(`td:nth-child(3):text-is("${target.id}")`).waitFor();
  await happened.filter({ hasText: new RegExp(`from ${owner} to ${target.id}: shard ${shard}$`) }).waitFor();
  await lastValue(page, PUTS, { least: 1 });
  await load.stop(t);
  t.deepEqual(wrong, []);
});
