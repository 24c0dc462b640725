// The tests that take a seed from FARKV_SEED, found by what their sources call.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const read = (path) => readFileSync(path, 'utf8');
const filesBelow = (folder) => readdirSync(folder, { recursive: true }).map((path) => join(folder, path));

/** C programs that call check_seed(): themselves, or in a rig that they include, or in the files that implement it. */
export function randomPrograms(root) {
  const files = filesBelow(join(root, 'native/test')).filter((path) => /\.[ch]$/.test(path));
  const calls = (path, seen) => {
    if (seen.has(path)) return false;
    seen.add(path);
    const text = read(path);
    if (!path.endsWith('/check.c') && /\bcheck_seed\(\)/.test(text.replaceAll(/\/\*[^]*?\*\//g, ''))) return true;
    const includes = Array.from(text.matchAll(/^#include "([^"]+)"/gm), ([, name]) => join(dirname(path), name));
    return includes
      .filter((one) => one.includes('/native/test/') && existsSync(one))
      .some((header) => {
        const stem = header.replace(/\.h$/, '');
        const own = files.filter((one) => one.endsWith('.c') && !one.endsWith('_test.c') && one.startsWith(stem));
        return [header, ...own].some((one) => calls(one, seen));
      });
  };
  return files
    .filter((path) => path.endsWith('_test.c') && calls(path, new Set()))
    .map((path) => basename(path, '_test.c'))
    .sort();
}

/** Compiled AVA files whose sources import test/support/random.ts; `beside` have a real redis-server to compare with. */
export function randomAvaFiles(root) {
  const { include } = JSON.parse(read(join(root, 'tsconfig.json')));
  const random = include
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((path) => join(folder, path)))
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => ({ file: join('dist', path.replace(/ts$/, 'js')), text: read(join(root, path)) }))
    .filter(({ text }) => text.includes('support/random.js'));
  const chosen = (redis) => random.filter(({ text }) => text.includes('support/gateway.js') === redis);
  return { alone: chosen(false).map(({ file }) => file), beside: chosen(true).map(({ file }) => file) };
}
