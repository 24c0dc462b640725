/**
 * The documents: how long the README and the map may be, how long a sentence of those that everybody reads, and that what
 * they link to and name exists, names of the protocol's rules (R-NAME, S-NAME) in code too. Not for: whether what they say
 * is true.
 */
import test from 'ava';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { inRepository } from '../bench/repository.js';

const KB = 1024;
const WORDS_MAX = 35;
const MAP = 'docs/architecture.md';
const FIGURES = ['bench/README.md', 'bench/durable.md'];
const PLAIN = ['README.md', MAP, ...FIGURES, 'docs/performance-notes.md'];
const TOPICS = readdirSync(inRepository('docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`);
const DOCUMENTS = [
  'README.md',
  'CONTRIBUTING.md',
  '.github/pull_request_template.md',
  ...FIGURES,
  'test/rdma/README.md',
  ...TOPICS,
];
/** Where invariants of the life of shards are stated; rules of replication are, in documents. */
const INVARIANTS = 'core/shards/index.ts';
const FOLDERS = [
  '.ci',
  'adapters',
  'bench',
  'client',
  'core',
  'deploy',
  'docs',
  'native',
  'net',
  'scripts',
  'server',
  'test',
  'tools',
].filter((name) => existsSync(inRepository(name)));

const read = (path: string): string => readFileSync(inRepository(path), 'utf8');
const withoutBlocks = (markdown: string): string => markdown.replace(/^```.*?^```$/gms, '');

/** Sentences of a document as text: a heading, an item of a list and a cell of a table end one, as a full stop does. */
export function sentences(markdown: string): string[] {
  const text = withoutBlocks(markdown)
    .replace(/^#+ (.*)$/gm, '\n$1\n')
    .replace(/`[^`\n]+`/g, 'code')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[*_]/g, '');
  const units = text.split(/\n\s*\n|\n(?=\s*(?:[-|#]|\d+\.) ?)|\|/);
  return units
    .flatMap((unit) => unit.replace(/\s+/g, ' ').split(/(?<=[.!?])\s+(?=[A-Z(])/))
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

const words = (sentence: string): number => sentence.split(' ').filter((word) => /\w/.test(word)).length;

/** The files and folders of the repository, from its root. */
function listed(folder: string): string[] {
  return readdirSync(inRepository(folder), { withFileTypes: true, recursive: true }).map((e) =>
    join(folder, e.parentPath.slice(inRepository(folder).length), e.name),
  );
}

/**
 * Whether a document's name for a file is that of one: from the root, or the end of its path. `*`, `<...>` and NAME
 * stand for anything.
 */
function names(paths: readonly string[]): (name: string) => boolean {
  return (name) => {
    const pattern = name
      .replace(/\/$/, '')
      .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
      .replace(/\*|<\w+>|NAME/g, '[^/]*');
    const regex = new RegExp(`(?:^|/)${pattern}$`);
    return paths.some((path) => regex.test(path));
  };
}

/** What is written as code and looks like a source file. `*.test.ts` says of which kind and names none. */
function filesIn(markdown: string): string[] {
  return Array.from(withoutBlocks(markdown).matchAll(/`([^`\s]+)`/g), ([, code]) => code ?? '').filter(
    (code) =>
      /^[\w./*<>-]+\.(?:c|h|ts|mjs|sh|gyp|md)$/.test(code) &&
      !basename(code).startsWith('*.') &&
      !code.startsWith('dist/'),
  );
}

test('README and map are as short as they shall be', (t) => {
  for (const [path, most] of [
    ['README.md', 11 * KB],
    [MAP, 8 * KB],
  ] as const) {
    const bytes = Buffer.byteLength(read(path));
    t.true(bytes <= most, `${path} has ${bytes} bytes, at most ${most}`);
  }
});

test(`no sentence of the README, the map, the figures and their notes has more than ${WORDS_MAX} words`, (t) => {
  t.deepEqual(
    sentences('# One\nTwo `a b` three. Four\nfive\n- six [seven](b.md)\n\n```\nx. Y\n```\n\n| a | b c |').map(words),
    [1, 3, 2, 2, 1, 2],
  );
  for (const path of PLAIN) {
    t.deepEqual(
      sentences(read(path)).filter((one) => words(one) > WORDS_MAX),
      [],
      path,
    );
  }
});

test('what documents link to exists', (t) => {
  for (const path of DOCUMENTS) {
    for (const [, target = ''] of withoutBlocks(read(path)).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (!/^\w+:/.test(target)) t.true(existsSync(inRepository(dirname(path), target)), `${path}: ${target}`);
    }
  }
});

test('files that documents name exist', (t) => {
  const exists = names([
    ...FOLDERS.flatMap((folder) => [folder, ...listed(folder)]),
    ...readdirSync(inRepository('.')),
  ]);
  t.false(exists('nobody.ts'));
  for (const path of DOCUMENTS) {
    for (const name of filesIn(read(path))) t.true(exists(name), `${path}: \`${name}\``);
  }
});

test('a development container installs what the README asks for', (t) => {
  const container = read('.devcontainer/devcontainer.json');
  const asked = Array.from(read('README.md').matchAll(/`apt-get install ([^`]+)`/g), ([, list = '']) =>
    list.split(' '),
  );
  t.true(asked.length > 0);
  for (const name of asked.flat()) t.regex(container, new RegExp(`apt-get -y -qq install [^&]*\\b${name}\\b`));
});

test('the layers of the map are folders of the repository', (t) => {
  const blocks = Array.from(read(MAP).matchAll(/^```layers (\w+)\n(.*?)^```$/gms));
  t.deepEqual(
    blocks.map(([, of]) => of),
    ['typescript', 'native'],
  );
  for (const [, , list = ''] of blocks) {
    for (const folder of list.split(/\s+/).filter((one) => one !== ''))
      t.true(existsSync(inRepository(folder)), folder);
  }
});

/** The names of rules that a file states: an item of a document's list, or a line of the list of INVARIANTS. */
function statedIn(path: string, text: string): string[] {
  const pattern = path === INVARIANTS ? /^ \* {3}(S-[a-z]+): /gm : /^- \*\*(R-[a-z]+)\.\*\* /gm;
  return path === INVARIANTS || path.endsWith('.md') ? Array.from(text.matchAll(pattern), ([, name = '']) => name) : [];
}

/** The names of rules that a text has, wherever it has them. */
const rulesIn = (text: string): string[] => Array.from(text.matchAll(/(?<![\w-])[RS]-[a-z]+/g), ([name]) => name);

/** Rules by number, across the lines of a comment. A file may number its own invariants, and mean these. */
function numbered(text: string): string[] {
  const words = text.replace(/\n\s*(?:\*|\/\/)?\s*(?!\d+\. )/g, ' ');
  const isOwn = /invariants:\s*\*?\s*1\./i.test(text);
  return Array.from(words.matchAll(/\b(?:rule|invariant)s? \d+/gi), ([found]) => found).filter(
    (found) => !(isOwn && /^invariant/i.test(found)),
  );
}

test('each rule has a name, is stated once, and is called by that name', (t) => {
  t.deepEqual(numbered('## Rules\n1. By rules 2\n * and 3, and Invariant\n * 4.'), ['rules 2', 'Invariant 4']);
  t.deepEqual(numbered(' * Invariants:\n * 1. One.\n */\nbool failed; /* invariant 1 */'), []);
  const texts = [...DOCUMENTS, ...FOLDERS.flatMap(listed)]
    .filter((path) => /\.(?:md|ts|mjs|c|h)$/.test(path) && !/(?:^|\/)(?:node_modules|dist|build)\//.test(path))
    .filter((path, i, all) => all.indexOf(path) === i && path !== 'test/documents.test.ts')
    .map((path) => [path, read(path)] as const);
  const stated = texts.flatMap(([path, text]) => statedIn(path, text));
  t.deepEqual(
    stated.filter((name, i) => stated.indexOf(name) !== i),
    [],
  );
  t.true(['R-commit', 'R-logged', 'S-epoch'].every((name) => stated.includes(name)));
  for (const [path, text] of texts) {
    t.deepEqual(
      rulesIn(text).filter((name) => !stated.includes(name)),
      [],
      path,
    );
    t.deepEqual(numbered(text), [], path);
  }
});
