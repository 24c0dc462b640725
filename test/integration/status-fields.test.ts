/** `farkv status --json`: docs/operations.md names each field of the document, at any depth. */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { inRepository } from '../../bench/repository.js';
import { Cluster, farkv } from '../support/cluster.js';
import { statusWhen, copied } from '../support/status.js';

/** Of a table: what its first cell names, and what else it says. */
interface Row {
  readonly paths: readonly string[];
  readonly names: readonly string[];
}

const namesIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
/** Without what says that it is a list. */
const bare = (name: string): string => name.replace(/\[i?\]$/, '');

/** In a first cell of names alone a name without a path lies beside the name before. */
function documented(markdown: string): Row[] {
  return [...markdown.matchAll(/^\|([^|]*)\|(.*)$/gm)].map(([, cell = '', rest = '']) => {
    if (!cell.startsWith(' `')) return { paths: [], names: namesIn(cell + rest).map(bare) };
    let within = '';
    const paths = namesIn(cell).map((name) => {
      const path = name.includes('.') ? name : within + name;
      within = path.slice(0, path.lastIndexOf('.') + 1);
      return bare(path);
    });
    return { paths, names: namesIn(rest).map(bare) };
  });
}

/** Their names are kinds of requests, errors, and transports. */
const BY_NAME = /\.(requests|refused|refusedOf|answered|clientsOver)$/;

/** Of each field that has no others in it. */
function pathsOf(value: unknown, path = ''): string[] {
  const within = Array.isArray(value)
    ? value.map((one) => [`${path}[]`, one] as const)
    : typeof value === 'object' && value !== null && !BY_NAME.test(path)
      ? Object.entries(value).map(([name, one]) => [path === '' ? name : `${path}.${name}`, one] as const)
      : [];
  return within.length === 0 ? [bare(path)] : [...new Set(within.flatMap(([at, one]) => pathsOf(one, at)))];
}

const isOrEndsWith = (path: string, end: string): boolean =>
  path === end || (end.includes('.') && path.endsWith(`.${end}`));

/** By a name of its own, with the end of its path (`log.bytes`); or the row of what it is in names it. */
function isDocumented(rows: readonly Row[], path: string): boolean {
  const parts = path.split('.');
  return rows.some(
    ({ paths, names }) =>
      names.some((one) => one.includes('.') && isOrEndsWith(path, one)) ||
      parts.some((_, i) => {
        const above = bare(parts.slice(0, i + 1).join('.'));
        const below = parts.slice(i + 1).map(bare);
        return paths.some((one) => isOrEndsWith(above, one)) && below.every((name) => names.includes(name));
      }),
  );
}

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
  t.deepEqual(pathsOf(nested), ['c[].e', 'c[].e.h', 'z.requests', 'n']);
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
  const fields = pathsOf(JSON.parse(stdout));
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
