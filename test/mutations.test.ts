/**
 * The mutation checks are many and run for long: that each still has its place in the sources, and the test that must
 * notice it, is checked here.
 */
import test from 'ava';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { inRepository } from '../bench/repository.js';

const LISTS = 'scripts/mutations';

/** What is read of one here; scripts/mutations/run.mjs says what they are. */
interface Mutation {
  readonly name: string;
  readonly operator: Operator;
  readonly caughtBy: { readonly test?: string; readonly title?: string; readonly program?: string };
}
type Operator = (place: never) => unknown;

interface Markers {
  readonly allMarkers: (root: string) => readonly { readonly name: string; readonly file: string }[];
  readonly mutate: (source: string, mutation: { file: string; name: string; operator: Operator }) => string;
}
interface Operators {
  readonly drop: (text?: string) => Operator;
  readonly never: (text?: string) => Operator;
  readonly always: (text?: string) => Operator;
  readonly without: (text: string) => Operator;
  readonly unwrap: (callee: string, argument?: number) => Operator;
  readonly instead: (text: string, by: string) => Operator;
  readonly swap: () => Operator;
}

const load = async <T>(path: string): Promise<T> => (await import(pathToFileURL(inRepository(path)).href)) as T;
const markers = await load<Markers>(`${LISTS}/checks/markers.mjs`);
const { drop, never, always, without, unwrap, instead, swap } = await load<Operators>(`${LISTS}/checks/operators.mjs`);

async function allMutations(): Promise<readonly Mutation[]> {
  const files = readdirSync(inRepository(LISTS))
    .filter((name) => name.endsWith('.mjs') && name !== 'run.mjs')
    .map((name) => `${LISTS}/${name}`);
  const lists = await Promise.all(
    [...files, 'test/rdma/verbs.mjs'].map((path) => load<{ mutations: readonly Mutation[] }>(path)),
  );
  return lists.flatMap(({ mutations }) => mutations);
}

test('each mutation has one marker, each marker a mutation, and its operator changes what stands there', async (t) => {
  const mutations = await allMutations();
  const marked = markers.allMarkers(inRepository('.'));
  t.deepEqual(marked.map(({ name }) => name).sort(), mutations.map(({ name }) => name).sort());
  for (const mutation of mutations) {
    const file = marked.find(({ name }) => name === mutation.name)?.file ?? '';
    const source = readFileSync(inRepository(file), 'utf8');
    t.notThrows(() => {
      t.not(markers.mutate(source, { ...mutation, file }), source, mutation.name);
    }, mutation.name);
  }
});

/** One line of C and of TypeScript with a marker, as the operator leaves it, without blanks. */
function applied(operator: Operator, code: string, rest = '') {
  const of = (file: string, comment: string) => {
    const source = `before(); // of this file\n${code} ${comment}\n${rest}\nafter();\n`;
    return markers.mutate(source, { file, name: 'list/name', operator }).split(/\s+/).join('');
  };
  const c = of('a.c', '/* mutation: list/other, list/name */').replaceAll(/\/\*.*?\*\//g, '');
  const typescript = of('a.ts', '// mutation: list/other, list/name').replaceAll('//mutation:list/other,list/name', '');
  return c === typescript ? c.slice('before();//ofthisfile'.length, -'after();'.length) : [c, typescript];
}

test('an operator changes the statement, the condition or the operand that it is for, and nothing else', (t) => {
  const cases: readonly (readonly [Operator, string, string, string?])[] = [
    [drop(), 'if (a) { b(); } else c();', ';d();', 'd();'],
    [drop(), 'for (;;) b(1, (2));', ';'],
    [drop('b('), 'if (a) b(";"); else c();', 'if(a);elsec();'],
    [never(), 'if (a && (b || c)) return d ? e : f;', 'if(false)returnd?e:f;'],
    [never(), 'return f(a, b) == c ? d : e;', 'returnfalse?d:e;'],
    [always(), 'return a && b;', 'returntrue;'],
    [always(), 'x = a(b, c);', 'x=true;'],
    [never('b'), 'if (a && !b(c, d)) e();', 'if(a&&false)e();'],
    [without('b'), 'if (a || b(c)[d] > e || f) g();', 'if(a||f)g();'],
    [without('b'), 'if (a && b || c) d();', 'if(a||c)d();'],
    [without('(b'), 'x = a && (b || c);', 'x=a;'],
    [without('b'), 'f(a, b + 1);', 'f(a);'],
    [without('a'), 'f(a, b);', 'f(b);'],
    [unwrap('f'), 'x = f(g(a, b), c) + 1;', 'x=g(a,b)+1;'],
    [unwrap('f', 1), 'x = f(a, b, c);', 'x=b;'],
    [instead('a > 1', 'a > 0'), 'if (b(a>1)) c();', 'if(b(a>0))c();'],
    [swap(), 'if (a) { b(); }', 'c();if(a){b();}d();', 'c(); d();'],
  ];
  for (const [operator, code, becomes, rest] of cases) t.is(applied(operator, code, rest), becomes, code);
});

test('a marker may stand alone before its line; an operator that does not apply is an error', (t) => {
  const alone = (operator: Operator) =>
    markers.mutate('  // mutation: list/name\n\n  if (a) b();\n', { file: 'a.ts', name: 'list/name', operator });
  t.is(alone(never()), '  // mutation: list/name\n\n  if (false) b();\n');
  for (const operator of [without('a'), drop('c'), unwrap('a'), instead('d', 'e'), never('x')])
    t.throws(() => alone(operator));
  t.throws(() => markers.mutate('a();\n', { file: 'a.ts', name: 'list/name', operator: drop() }), {
    message: /no marker/,
  });
});

/** Whether a C program has a test: a macro may compose its name, as in TEST(nothing_is_lost_when_##name). */
function hasTest(source: string, words: ReadonlySet<string>, name: string) {
  const starts = [...source.matchAll(/\b(\w+_)##/g)].map(([, start = '']) => start);
  return words.has(name) || starts.some((start) => name.startsWith(start) && words.has(name.slice(start.length)));
}

test('the test that must notice a mutation exists', async (t) => {
  const folder = inRepository('native/test');
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.c'));
  const texts = new Map(sources.map((path) => [path, readFileSync(`${folder}/${path}`, 'utf8')]));
  const words = new Set([...texts.values()].join().match(/\w+/g));
  const missing = (await allMutations()).flatMap(({ name, caughtBy }) => {
    const { program, title, test: file } = caughtBy;
    if (program !== undefined) {
      const path = sources.find((one) => one.endsWith(`/${program}_test.c`));
      return hasTest(texts.get(path ?? '') ?? '', words, file ?? '') ? [] : [`${name}: ${program}`];
    }
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
