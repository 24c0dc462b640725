import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { Credentials, Tokens } from './auth.js';

const directory = mkdtempSync(join(tmpdir(), 'farkv-auth-'));
test.after.always(() => rmSync(directory, { recursive: true, force: true }));

test('a token is compared whole, and a missing one is none', (t) => {
  const tokens = new Tokens({ text: 'right' });
  t.true(tokens.accepts('right'));
  for (const wrong of ['righ', 'right ', 'Right', '', 'x'.repeat(10_000), undefined]) t.false(tokens.accepts(wrong));
});

test('without any token everybody is let in; with one, nobody without', (t) => {
  const open = new Credentials({ tenants: [] });
  t.deepEqual(
    (['client', 'admin', 'peer'] as const).map((role) => open.identify(role, undefined)?.access),
    ['writer', 'operator', 'peer'],
  );
  const closed = new Credentials({ writer: { text: 'w' }, tenants: [] });
  t.deepEqual(
    (['client', 'admin', 'peer'] as const).map((role) => closed.identify(role, 'w')?.access),
    ['writer', undefined, undefined],
  );
  t.regex(closed.missing('admin') ?? '', /--operator-token-file/);
  t.regex(closed.missing('peer') ?? '', /--peer-token-file/);
  t.is(closed.missing('client'), undefined);
});

test('a file is read again when it has changed, each of its lines is good, and one that cannot be read leaves what was', (t) => {
  const file = join(directory, 'tokens');
  const errors: unknown[] = [];
  const clock = { ms: 0 };
  writeFileSync(file, 'one\n', { mode: 0o600 });
  const tokens = new Tokens({ file }, { unusable: (error) => errors.push(error), nowMs: () => clock.ms });
  const seen = (): boolean[] => {
    clock.ms += 10_000;
    return ['one', 'two'].map((token) => tokens.accepts(token));
  };
  t.deepEqual([...seen(), tokens.first], [true, false, 'one']);
  writeFileSync(file, '# the new one first\ntwo\none\n');
  t.deepEqual([...seen(), tokens.first], [true, true, 'two']);
  writeFileSync(file, 'two\n');
  t.deepEqual(seen(), [false, true]);
  rmSync(file);
  t.deepEqual(seen(), [false, true]);
  t.is(errors.length, 1);
});
