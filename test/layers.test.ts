/**
 * The order of layers: every import and include obeys the fenced lists of docs/architecture.md, where a folder imports
 * itself and the lines above its own. Folders on one line do not import each other. Unit tests are free: they may drive
 * a layer from above.
 *
 * A list is `layers NAME` in the document, and one entry of LANGUAGES here. Not for: calls; a function that is called
 * lies in a file whose header is included.
 */
import test from 'ava';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { inRepository } from '../bench/repository.js';

const MAP = 'docs/architecture.md';

interface Language {
  /** Whether the order holds for this file, a path from the root. */
  readonly has: (path: string) => boolean;
  /** The files of the repository that this text takes something from, as paths from the root. */
  readonly imports: (path: string, text: string) => readonly string[];
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  typescript: {
    has: (path) => path.endsWith('.ts') && !path.endsWith('.test.ts'),
    imports: (path, text) =>
      Array.from(text.matchAll(/(?:\bfrom|^import|\bimport\()\s*'(\.{1,2}\/[^']+)'/gm), ([, name = '']) =>
        normalize(join(dirname(path), name)).replace(/\.js$/, '.ts'),
      ),
  },
  native: {
    has: (path) => /\.[ch]$/.test(path),
    imports: (path, text) =>
      Array.from(text.matchAll(/^#include "([^"]+)"/gm), ([, name = '']) => normalize(join(dirname(path), name))),
  },
};

type File = readonly [path: string, text: string];

/** From the lowest layer to the highest, the folders of each. */
function layers(markdown: string, language: string): string[][] {
  const block = new RegExp(`^\`\`\`layers ${language}\\n(.*?)^\`\`\``, 'ms').exec(markdown)?.[1];
  if (block === undefined) throw new Error(`${MAP} has no list of layers ${language}`);
  return block
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
}

/** One line for each file without a layer, and for each import that does not go down. */
function offences({ has, imports }: Language, order: readonly (readonly string[])[], files: readonly File[]): string[] {
  const levels = new Map(order.flatMap((folders, level) => folders.map((folder) => [folder, level] as const)));
  const folderOf = (path: string): string | undefined => {
    let folder = dirname(path);
    while (folder !== '.' && !levels.has(folder)) folder = dirname(folder);
    return folder === '.' ? undefined : folder;
  };
  const below = (folder: string, other: string): boolean =>
    (levels.get(other) ?? Infinity) < (levels.get(folder) ?? -1);
  return files
    .filter(([path]) => has(path))
    .flatMap(([path, text]) => {
      const folder = folderOf(path);
      if (folder === undefined) return [`${path} is in no folder of the list`];
      return imports(path, text).flatMap((imported) => {
        const other = folderOf(imported);
        if (other === folder || (other !== undefined && below(folder, other))) return [];
        return [`${path} (${folder}) imports ${imported} (${other ?? 'in no folder of the list'})`];
      });
    });
}

/**
 * Folders that are entered by one file alone: from another folder nothing else of them is included. Tests may look inside.
 */
const WALLS: Readonly<Record<string, string>> = { 'native/replication': 'native/replication/replication.h' };

/** One line for each import that goes through a wall and not by its door. */
function breaches({ has, imports }: Language, files: readonly File[]): string[] {
  return files
    .filter(([path]) => has(path) && !path.startsWith('native/test/'))
    .flatMap(([path, text]) =>
      imports(path, text)
        .filter((one) => {
          const door = WALLS[dirname(one)];
          return door !== undefined && one !== door && dirname(path) !== dirname(one);
        })
        .map((one) => `${path} includes ${one}`),
    );
}

/** A circle of imports, from a file back to itself; undefined: there is none. */
function circle({ has, imports }: Language, files: readonly File[]): string | undefined {
  const all = new Map(files.filter(([path]) => has(path)).map(([path, text]) => [path, imports(path, text)] as const));
  const done = new Set<string>();
  const follow = (path: string, way: readonly string[]): string | undefined => {
    if (way.includes(path)) return [...way.slice(way.indexOf(path)), path].join(' -> ');
    if (done.has(path)) return undefined;
    const found = (all.get(path) ?? []).map((next) => follow(next, [...way, path])).find((one) => one !== undefined);
    done.add(path);
    return found;
  };
  return Array.from(all.keys(), (path) => follow(path, [])).find((found) => found !== undefined);
}

/** The source files below the folders of a list. */
function filesOf(order: readonly (readonly string[])[]): File[] {
  const tops = new Set(order.flat().map((folder) => folder.split('/')[0] ?? ''));
  return [...tops].flatMap((top) =>
    readdirSync(inRepository(top), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && /\.(?:ts|c|h)$/.test(entry.name))
      .map((entry): File => {
        const path = join(top, entry.parentPath.slice(inRepository(top).length), entry.name);
        return [path, readFileSync(inRepository(path), 'utf8')];
      }),
  );
}

test('an import that goes up, to the side, or out of the list is named', (t) => {
  const order = layers('x\n```layers typescript\na/low\na b\nc\n```\n', 'typescript');
  t.deepEqual(order, [['a/low'], ['a', 'b'], ['c']]);
  const found = offences(LANGUAGES.typescript!, order, [
    ['a/low/one.ts', "import { x } from './two.js';\nimport type { Y } from '../three.js';\n"],
    ['a/three.ts', "export * from './low/one.js';\nexport { z } from '../b/four.js';\nimport test from 'ava';\n"],
    [
      'c/five.ts',
      "const x = await import('../a/three.js');\nconst y = import('../d/six.js');\nimport {\n  z,\n} from '../b/four.js';\n",
    ],
    ['c/five.test.ts', "import '../d/six.js';\n"],
    ['d/six.ts', ''],
  ]);
  t.deepEqual(found, [
    'a/low/one.ts (a/low) imports a/three.ts (a)',
    'a/three.ts (a) imports b/four.ts (b)',
    'c/five.ts (c) imports d/six.ts (in no folder of the list)',
    'd/six.ts is in no folder of the list',
  ]);
});

for (const [name, language] of Object.entries(LANGUAGES)) {
  test(`imports of ${name} go down the layers of the map`, (t) => {
    const order = layers(readFileSync(inRepository(MAP), 'utf8'), name);
    const files = filesOf(order);
    t.true(files.some(([path, text]) => language.has(path) && language.imports(path, text).length > 0));
    t.deepEqual(offences(language, order, files), []);
  });
}

test('a folder with a wall is entered by its door', (t) => {
  const order = layers(readFileSync(inRepository(MAP), 'utf8'), 'native');
  t.deepEqual(breaches(LANGUAGES.native!, filesOf(order)), []);
  const made: File[] = [
    ['native/serve/run.c', '#include "../replication/replication.h"\n#include "../replication/copies.h"\n'],
    ['native/replication/copies.c', '#include "copies.h"\n'],
    ['native/test/dataplane/copies_test.c', '#include "../../replication/copies.h"\n'],
  ];
  t.deepEqual(breaches(LANGUAGES.native!, made), ['native/serve/run.c includes native/replication/copies.h']);
});

test('no headers include each other in a circle', (t) => {
  const order = layers(readFileSync(inRepository(MAP), 'utf8'), 'native');
  t.is(circle(LANGUAGES.native!, filesOf(order)), undefined);
  const made: File[] = [
    ['n/a.h', '#include "b.h"\n'],
    ['n/b.h', '#include <stdio.h>\n#include "../n/a.h"\n'],
    ['n/c.c', '#include "a.h"\n'],
  ];
  t.is(circle(LANGUAGES.native!, made), 'n/a.h -> n/b.h -> n/a.h');
});
