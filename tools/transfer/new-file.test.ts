import test from 'ava';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newFile } from './new-file.js';

function place(t: { teardown: (f: () => unknown) => void }) {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-new-file-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  return { directory, path: join(directory, 'all.jsonl') };
}

test('of two that write one name the first to finish has it, whole, and the other is refused', async (t) => {
  const { directory, path } = place(t);
  let go = (): void => undefined;
  const first = new Promise<void>((resolve) => (go = resolve));
  const slow = newFile(path, async (file) => {
    await file.appendFile('slow begins\n');
    await first;
    await file.appendFile('slow ends\n');
  });
  await newFile(path, (file) => file.appendFile('quick\n'));
  t.is(readFileSync(path, 'utf8'), 'quick\n');
  t.is(statSync(path).mode & 0o777, 0o600);
  go();
  await t.throwsAsync(slow, { code: 'ERR_CONFIG', message: `${path} exists already: name a new file` });
  t.is(readFileSync(path, 'utf8'), 'quick\n');
  t.deepEqual(readdirSync(directory), ['all.jsonl']);
});

test('files of somebody else stay: one of the name before it ends, and one beside it', async (t) => {
  const { directory, path } = place(t);
  writeFileSync(`${path}.part`, 'mine');
  const late = newFile(path, async (file) => {
    await file.appendFile('late\n');
    writeFileSync(path, 'made meanwhile');
  });
  await t.throwsAsync(late, { code: 'ERR_CONFIG' });
  t.is(readFileSync(path, 'utf8'), 'made meanwhile');
  t.is(readFileSync(`${path}.part`, 'utf8'), 'mine');
  t.deepEqual(readdirSync(directory).sort(), ['all.jsonl', 'all.jsonl.part']);
});

test('what fails leaves nothing behind', async (t) => {
  const { directory, path } = place(t);
  await t.throwsAsync(
    newFile(path, () => Promise.reject(new Error('no server'))),
    { message: 'no server' },
  );
  t.deepEqual(readdirSync(directory), []);
  await t.throwsAsync(
    newFile(join(directory, 'none', 'all.jsonl'), () => Promise.resolve()),
    { code: 'ERR_CONFIG', message: /none\/all\.jsonl\.part-\S+ cannot be written: ENOENT, no such file or directory$/ },
  );
});
