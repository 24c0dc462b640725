/** backup, restore, values check, export and import as an operator runs them, against one server. */
import test from 'ava';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '../../client/index.js';
import { dataCommands } from '../support/data-commands.js';

const { directory, env, run } = dataCommands(test);
const LARGE = Buffer.alloc(1_500_000, 'abc\u0000');

async function client(t: { teardown: (f: () => unknown) => void }) {
  const kv = await connect({ servers: env().FARKV_CONNECT, token: env().FARKV_TOKEN, timeoutMs: 60_000 });
  t.teardown(() => kv.close());
  return kv;
}

/** All that is stored, as export writes it, in an order of its own. */
async function everything(): Promise<string[]> {
  return (await run(['export', '-'])).stdout.split('\n').sort();
}

test.serial('entries of every kind go through a backup and through lines of JSON byte for byte', async (t) => {
  const kv = await client(t);
  await kv.put('text', 'ä€😀', { flags: 4_294_967_295, ttlMs: 3_600_000 });
  await kv.put(Buffer.from([0xff, 0x00, 0xfe]), Buffer.from([0xc0, 0x80]));
  await kv.put('empty', '');
  await kv.put('mark', '\ufeff');
  await kv.put('large', LARGE);
  await kv.namespace(65_535).put('text', 'of another namespace');
  await kv.withCodec('msgpack').put('object', { name: 'Ada' });
  const before = await everything();
  t.is(before.length, 8);

  const backup = join(directory, 'backup');
  t.like(await run(['backup', backup]), { code: 0, stdout: `${backup}: 7 entries, 1.4 MiB\n`, stderr: '' });
  const checked = await run(['values', 'check', backup]);
  t.is(checked.code, 0);
  t.regex(checked.stdout, /: whole; 7 entries, 1.4 MiB of cluster [0-9a-f]{32}, \S+ to \S+\n$/);
  const lines = join(directory, 'all.jsonl');
  t.like(await run(['export', lines]), { code: 0, stderr: '' });
  t.is(statSync(lines).mode & 0o777, 0o600);
  t.deepEqual(
    readdirSync(directory).filter((name) => name.includes('.part')),
    [],
  );
  t.deepEqual(readFileSync(lines, 'utf8').split('\n').sort(), before);

  const ways = [
    { args: ['restore', backup], stdout: '7 entries written\n' },
    { args: ['import', lines], stdout: '7 entries written\n' },
    { args: ['import', '-'], stdout: '7 entries written\n', input: readFileSync(lines, 'utf8') },
  ];
  for (const { args, stdout, input } of ways) {
    for await (const { key } of kv.scan()) await kv.delete(key);
    await kv.namespace(65_535).delete('text');
    t.like(await run(args, input), { code: 0, stdout, stderr: '' });
    t.deepEqual((await everything()).map(withoutExpiry), before.map(withoutExpiry));
    t.true((await kv.get('large'))?.equals(LARGE));
    t.deepEqual(await kv.withCodec('msgpack').get('object'), { name: 'Ada' });
    for await (const { key, expiresAtMs } of kv.scan())
      if (String(key) === 'text') t.true(Math.abs((expiresAtMs ?? 0) - Date.now() - 3_600_000) < 600_000);
  }
});

/** It is counted anew by the server's clock. */
const withoutExpiry = (line: string): string => line.replace(/"expiresAtMs":\d+/, '"expiresAtMs":0');

test.serial('--keep-newer leaves what is there; without it the backup replaces it', async (t) => {
  const kv = await client(t);
  const backup = join(directory, 'backup');
  await kv.put('empty', 'no more');
  await kv.delete('mark');
  t.like(await run(['restore', backup, '--keep-newer']), {
    code: 0,
    stdout: '1 entries written, 6 were there already\n',
  });
  t.is(String(await kv.get('empty')), 'no more');
  t.is(String(await kv.get('mark')), '\ufeff');
  t.is((await run(['restore', backup])).code, 0);
  t.is(String(await kv.get('empty')), '');
});

