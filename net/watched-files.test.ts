import test from 'ava';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WatchedFiles } from './watched-files.js';

const directory = mkdtempSync(join(tmpdir(), 'farkv-watched-'));
test.after.always(() => rmSync(directory, { recursive: true, force: true }));

test('files that do not fit together change nothing, and are used when they do', (t) => {
  const [cert, key] = [join(directory, 'cert'), join(directory, 'key')];
  const write = (path: string, text: string): void => writeFileSync(path, text);
  write(cert, '1');
  write(key, '1');
  const clock = { ms: 0 };
  const errors: unknown[] = [];
  let reads = 0;
  const read = (): string => {
    reads += 1;
    const pair = [cert, key].map((path) => readFileSync(path, 'utf8'));
    if (pair[0] !== pair[1]) throw new Error('they do not belong together');
    return pair.join();
  };
  const files = new WatchedFiles([cert, key], read, { nowMs: () => clock.ms, unusable: (error) => errors.push(error) });
  const look = (): string => {
    clock.ms += 1000;
    return files.value;
  };
  t.is(look(), '1,1');
  t.is(look(), '1,1');
  t.is(reads, 1, 'files that have not changed are not read again');
  write(key, '22');
  t.deepEqual([look(), look(), errors.length], ['1,1', '1,1', 1]);
  rmSync(cert);
  t.deepEqual([look(), look(), errors.length], ['1,1', '1,1', 2]);
  write(cert, '22');
  t.is(files.value, '1,1', 'not looked at so soon');
  t.is(look(), '22,22');
  t.is(errors.length, 2);
});
