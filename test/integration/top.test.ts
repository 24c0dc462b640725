/** `farkv top` where its output is no terminal: one frame, or one JSON object. */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { inRepository } from '../../bench/repository.js';
import { Cluster, farkv } from '../support/cluster.js';
import { patient } from '../support/sdk-clients.js';

test('without a terminal farkv top prints one frame and ends', async (t) => {
  const cluster = await Cluster.start(t, { shards: 3 });
  const { code, stdout } = await farkv(['top', '--connect', cluster.addresses.join(',')]);
  t.is(code, 0);
  t.regex(stdout, /leader s1, term \d+ {2}3 of 3 shards served/);
  t.regex(stdout, /^s1 +up, leader +held +3/m);
  t.regex(stdout, /every shard is as it should be\n$/);
  // eslint-disable-next-line no-control-regex
  t.notRegex(stdout, /\u001b/);
});

test('without a terminal its rates are those of a second', async (t) => {
  const cluster = await Cluster.start(t, { shards: 3 });
  const client = await patient(t, cluster.addresses);
  const load = { on: true };
  const loading = (async () => {
    while (load.on) await client.put('key', 'value');
  })();
  const { stdout } = await farkv(['top', '--connect', cluster.addresses.join(',')]);
  load.on = false;
  await loading;
  const [, puts = '0'] =
    /^s1 +up, leader +held +3 +\d+ +[\d,]+ +[\d.]+ \w+, \d+ %(?: +[\d.]+ \w+){2} +[\d,]+ +([\d,]+) /m.exec(stdout) ??
    [];
  t.true(Number(puts.replaceAll(',', '')) > 0, stdout);
});

test('farkv top --json prints one object, whose fields are documented', async (t) => {
  const cluster = await Cluster.start(t, { shards: 3 });
  const { code, stdout } = await farkv(['top', '--json', '--connect', cluster.addresses.join(',')]);
  t.is(code, 0);
  const view = JSON.parse(stdout) as Readonly<Record<string, unknown>> & {
    readonly servers: readonly object[];
    readonly shards: readonly object[];
    readonly gets: object;
    readonly rates: object;
  };
  t.like(view, { leader: 's1', attention: [], moves: [] });
  t.is(view.shards.length, 3);
  const documented = readFileSync(inRepository('docs/monitoring.md'), 'utf8');
  for (const record of [view, view.servers[0] ?? {}, view.shards[0] ?? {}, view.gets, view.rates])
    for (const name of Object.keys(record)) t.regex(documented, new RegExp(`\`${name}(\\[\\])?\``), name);
});