test.serial('a damaged backup is refused before anything is written, and the damage is named', async (t) => {
  const kv = await client(t);
  const backup = join(directory, 'backup');
  const name = readdirSync(backup).find((one) => statSync(join(backup, one)).size > 1_000_000) ?? '';
  const bytes = readFileSync(join(backup, name));
  const damaged = Buffer.from(bytes);
  damaged[1_000_000] = (damaged[1_000_000] ?? 0) ^ 1;
  writeFileSync(join(backup, name), damaged);
  await kv.delete('mark');
  const checked = await run(['values', 'check', backup]);
  t.is(checked.code, 1);
  t.regex(checked.stdout, new RegExp(`^${name}: offset \\d+: chunk \\d+ \\(\\d+ bytes\\): its CRC32C is`));
  t.regex(checked.stderr, /1 place is damaged in/);
  const restored = await run(['restore', backup]);
  t.is(restored.code, 1);
  t.true(restored.stderr.includes(checked.stdout));
  t.regex(restored.stderr, /is damaged \(see above\); nothing was written/);
  t.is(await kv.get('mark'), undefined);
  writeFileSync(join(backup, name), bytes);
});

test.serial('what cannot be done is refused with the reason', async (t) => {
  const backup = join(directory, 'backup');
  const lines = join(directory, 'all.jsonl');
  const refused: readonly [readonly string[], number, RegExp][] = [
    [['backup', backup], 2, /is not empty \(0-0000.chunks, ...\): a backup goes to a new directory/],
    [['backup', join(directory, 'new'), '-n', '3'], 2, /a backup has all namespaces; farkv export writes one/],
    [['restore', join(directory, 'nowhere')], 2, /nowhere cannot be read: ENOENT/],
    [['values', 'check', directory], 2, /is not a backup: it has no manifest.json/],
    [['values', 'chekc', backup], 2, /unknown action chekc; usage: farkv values check/],
    [['export', lines], 2, /all.jsonl exists already: name a new file/],
    [['export', join(directory, 'new.jsonl'), '-n', '70000'], 2, /--namespace: must be from 0 to 65535, not 70000/],
    [['import', join(directory, 'nowhere.jsonl')], 2, /cannot be read: ENOENT/],
    [['import', 'redis://'], 2, /the address of the Redis server is not redis:/],
    [['import', 'redis://127.0.0.1:1'], 69, /the Redis server 127.0.0.1:1: connect ECONNREFUSED/],
    [['backup', join(directory, 'new'), '--token', 'wrong'], 77, /token/],
  ];
  for (const [args, code, message] of refused) {
    const { stderr, ...end } = await run(args);
    t.is(end.code, code, `${args.join(' ')}: ${stderr}`);
    t.regex(stderr, message);
  }
});

test.serial('bad lines stop an import, or are named and left out; both end with 1', async (t) => {
  const input = '{"key":"one","value":"1"}\n{"key":"two"}\n{"key":"","value":"x"}\n{"key":"four","value":"4"}\n';
  const stopped = await run(['import', '-', '-n', '5'], input);
  t.like(stopped, { code: 1, stdout: '1 entries written, 1 bad\n' });
  t.regex(stopped.stderr, /^standard input: line 2: either value or value64 is needed\n.*stopped after line 2/);
  const skipped = await run(['import', '-', '-n', '5', '--on-error', 'skip'], input);
  t.like(skipped, { code: 1, stdout: '2 entries written, 2 bad\n' });
  t.regex(skipped.stderr, /line 2: .*\n(?:.*\n)*standard input: line 3: /);
  t.like(await run(['scan', '-n', '5', '--count']), { stdout: '2\n' });
});

test.serial('an export of one namespace has no other; one that nobody reads on ends', async (t) => {
  t.deepEqual(
    (await run(['export', '-', '-n', '65535'])).stdout,
    '{"key":"text","value":"of another namespace","namespace":65535}\n',
  );
});
