/** `farkv status --json`: docs/operations.md names each field of the document, of its servers and of its shards. */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { inRepository } from '../../bench/repository.js';
import { Cluster, farkv } from '../support/cluster.js';

type Fields = Readonly<Record<string, unknown>>;
interface Document extends Fields {
  readonly members: readonly (Fields & {
    readonly node: Fields & { readonly dataPlane: Record<'workers' | 'tenants', readonly Fields[]> };
  })[];
  readonly shards: readonly Fields[];
}

/** What the first column of a table names: in a cell a name without a path lies beside the name before. */
function documented(markdown: string): Set<string> {
  const found = new Set<string>();
  for (const [, cell = ''] of markdown.matchAll(/^\| (`[^|]*) \|/gm)) {
    let within = '';
    for (const [, name = ''] of cell.matchAll(/`([^`]+)`/g)) {
      const path = name.includes('.') ? name : within + name;
      within = path.slice(0, path.lastIndexOf('.') + 1);
      found.add(path.replace(/\[\]$/, ''));
    }
  }
  return found;
}

test('the document of a real cluster has no field that is not described', async (t) => {
  t.deepEqual(
    [...documented('| `a` `b[]` | x |\n| `c[].d` `e` `f.g` | `h` |')],
    ['a', 'b', 'c[].d', 'c[].e', 'f.g'],
    'how a table is read',
  );
  const cluster = await Cluster.start(t, { level: 'durable', shards: 2 });
  const { stdout } = await farkv(['status', '--json', '--connect', cluster.server(0).address]);
  const status = JSON.parse(stdout) as Document;
  const [member] = status.members;
  const fields = [
    ...Object.keys(status),
    ...Object.keys(member ?? {}).map((name) => `members[].${name}`),
    ...Object.keys(member?.node ?? {}).map((name) => `members[].node.${name}`),
    ...Object.keys(status.shards[0] ?? {}).map((name) => `shards[].${name}`),
    ...(['workers', 'tenants'] as const).flatMap((of) =>
      Object.keys(member?.node.dataPlane[of][0] ?? {}).map((name) => `members[].node.dataPlane.${of}[].${name}`),
    ),
  ].filter((name) => name !== 'members' && name !== 'shards');
  t.true(fields.length >= 55, String(fields.length));
  const known = documented(readFileSync(inRepository('docs/operations.md'), 'utf8').split('\n## Clients')[0] ?? '');
  t.deepEqual(
    fields.filter((name) => !known.has(name)),
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
