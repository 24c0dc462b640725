// The unit tests of files: what npm run check runs for a change. Not for: which deep parts a change asks for
// (../deep/changed.mjs).
import { basename, dirname, posix } from 'node:path';

const isShort = (file) => file.endsWith('.test.ts') && !file.endsWith('.long.test.ts');

/**
 * The AVA files, as sources, for the changed `files`: a test itself; of a module the tests beside it that have its name,
 * else those of its folder that import it. `all` are the repository's files, `read` gives the text of one.
 */
export function avaFilesOf(files, all, read) {
  const tests = all.filter(isShort);
  const beside = (file) => tests.filter((one) => dirname(one) === dirname(file));
  const chosen = files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      if (file.endsWith('.test.ts')) return tests.includes(file) ? [file] : [];
      const name = basename(file, '.ts');
      const named = beside(file).filter((one) => new RegExp(`^${name}(-[\\w-]+)?\\.test\\.ts$`).test(basename(one)));
      if (named.length > 0) return named;
      return beside(file).filter((one) => read(one).includes(`'./${name}.js'`));
    });
  return [...new Set(chosen)].sort();
}

/** Of what was changed or chosen, the tests that take minutes: each as the command that runs it. `makefile`: native/Makefile. */
export function longTestsOf(files, programs, makefile) {
  const long = (/^LONG := (.*)$/m.exec(makefile)?.[1] ?? '').split(' ');
  return [
    ...files
      .filter((file) => file.endsWith('.long.test.ts'))
      .map((file) => `npx ava ${posix.join('dist', file.replace(/ts$/, 'js'))}`),
    ...programs.filter((name) => long.includes(name)).map((name) => `make -s -C native test ONLY=${name}`),
  ];
}

/** Folders whose programs lie in that of another one. */
const TESTED_IN = { storage: 'dataplane', replication: 'dataplane', serve: 'dataplane' };

/**
 * The C test programs, as native/Makefile's ONLY names them, for the changed `files`: a program itself; of a source those
 * that begin with its name, with or without its folder's, else the folder's first one.
 */
export function programsOf(files, all) {
  const programs = all
    .filter((file) => /^native\/test\/\w+\/\w+_test\.c$/.test(file))
    .map((file) => ({ folder: file.split('/')[2], name: basename(file).replace(/_test\.c$/, '') }));
  const chosen = files
    .filter((file) => /^native\/.*\.[ch]$/.test(file))
    .flatMap((file) => {
      if (file.startsWith('native/test/'))
        return /_test\.c$/.test(file) ? [basename(file).replace(/_test\.c$/, '')] : [];
      const [room, ...inner] = posix.dirname(file).split('/').slice(1);
      const top = TESTED_IN[room] ?? room;
      const name = basename(file).replace(/\.[ch]$/, '');
      const begins = (text) =>
        programs.filter((one) => one.folder === top && (one.name === text || one.name.startsWith(`${text}_`)));
      const found = [name, `${top}_${name}`].flatMap(begins);
      if (found.length > 0) return found.map((one) => one.name);
      const first = [top, ...inner].join('_');
      return programs.filter((one) => one.name === first || one.name === top).map((one) => one.name);
    });
  return [...new Set(chosen)].sort();
}
