import test from 'ava';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inRepository } from '../bench/repository.js';
import { LOG_EVENTS } from './log-events.js';

/** What the first column of the tables in this section names. */
function documented(markdown: string): string[] {
  const section = markdown.split('\n## Log\n')[1]?.split('\n## ')[0] ?? '';
  const cells = [...section.matchAll(/^\| ([^|]*) \|/gm)].map(([, cell = '']) => cell);
  return cells
    .filter((cell) => cell !== '`event`' && !cell.startsWith('---'))
    .flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));
}

/** The server's source, without its tests and the list itself. */
function source(): string {
  const files = readdirSync(inRepository('server'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && name !== 'log-events.ts',
  );
  return files.map((name) => readFileSync(join(inRepository('server'), name), 'utf8')).join('\n');
}

test('docs/operations.md has each event of the log once, and no other', (t) => {
  const names = documented(readFileSync(inRepository('docs/operations.md'), 'utf8'));
  t.deepEqual([...names].sort(), [...LOG_EVENTS].sort());
});

test('each event is one that a server writes', (t) => {
  const text = source();
  // A key of an object is written without quotes where it may be: `join:`.
  const isWritten = (name: string): boolean => text.includes(`'${name}'`) || new RegExp(`^  ${name}: `, 'm').test(text);
  t.deepEqual(
    LOG_EVENTS.filter((name) => !isWritten(name)),
    [],
  );
});
