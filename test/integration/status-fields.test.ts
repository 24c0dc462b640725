/** `farkv status --json`: docs/operations.md names each field of the document, at any depth. */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { inRepository } from '../../bench/repository.js';
import { Cluster, farkv } from '../support/cluster.js';
import { documented, isDocumented, pathsOf } from '../support/documented-fields.js';
import { statusWhen, copied } from '../support/status.js';

/** Their names are kinds of requests, errors, and transports. */
const BY_NAME = /\.(requests|refused|refusedOf|answered|clientsOver)$/;

test('the document of a real cluster has no field that is not described', async (t) => {
  const rows = documented(
    '| `a` `b[]` | x: `y` |\n| `c[].d` `e` `f.g` | `h[]`, `k`, `below[i]` |\n| C (`l.m`) | `n.o` |',
  );
  t.deepEqual(
    rows.map(({ paths, names }) => [paths, names]),
    [
      [['a', 'b'], ['y']],
      [
        ['c[].d', 'c[].e', 'f.g'],
        ['h', 'k', 'below'],
      ],
      [[], ['l.m', 'n.o']],
    ],
  );
  const nested = { c: [{ e: 1 }, { e: { h: 2 } }], z: { requests: { get: 1 } }, n: [] };
  t.deepEqual(pathsOf(nested, BY_NAME), ['c[].e', 'c[].e.h', 'z.requests', 'n']);
  for (const path of ['a', 'a.y', 'b[].y', 'c[].d.h[].k', 'x.f.g.below', 'x.l.m', 'n.o'])
    t.true(isDocumented(rows, path), path);
  for (const path of ['y', 'x.a', 'b[].z', 'c[].d.h[].y', 'x.c', 'm']) t.false(isDocumented(rows, path), path);

  const cluster = await Cluster.start(t, {
    ...{ servers: 2, level: 'durable', shards: 2 },
    args: ['--token', 'c', '--operator-token', 'o', '--peer-token', 'p', '--tenants', 'shop,shards=1,token=s'],
  });
  const { address } = cluster.server(0);
  await statusWhen(address, copied, { token: 'o' });
  const { stdout } = await farkv(['status', '--json', '--token', 'o', '--connect', address]);
  const fields = pathsOf(JSON.parse(stdout), BY_NAME);
  t.true(fields.length >= 150, String(fields.length));
  for (const one of ['tenants[].firstShard', 'replication[].onLoss', 'members[].fabric[].provider'])
    t.true(fields.includes(one), one);
  const known = ['operations', 'copies'].flatMap((page) =>
    documented(readFileSync(inRepository(`docs/${page}.md`), 'utf8').split('\n## Clients')[0] ?? ''),
  );
  t.deepEqual(
    fields.filter((name) => !isDocumented(known, name)),
    [],
  );
});

test('a server that waits for the others says so in the document, beside exit code 1', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, absent: [1, 2], ready: false });
  await cluster.server(0).said('waiting for');
  const { code, stdout } = await farkv(['status', '--json', '--connect', cluster.server(0).address]);
  t.is(code, 1);
  const { underWay, attention } = JSON.parse(stdout) as { readonly underWay: string[]; readonly attention: string[] };
  t.deepEqual(attention, []);
  t.regex(underWay.join(), /^no server leads/);
});
