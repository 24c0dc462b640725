/**
 * The page in a real browser, when its own server ends, turns it away, or takes its token out. Not for: other servers of the
 * cluster that end (page.long.test.ts).
 */
import test from 'ava';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LISTENERS } from '../../server/http/bounds.js';
import { visit } from '../support/browser.js';
import { Cluster, freePorts, succeeds } from '../support/cluster.js';

const JOINED = { hasText: /^\d\d:\d\d:\d\dn1 has joined$/ };
const DRAINED = { hasText: 'n1 is being drained' };
const AGAIN = 'the server that answers here has started again, or is another one; what is below was noted before';

test.serial('a page keeps what happened when its server is killed, says so at once, and goes on with it', async (t) => {
  const [port = 0] = await freePorts(1);
  const at = `127.0.0.1:${port}`;
  const cluster = await Cluster.start(t, { shards: 2, args: ['--http-listen', at] });
  const { page, wrong } = await visit(t, at);
  await page.locator('#health', { hasText: 'all shards are served' }).waitFor();
  t.true(await page.locator('#connection').isHidden());
  const joiner = await cluster.joiner('n1');
  await joiner.start();
  const happened = page.locator('#happened li');
  await happened.filter(JOINED).waitFor();
  // More than will have happened when the next start has drained it once.
  for (let times = 1; times <= 3; times++) {
    await succeeds(t, cluster, 'drain', 'n1');
    await succeeds(t, cluster, 'drain', 'n1', '--undo');
    await happened
      .filter(DRAINED)
      .nth(times - 1)
      .waitFor();
  }
  // No line of it is gone at any time.
  await page.evaluate(() => {
    const list = document.getElementById('happened');
    if (list === null) throw new Error('there is no list');
    const look = new MutationObserver((all) => {
      if (all.some(({ removedNodes }) => removedNodes.length > 0)) list.setAttribute('data-lost', '');
    });
    look.observe(list, { childList: true });
  });
  await cluster.server(0).kill();
  await page.locator('#health.bad', { hasText: /^not connected$/ }).waitFor();
  await page
    .locator('#connection', { hasText: /^The connection to s1 is broken\..* What is shown is of \d\d:\d\d:\d\d/ })
    .waitFor();
  t.is(await happened.filter(JOINED).count(), 1);
  await cluster.server(0).start();
  await happened.filter({ hasText: AGAIN }).waitFor();
  await page.locator('#health', { hasText: 'all shards are served' }).waitFor();
  await page.locator('#connection').waitFor({ state: 'hidden' });
  const lines = await happened.allTextContents();
  const [again, before] = [AGAIN, 'n1 has joined'].map((text) => lines.findIndex((line) => line.includes(text)));
  t.true(Number(again) >= 0 && Number(before) > Number(again), lines.join('\n'));
  t.is(await page.locator('#happened[data-lost]').count(), 0);
  await succeeds(t, cluster, 'drain', 'n1');
  await happened.filter(DRAINED).nth(3).waitFor();
  t.deepEqual(
    wrong.filter((line) => !line.includes('net::ERR_')),
    [],
  );
});

test.serial(
  'a page beyond those that a server takes says so, and what to do, and comes when there is room',
  async (t) => {
    const cluster = await Cluster.start(t, { shards: 2, args: ['--http-listen', '127.0.0.1:0'] });
    const at = cluster.server(0).readyLine?.http[0] ?? '';
    const streams = await Promise.all(
      Array.from({ length: LISTENERS }, async () => {
        const [stream] = (await once(get(`http://${at}/events`), 'response')) as [IncomingMessage];
        stream.on('error', () => undefined).resume();
        t.teardown(() => stream.destroy());
        return stream;
      }),
    );
    const { page } = await visit(t, at);
    const said = `${at} refuses this page: 16 pages are open at this server already: close one of them, or open that of another server.`;
    await page.locator('#connection', { hasText: said }).waitFor();
    t.is(await page.locator('#health').textContent(), 'refused');
    streams[0]?.destroy();
    await page.locator('#health', { hasText: 'all shards are served' }).waitFor();
    t.true(await page.locator('#connection').isHidden());
  },
);

test.serial('a page whose token is taken out says that, and the log has whose it was', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-page-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'monitor');
  const write = (token: string): void => writeFileSync(file, `${token}\n`, { mode: 0o600 });
  write('watch');
  const cluster = await Cluster.start(t, {
    shards: 2,
    args: [
      ...['--http-listen', '127.0.0.1:0', '--log-format', 'json'],
      ...['--token', 'writer', '--monitor-token-file', file],
    ],
  });
  const server = cluster.server(0);
  // The token in the address, with which a page fetches nothing by a relative one.
  const { page } = await visit(t, `operator:watch@${server.readyLine?.http[0]}`, 'watch');
  await page.locator('#health', { hasText: 'all shards are served' }).waitFor();
  write('another');
  await page
    .locator('#connection', {
      hasText:
        /^s1 refuses this page: .*token.* an operator or a monitor.*\. Load the page again, with a token or a certificate of a monitor or an operator that is good\. What is shown is of \d\d:/,
    })
    .waitFor();
  t.is(await page.locator('#health').textContent(), 'refused');
  await server.said('"event":"credential-ended","role":"monitor","name":"monitor"');
  t.regex(server.stderr, /"event":"credential-ended".*"reason":"its token was taken out of monitor"/);
});
