/**
 * Includes run one way: the order of layers stands in docs/architecture.md (the block `layers native`), a folder includes itself and what stands
 * above its own line there, and no headers include each other in a circle. Whoever breaks it is named.
 * Not for: imports of TypeScript, or calls; a function that is called lies in a file whose header is included.
 */
import test from 'ava';
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { inRepository } from '../bench/repository.js';

/** Lines of folders, the lowest first. */
type Layers = readonly (readonly string[])[];
/** For each file what it includes, as paths. */
type Includes = ReadonlyMap<string, readonly string[]>;

function layersOf(markdown: string): Layers {
  const block = /^```layers native\n(.*?)^```$/ms.exec(markdown)?.[1] ?? '';
  return block.trim().split('\n').map((line) => line.split(/\s+/));
}

function includesOf(paths: readonly string[], read: (path: string) => string): Includes {
  return new Map(
    paths.map((path) => [
      path,
      Array.from(read(path).matchAll(/^#include "([^"]+)"/gm), ([, name = '']) => posix.join(posix.dirname(path), name)),
    ]),
  );
}

/** The folder of the list that a file lies in: the longest that begins its path. */
function folderOf(layers: Layers, path: string): string | undefined {
  return layers
    .flat()
    .filter((folder) => path.startsWith(`${folder}/`))
    .reduce<string | undefined>((longest, folder) => (folder.length > (longest?.length ?? 0) ? folder : longest), undefined);
}

/** Each include that the order does not allow, as a sentence. */
function upward(layers: Layers, includes: Includes): string[] {
  const line = (folder: string): number => layers.findIndex((folders) => folders.includes(folder));
  return Array.from(includes).flatMap(([path, included]) => {
    const own = folderOf(layers, path);
    if (own === undefined) return [`${path} lies in no layer`];
    return included.flatMap((target) => {
      const folder = folderOf(layers, target);
      if (!includes.has(target) || folder === undefined) return [`${path} includes ${target}, which is not there`];
      return folder === own || line(folder) < line(own) ? [] : [`${path} includes ${target}: ${folder} is not below ${own}`];
    });
  });
}

/** A circle of includes, from a file back to itself; undefined: there is none. */
function circle(includes: Includes): string | undefined {
  const done = new Set<string>();
  const follow = (path: string, way: readonly string[]): string | undefined => {
    if (way.includes(path)) return [...way.slice(way.indexOf(path)), path].join(' -> ');
    if (done.has(path)) return undefined;
    for (const next of includes.get(path) ?? []) {
      const found = follow(next, [...way, path]);
      if (found !== undefined) return found;
    }
    done.add(path);
    return undefined;
  };
  return Array.from(includes.keys(), (path) => follow(path, [])).find((found) => found !== undefined);
}

const layers = layersOf(readFileSync(inRepository('docs/architecture.md'), 'utf8'));
const files = readdirSync(inRepository('native'), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.[ch]$/.test(name))
  .map((name) => posix.join('native', name));
const includes = includesOf(files, (path) => readFileSync(inRepository(path), 'utf8'));

test('includes of native/ run down the layers of the map', (t) => {
  t.true(files.length > 150);
  t.deepEqual(upward(layers, includes), []);
});

test('no headers include each other in a circle', (t) => {
  t.is(circle(includes), undefined);
});

test('who includes upward, or in a circle, is named', (t) => {
  const made: Layers = [['n/base'], ['n/a', 'n/b'], ['n/a/inner']];
  const sources: Record<string, string> = {
    'n/base/x.h': '#include "../a/a.h"\n',
    'n/a/a.h': '#include <stdio.h>\n#include "../base/x.h"\n',
    'n/a/inner/i.c': '#include "../a.h"\n',
    'n/a/a.c': '#include "inner/i.c"\n#include "../b/b.h"\n',
    'n/b/b.h': '',
  };
  const found = includesOf(Object.keys(sources), (path) => sources[path] ?? '');
  t.deepEqual(upward(made, found), [
    'n/base/x.h includes n/a/a.h: n/a is not below n/base',
    'n/a/a.c includes n/a/inner/i.c: n/a/inner is not below n/a',
    'n/a/a.c includes n/b/b.h: n/b is not below n/a',
  ]);
  t.is(circle(found), 'n/base/x.h -> n/a/a.h -> n/base/x.h');
});
