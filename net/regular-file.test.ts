import test from 'ava';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileReason, openRegularFile, readRegular, UnfitFile } from './regular-file.js';

const directory = mkdtempSync(join(tmpdir(), 'farkv-regular-'));
test.after.always(() => rmSync(directory, { recursive: true }));
const at = (name: string): string => join(directory, name);

test('a file of at most so many bytes is read whole, through a link too', (t) => {
  writeFileSync(at('file'), 'x'.repeat(1000));
  symlinkSync('file', at('link'));
  t.is(readRegular(at('file'), 1000).toString(), 'x'.repeat(1000));
  t.is(readRegular(at('link'), 5000).length, 1000);
  writeFileSync(at('empty'), '');
  t.is(readRegular(at('empty'), 0).length, 0);
});

test('a file whose size the system does not say is read to its end', (t) => {
  t.regex(readRegular('/proc/self/status', 1 << 20).toString(), /^Name:.*\nnonvoluntary_ctxt_switches:\s+\d+\n$/s);
  t.throws(() => readRegular('/proc/self/status', 100), { instanceOf: UnfitFile });
});

test('a larger file is refused before it is read', (t) => {
  writeFileSync(at('sparse'), '');
  truncateSync(at('sparse'), 2 ** 40);
  t.throws(() => readRegular(at('sparse'), 1 << 20), {
    instanceOf: UnfitFile,
    message: 'it has 1,099,511,627,776 bytes, at most 1,048,576 are read',
  });
});

test('a pipe, a device and a directory are refused at once', async (t) => {
  execFileSync('mkfifo', [at('pipe')]);
  mkdirSync(at('directory'));
  for (const [path, kind] of [
    [at('pipe'), 'a pipe'],
    ['/dev/zero', 'a device'],
    [at('directory'), 'a directory'],
  ] as const) {
    const message = `it is ${kind}, not a regular file`;
    t.throws(() => readRegular(path, 1000), { message });
    await t.throwsAsync(openRegularFile(path), { message });
  }
});

test('the reason is for the end of a sentence', (t) => {
  t.is(fileReason(t.throws(() => readRegular(at('nowhere'), 1))), 'ENOENT, no such file or directory');
  t.is(fileReason(new UnfitFile('it is a pipe')), 'it is a pipe');
});
