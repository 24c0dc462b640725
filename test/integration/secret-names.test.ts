/** Names of certificates become names of files, and parts of role names (core/role-name.ts). */
import test from 'ava';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { printed } from '../support/run-here.js';

const directory = mkdtempSync(join(tmpdir(), 'farkv-names-'));
test.after.always(() => rmSync(directory, { recursive: true }));
const secrets = join(directory, 'secrets');
const all = (): string[] => readdirSync(directory, { recursive: true }).map(String).sort();

test.before(async (t) => {
  t.is((await printed(['secrets', 'init', secrets, '--one-identity-for-all-servers'])).code, undefined);
});

test.serial('a name that is no plain name makes no certificate, and no file', async (t) => {
  const before = all();
  for (const words of [
    ['writer', 'a/b'],
    ['writer', '../a'],
    ['writer', '..'],
    ['writer', ''],
    ['writer', '*'],
    ['writer', 'a\nb'],
    ['peer', 'a/b'],
    ['writer', 'b', '--tenant', 'a/c'],
    ['writer', 'b', '--tenant', '..'],
    ['operator', 'b', '--tenant', 'a'],
  ]) {
    const { text, code } = await printed(['secrets', 'issue', secrets, ...words]);
    t.is(code, 2, `${words.join(' ')}: ${text}`);
    t.regex(text, /a name has letters, digits|tenants have writers and readers/);
  }
  t.deepEqual(all(), before);
});

test.serial('an init with one wrong word makes nothing, and the corrected one goes through', async (t) => {
  const other = join(directory, 'other');
  const before = all();
  for (const words of [
    ['--server', 's1', '--cluster', 'a/b'],
    ['--server', 's 1'],
    ['--server', 's1', '--server', 'a/b'],
    ['--server', '../a=host'],
    ['--server', 's1', '--days', '3650'],
    ['--server', 's1', '--server', 's2', '--server', 's1=10.0.0.1'],
  ]) {
    const { text, code } = await printed(['secrets', 'init', other, ...words]);
    t.is(code, 2, text);
    t.deepEqual(all(), before, words.join(' '));
  }
  mkdirSync(other);
  for (const [file, text] of [
    ['server-s1.crt', /server-s1\.crt exists/],
    ['monitor-token', /monitor-token exists/],
  ] as const) {
    writeFileSync(join(other, file), '');
    t.regex((await printed(['secrets', 'init', other, '--server', 's1'])).text, text);
    t.deepEqual(readdirSync(other), [file]);
    rmSync(join(other, file));
  }
  const { text, code } = await printed(['secrets', 'init', other, '--server', 's1']);
  t.is(code, undefined, text);
  rmSync(other, { recursive: true });
});

test.serial('the names of a tenant, a server and any server', async (t) => {
  for (const [file, ...words] of [
    ['writer-a-b', 'writer', 'b', '--tenant', 'a'],
    ['server-s1', 'peer', 's1'],
  ] as const) {
    const { text, code } = await printed(['secrets', 'issue', secrets, ...words]);
    t.is(code, undefined, text);
    t.is(text, `${join(secrets, `${file}.crt`)}\n`);
  }
  // It is there already, under the name that servers look for.
  t.regex((await printed(['secrets', 'issue', secrets, 'peer', '*'])).text, /\/server\.crt exists/);
});
