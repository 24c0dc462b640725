import test from 'ava';
import { readdirSync, readFileSync } from 'node:fs';
import { inRepository } from '../../bench/repository.js';

/** `top` draws on a terminal, with text that is visible already; where nothing can be loaded `main` says why. */
const WRITERS = ['commands/top.ts', 'main.ts', 'output.ts'];

test('commands print by one way, which shows what a terminal would obey', (t) => {
  const files = readdirSync(inRepository('server/cli'), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
  const writers = files.filter((name) =>
    /\bprocess\.(stdout|stderr)\.write\(|\bconsole\./.test(readFileSync(inRepository('server/cli', name), 'utf8')),
  );
  t.deepEqual(writers.sort(), WRITERS);
});
