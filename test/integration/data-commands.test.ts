import test from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLI } from '../support/cluster.js';
import { dataCommands } from '../support/data-commands.js';

const { directory, env, run } = dataCommands(test);

test.serial('put, get, delete; a missing key is exit code 3', async (t) => {
  t.like(await run(['put', 'greeting', 'hello world']), { code: 0, stdout: '', stderr: '' });
  t.like(await run(['get', 'greeting']), { code: 0, stdout: 'hello world\n', stderr: '' });
  t.like(await run(['get', 'greeting', '--raw']), { stdout: 'hello world' });
  t.false((await run(['get', 'greeting', '--json'])).stdout.includes('expiresAtMs'));
  await run(['put', 'greeting', 'hello', '--ttl', '24h']);
  const { expiresAtMs } = JSON.parse((await run(['get', 'greeting', '--json'])).stdout) as {
    readonly expiresAtMs: number;
  };
  t.true(expiresAtMs > Date.now());
  t.like(await run(['delete', 'greeting']), { code: 0, stdout: '' });
  t.like(await run(['get', 'greeting']), { code: 3, stdout: '', stderr: 'farkv get: no such key\n' });
  t.like(await run(['delete', 'greeting']), { code: 3, stderr: 'farkv delete: no such key\n' });
});

test.serial('increment prints the sum; what is no number is said', async (t) => {
  t.like(await run(['increment', 'visits']), { code: 0, stdout: '1\n', stderr: '' });
  t.like(await run(['increment', 'visits', '41']), { stdout: '42\n' });
  t.like(await run(['increment', 'visits', '-50']), { stdout: '-8\n' });
  t.like(await run(['increment', 'visits', '9223372036854775807']), { stdout: '9223372036854775799\n' });
  const beyond = await run(['increment', 'visits', '9223372036854775807']);
  t.is(beyond.code, 1);
  t.regex(beyond.stderr, /no integer .* nothing was changed/);
  t.is((await run(['increment', 'visits', 'one'])).code, 2);
  t.is((await run(['increment', 'visits', '99999999999999999999'])).code, 2);
  await run(['delete', 'visits']);
});

test.serial('arguments are taken as they were typed: a dash, words behind --, true and help', async (t) => {
  for (const [args, value] of [
    [['put', 'k', '-'], '-'],
    [['put', 'k', '--', '-x'], '-x'],
    [['put', 'k', '--', '--verbose=yes'], '--verbose=yes'],
    [['put', 'k', '--', '--'], '--'],
    [['put', 'k', 'help'], 'help'],
    [['put', '--verbose=0', 'k', 'false'], 'false'],
  ] as const) {
    t.like(await run([...args]), { code: 0, stdout: '', stderr: '' }, args.join(' '));
    t.is((await run(['get', 'k', '--raw'])).stdout, value, args.join(' '));
  }
  t.is((await run(['put', 'k', '--verbose', 'true'], '')).code, 0);
  t.is((await run(['get', 'k', '--raw'])).stdout, 'true');
  t.is((await run(['put', 'k', '--file', '-'], 'input')).code, 0);
  t.is((await run(['get', '--', 'k'])).stdout, 'input\n');
  t.like(await run(['increment', 'n', '--', '-5']), { code: 0, stdout: '-5\n' });
  t.is((await run(['put', '--', '-b', 'of a key with a dash'])).code, 0);
  t.is((await run(['delete', 'n', 'k', '--', '-b'])).code, 0);
  for (const key of ['n', 'k', '-b']) t.is((await run(['get', '--', key])).code, 3, key);
});

test.serial('a large value goes through a pipe whole', async (t) => {
  const file = join(directory, 'large');
  const bytes = Buffer.alloc(10 << 20, 'abcdefghijklmnop');
  writeFileSync(file, bytes);
  t.is((await run(['put', 'large', '--file', file, '--timeout', '30s'])).code, 0);
  const copy = join(directory, 'copy');
  const child = spawn('sh', ['-c', `"${process.execPath}" "${CLI}" get large --raw --timeout 30s > "${copy}"`], {
    env: { ...process.env, ...env() },
  });
  await once(child, 'close');
  t.true(readFileSync(copy).equals(bytes));
  await run(['delete', 'large']);
});

test.serial('scan: lines, values, JSON, a count, a limit; what is not printable is escaped', async (t) => {
  for (let i = 0; i < 5; i++) await run(['put', `key ${i}`, `value\t${i}\n`, '-n', '9']);
  await run(['put', 'ff00', 'x', '--hex', '-n', '9']);
  const lines = (await run(['scan', '-n', '9'])).stdout.trimEnd().split('\n').sort();
  t.deepEqual(lines, ['\\xff\\x00', 'key 0', 'key 1', 'key 2', 'key 3', 'key 4']);
  const values = (await run(['scan', '--values', '-n', '9'])).stdout;
  t.true(values.includes('key 3\tvalue\\x093\\x0a\n'));
  t.like(await run(['scan', '--count', '-n', '9']), { stdout: '6\n' });
  t.like(await run(['scan', '--count', '--prefix', 'key ', '-n', '9']), { stdout: '5\n' });
  t.like(await run(['scan', '--prefix', 'ff', '--hex', '-n', '9']), { stdout: '\\xff\\x00\n' });
  t.like(await run(['scan', '--count', '--limit', '3', '-n', '9']), { stdout: '3\n' });
  t.is((await run(['scan', '--limit', '2', '-n', '9'])).stdout.trimEnd().split('\n').length, 2);
  const objects = (await run(['scan', '--json', '-n', '9'])).stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly key?: string });
  t.is(objects.filter(({ key }) => key?.startsWith('key ')).length, 5);
});

test.serial('scan ends quietly when nobody reads on', async (t) => {
  const child = spawn('sh', ['-c', `"${process.execPath}" "${CLI}" scan -n 9 | head -n 1; exit 0`], {
    env: { ...process.env, ...env() },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (text) => (errors += String(text)));
  await once(child, 'close');
  t.is(errors, '');
});
