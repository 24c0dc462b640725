/** More of the data commands, which data-commands.test.ts has in short: odd keys and values, wrong words, what is told. */
import test from 'ava';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { farkv } from '../support/cluster.js';
import { dataCommands } from '../support/data-commands.js';

const { directory, env, run } = dataCommands(test);

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

test.serial('--verbose says which transport and why; --transport and --strict are obeyed', async (t) => {
  t.regex((await run(['get', 'none', '-v'])).stderr, /^s1 thread 0: shm \(same host\)$/m);
  t.regex((await run(['get', 'none', '-v', '--transport', 'tcp'])).stderr, /^s1 thread 0: tcp /m);
  const strict = await run(['get', 'none', '--transport', 'verbs', '--strict']);
  t.is(strict.code, 1);
  t.regex(strict.stderr, /strict allows no other/);
});

test.serial('a wrong token is 77, nobody there is 69', async (t) => {
  t.is((await farkv(['get', 'x'], { env: { ...env(), FARKV_TOKEN: 'wrong' } })).code, 77);
  const file = join(directory, 'token');
  writeFileSync(file, 'sesame\nmore\n', { mode: 0o644 });
  const readable = await farkv(['get', 'x', '--token-file', file], { env: { FARKV_CONNECT: env().FARKV_CONNECT } });
  t.is(readable.code, 2);
  t.regex(readable.stderr, /can be read or changed by others \(mode 644\): chmod 600/);
  chmodSync(file, 0o600);
  t.is((await farkv(['get', 'x', '--token-file', file], { env: { FARKV_CONNECT: env().FARKV_CONNECT } })).code, 3);
  const none = await farkv(['get', 'x', '-c', '127.0.0.1:1', '--timeout', '300ms'], { env: env() });
  t.is(none.code, 69);
  t.regex(none.stderr, /127\.0\.0\.1:1/);
  t.false(none.stderr.includes('sesame'));
});
