/**
 * The mutation checks are many and run for long: that each still has its place in the sources, and the test that is to
 * notice it, is looked at here.
 */
import test from 'ava';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { inRepository } from '../bench/repository.js';

const LISTS = 'scripts/mutations';

/** What is read of one here; scripts/mutations/run.mjs says what they are. */
interface Mutation {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly caughtBy: { readonly test?: string; readonly title?: string; readonly program?: string };
}

const load = async <T>(path: string): Promise<T> => (await import(pathToFileURL(inRepository(path)).href)) as T;

async function allMutations(): Promise<readonly Mutation[]> {
  const files = readdirSync(inRepository(LISTS)).filter((name) => name.endsWith('.mjs') && name !== 'run.mjs');
  const lists = await Promise.all(files.map((name) => load<{ mutations: readonly Mutation[] }>(`${LISTS}/${name}`)));
  return lists.flatMap(({ mutations }) => mutations);
}

test('the text of each mutation stands once in its file, and no two have one name', async (t) => {
  const { occurrences } = await load<{ occurrences: (source: string, find: string) => number }>(
    `${LISTS}/checks/text.mjs`,
  );
  const mutations = await allMutations();
  const elsewhere = mutations.flatMap(({ name, file, find }) => {
    const times = occurrences(readFileSync(inRepository(file), 'utf8'), find);
    return times === 1 ? [] : [`${name}: ${times} times in ${file}`];
  });
  t.deepEqual(elsewhere, []);
  t.is(new Set(mutations.map(({ name }) => name)).size, mutations.length);
});

test('the test that is to notice a mutation is there', async (t) => {
  const cTests = readdirSync(inRepository('native/test'), { recursive: true, encoding: 'utf8' });
  const missing = (await allMutations()).flatMap(({ name, caughtBy }) => {
    const { program, title, test: file } = caughtBy;
    if (program !== undefined)
      return cTests.some((path) => path.endsWith(`/${program}_test.c`)) ? [] : [`${name}: ${program}`];
    if (file === undefined) return [];
    if (!existsSync(inRepository(file))) return [`${name}: ${file}`];
    // A title may be composed, and then it is not in the file as it is.
    const source = readFileSync(inRepository(file), 'utf8').replaceAll("\\'", "'");
    return title === undefined || source.includes(title) || source.includes('${') ? [] : [`${name}: ${title}`];
  });
  t.deepEqual(missing, []);
});

test('of a change only those rows are chosen that it may concern', async (t) => {
  const { concerns } = await load<{ concerns: (row: unknown, files: readonly string[]) => boolean }>(
    `${LISTS}/checks/chosen.mjs`,
  );
  const list = `${LISTS}/raft.mjs`;
  const rows = [
    { file: 'core/a.ts', list, caughtBy: { test: 'core/a.test.ts' } },
    { file: 'native/a.c', list: `${LISTS}/table.mjs`, caughtBy: { program: 'table' } },
    { file: 'core/b.ts', list: `${LISTS}/sim.mjs`, caughtBy: { simulation: /lost/ } },
  ];
  for (const [path, ...chosen] of [
    ['core/a.ts', 0],
    ['core/a.test.ts', 0],
    [list, 0],
    ['native/test/table/table_test.c', 1],
    ['native/test/table/new_table_test.c'],
    ['test/sim/world.ts', 2],
    ['core/other.ts'],
  ] as const) {
    t.deepEqual(
      rows.filter((row) => concerns(row, ['docs/a.md', path])),
      chosen.map((i) => rows[i]),
      path,
    );
  }
});
