/** Names of certificates become names of files, and parts of role names (core/role-name.ts). */
import test from 'ava';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
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
  for (const words of [
    ['--cluster', 'a/b'],
    ['--server', 'a/b'],
    ['--server', '../a=host'],
  ]) {
    const { code } = await printed(['secrets', 'init', join(directory, 'other'), ...words]);
    t.is(code, 2, words.join(' '));
    rmSync(join(directory, 'other'), { recursive: true, force: true });
  }
  t.deepEqual(all(), before);
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
