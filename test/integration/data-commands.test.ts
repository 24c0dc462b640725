import test from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLI, Cluster, farkv } from '../support/cluster.js';

const directory = mkdtempSync(join(tmpdir(), 'farkv-commands-'));
const teardowns: (() => unknown)[] = [];
let env: Readonly<Record<string, string>>;
test.before(async () => {
  const cluster = await Cluster.start(
    { teardown: (f) => void teardowns.push(f) },
    { servers: 1, args: ['--token', 'sesame'] },
  );
  env = { FARKV_CONNECT: cluster.server(0).address, FARKV_TOKEN: 'sesame' };
});
test.after.always(async () => {
  for (const f of teardowns) await f();
  rmSync(directory, { recursive: true, force: true });
});

const run = (args: readonly string[], input?: string) =>
  farkv(args, { env, ...(input === undefined ? {} : { input }) });

test.serial('put, get, delete; a missing key is exit code 3', async (t) => {
  t.like(await run(['put', 'greeting', 'hello world']), { code: 0, stdout: '', stderr: '' });
  t.like(await run(['get', 'greeting']), { code: 0, stdout: 'hello world\n', stderr: '' });
  t.like(await run(['get', 'greeting', '--raw']), { stdout: 'hello world' });
  t.like(await run(['delete', 'greeting']), { code: 0, stdout: '' });
  t.like(await run(['get', 'greeting']), { code: 3, stdout: '', stderr: 'farkv get: no such key\n' });
  t.like(await run(['delete', 'greeting']), { code: 3, stderr: 'farkv delete: no such key\n' });
});

test.serial('a value from standard input, from a file, of bytes that are no text', async (t) => {
  await run(['put', 'in'], 'from standard input\n');
  t.like(await run(['get', 'in', '--raw']), { stdout: 'from standard input\n' });
  const file = join(directory, 'picture');
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  writeFileSync(file, bytes);
  t.is((await run(['put', 'picture', '--file', file])).code, 0);
  const json = JSON.parse((await run(['get', 'picture', '--json'])).stdout) as {
    readonly key: string;
    readonly valueBase64: string;
    readonly version: string;
    readonly flags: number;
  };
  t.deepEqual(Buffer.from(json.valueBase64, 'base64'), bytes);
  t.regex(json.version, /^[1-9]\d*$/);
  t.is(json.flags, 0);
  t.like(await run(['put', 'x', 'value', '--file', file]), { code: 2 });
  t.like(await run(['put', 'x', '--file', join(directory, 'none')]), { code: 2 });
});

test.serial('a large value goes through a pipe whole', async (t) => {
  const file = join(directory, 'large');
  const bytes = Buffer.alloc(10 << 20, 'abcdefghijklmnop');
  writeFileSync(file, bytes);
  t.is((await run(['put', 'large', '--file', file, '--timeout', '30s'])).code, 0);
  const copy = join(directory, 'copy');
  const child = spawn('sh', ['-c', `"${process.execPath}" "${CLI}" get large --raw --timeout 30s > "${copy}"`], {
    env: { ...process.env, ...env },
  });
  await once(child, 'close');
  t.true(readFileSync(copy).equals(bytes));
  await run(['delete', 'large']);
});

test.serial('hexadecimal keys, flags, a time to live, namespaces', async (t) => {
  t.is((await run(['put', '00ff10', 'binary key', '--hex', '--flags', '7', '-n', '5'])).code, 0);
  t.like(await run(['get', '00ff10', '--hex', '-n', '5']), { stdout: 'binary key\n' });
  t.like(await run(['get', '00ff10', '--hex']), { code: 3 });
  const { stdout } = await run(['scan', '--json', '--values', '-n', '5']);
  t.like(JSON.parse(stdout), { keyHex: '00ff10', value: 'binary key', flags: 7 });
  t.is((await run(['put', 'brief', 'x', '--ttl', '1ms'])).code, 0);
  while ((await run(['get', 'brief'])).code === 0);
  for (const args of [
    ['get', 'xyz', '--hex'],
    ['get', ''],
    ['get', 'k'.repeat(1025)],
    ['get', 'k', '-n', '70000'],
    ['put', 'k', 'v', '--ttl', 'soon'],
    ['put', 'k', 'v', '--flags', '-1'],
    ['get', 'k', '--rwa'],
  ]) {
    t.is((await run(args)).code, 2, args.join(' '));
  }
});

test.serial('scan: lines, values, JSON, a count, a limit; what is not printable is escaped', async (t) => {
  for (let i = 0; i < 5; i++) await run(['put', `key ${i}`, `value\t${i}\n`, '-n', '9']);
  await run(['put', 'ff00', 'x', '--hex', '-n', '9']);
  const lines = (await run(['scan', '-n', '9'])).stdout.trimEnd().split('\n').sort();
  t.deepEqual(lines, ['\\xff\\x00', 'key 0', 'key 1', 'key 2', 'key 3', 'key 4']);
  const values = (await run(['scan', '--values', '-n', '9'])).stdout;
  t.true(values.includes('key 3\tvalue\\x093\\x0a\n'));
  t.like(await run(['scan', '--count', '-n', '9']), { stdout: '6\n' });
  t.is((await run(['scan', '--limit', '2', '-n', '9'])).stdout.trimEnd().split('\n').length, 2);
  const objects = (await run(['scan', '--json', '-n', '9'])).stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly key?: string });
  t.is(objects.filter(({ key }) => key?.startsWith('key ')).length, 5);
});

test.serial('scan ends quietly when nobody reads on', async (t) => {
  const child = spawn('sh', ['-c', `"${process.execPath}" "${CLI}" scan -n 9 | head -n 1; exit 0`], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (text) => (errors += String(text)));
  await once(child, 'close');
  t.is(errors, '');
});

test.serial('--verbose says which transport and why; --transport and --strict are obeyed', async (t) => {
  t.regex((await run(['get', 'none', '-v'])).stderr, /^s1 thread 0: shm \(same host\)$/m);
  t.regex((await run(['get', 'none', '-v', '--transport', 'tcp'])).stderr, /^s1 thread 0: tcp /m);
  const strict = await run(['get', 'none', '--transport', 'verbs', '--strict']);
  t.is(strict.code, 1);
  t.regex(strict.stderr, /strict allows no other/);
});

test.serial('a wrong token is 77, nobody there is 69', async (t) => {
  t.is((await farkv(['get', 'x'], { env: { ...env, FARKV_TOKEN: 'wrong' } })).code, 77);
  const file = join(directory, 'token');
  writeFileSync(file, 'sesame\nmore\n', { mode: 0o644 });
  const readable = await farkv(['get', 'x', '--token-file', file], { env: { FARKV_CONNECT: env.FARKV_CONNECT ?? '' } });
  t.is(readable.code, 2);
  t.regex(readable.stderr, /can be read or changed by others \(mode 644\): chmod 600/);
  chmodSync(file, 0o600);
  t.is((await farkv(['get', 'x', '--token-file', file], { env: { FARKV_CONNECT: env.FARKV_CONNECT ?? '' } })).code, 3);
  const none = await farkv(['get', 'x', '-c', '127.0.0.1:1', '--timeout', '300ms'], { env });
  t.is(none.code, 69);
  t.regex(none.stderr, /127\.0\.0\.1:1/);
  t.false(none.stderr.includes('sesame'));
});
