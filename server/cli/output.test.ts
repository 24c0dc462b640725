import test from 'ava';
import { readdirSync, readFileSync } from 'node:fs';
import { inRepository } from '../../bench/repository.js';

/** `top` draws on a terminal, with text that is visible already; where nothing can be loaded `main` says why. */
const WRITERS = ['server/cli/commands/top.ts', 'server/cli/main.ts', 'server/cli/output.ts'];

test('commands print by one way, which shows what a terminal would obey', (t) => {
  const files = ['server/cli', 'tools']
    .flatMap((folder) =>
      readdirSync(inRepository(folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
    )
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
  const writers = files.filter((name) =>
    /\bprocess\.(stdout|stderr)\.write\(|\bconsole\./.test(readFileSync(inRepository(name), 'utf8')),
  );
  t.deepEqual(writers.sort(), WRITERS);
});
