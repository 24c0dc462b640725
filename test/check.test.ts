/** Which unit tests npm run check chooses for a change (scripts/check/tests-of.mjs), of files as this repository has them. */
import test from 'ava';
import { pathToFileURL } from 'node:url';
import { inRepository } from '../bench/repository.js';

interface TestsOf {
  readonly avaFilesOf: (files: readonly string[], all: readonly string[], read: (file: string) => string) => string[];
  readonly programsOf: (files: readonly string[], all: readonly string[]) => string[];
  readonly longTestsOf: (files: readonly string[], programs: readonly string[], makefile: string) => string[];
}
const { avaFilesOf, longTestsOf, programsOf } = (await import(
  pathToFileURL(inRepository('scripts/check/tests-of.mjs')).href
)) as TestsOf;

test('a module has the tests of its name, else those beside it that import it', (t) => {
  const texts: Readonly<Record<string, string>> = {
    'core/a/log.ts': '',
    'core/a/log.test.ts': '',
    'core/a/log-terms.test.ts': '',
    'core/a/log.long.test.ts': '',
    'core/a/logger.test.ts': '',
    'core/a/tail.ts': '',
    'core/a/ends.test.ts': `import { tail } from './tail.js';`,
    'core/b/ends.test.ts': `import { tail } from './tail.js';`,
  };
  const of = (...files: string[]) => avaFilesOf(files, Object.keys(texts), (file) => texts[file] ?? '');
  t.deepEqual(of('core/a/log.ts'), ['core/a/log-terms.test.ts', 'core/a/log.test.ts']);
  t.deepEqual(of('core/a/tail.ts'), ['core/a/ends.test.ts']);
  t.deepEqual(of('core/b/ends.test.ts', 'core/a/log.long.test.ts', 'README.md'), ['core/b/ends.test.ts']);
});

test('a C source has the programs of its name, with or without the folder, else the first of its folder', (t) => {
  const all = [
    'table/table',
    'table/table_merge',
    'fabric/fabric_tcp',
    'fabric/fabric_tcp_tls',
    'dataplane/dedup',
    'dataplane/dataplane',
    'dataplane/dataplane_join',
    'dataplane/dataplane_join_ends',
  ].map((name) => `native/test/${name}_test.c`);
  const of = (...files: string[]) => programsOf(files, all);
  t.deepEqual(of('native/replication/join.c'), ['dataplane_join', 'dataplane_join_ends']);
  t.deepEqual(of('native/dataplane/dedup.h', 'native/serve/life.c'), ['dataplane', 'dedup']);
  t.deepEqual(of('native/fabric/tcp/frame.c'), ['fabric_tcp']);
  t.deepEqual(of('native/test/table/table_merge_test.c', 'native/test/table/search.c'), ['table_merge']);
});

test('what takes minutes is named with its command, and not passed over in silence', (t) => {
  t.deepEqual(
    longTestsOf(
      ['test/a.long.test.ts', 'test/a.test.ts'],
      ['log_cuts', 'recovery_cuts'],
      'LONG := index_model recovery_cuts\n',
    ),
    ['npx ava dist/test/a.long.test.js', 'make -s -C native test ONLY=recovery_cuts'],
  );
});
