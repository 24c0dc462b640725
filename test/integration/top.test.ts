/** `farkv top` where its output is no terminal: one frame, or one JSON object. */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { inRepository } from '../../bench/repository.js';
import { Cluster, farkv } from '../support/cluster.js';
import { documented, isDocumented, pathsOf } from '../support/documented-fields.js';
import { copied, statusWhen } from '../support/status.js';
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

/** By use, by pages, and by kind of request. */
const BY_NAME = /^(memory|pages|(servers\[\]\.)?rates)$/;

test('farkv top --json prints one object, and docs/monitoring.md names each field of it, at any depth', async (t) => {
  const { addresses } = await Cluster.start(t, { servers: 2, shards: 3, level: 'replicated' });
  await statusWhen(addresses[0] ?? '', copied);
  const { code, stdout } = await farkv(['top', '--json', '--connect', addresses.join(',')]);
  t.is(code, 0);
  const view = JSON.parse(stdout) as { readonly shards: readonly object[]; readonly rates: object };
  t.like(view, { answeredBy: 's1', attention: [], moves: [] });
  t.is(view.shards.length, 3);
  const fields = pathsOf(view, BY_NAME);
  for (const one of ['shards[].copies[].lacks', 'servers[].zone', 'rates']) t.true(fields.includes(one), one);
  const of = (page: string) => documented(readFileSync(inRepository(`docs/${page}.md`), 'utf8'));
  const known = of('monitoring');
  t.deepEqual(
    fields.filter((name) => !isDocumented(known, name)),
    [],
  );
  // Each kind of request is in the one list of them; `read` is none.
  const kinds = of('operations');
  t.deepEqual(
    Object.keys(view.rates).filter((kind) => !isDocumented(kinds, `latencyNs.${kind}`)),
    ['read'],
  );
});
