/** Commands whose output cannot be written: one line that says so, and EX_IOERR; a reader that goes away is none. */
import test from 'ava';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { COMMANDS } from '../../server/cli/command-list.js';
import { oneServer } from '../support/adapters.js';
import { CLI } from '../support/cluster.js';

const server = oneServer(test);
const directory = mkdtempSync(join(tmpdir(), 'farkv-full-output-'));

/** A script of bash, in which "$0" "$1" is farkv. */
async function script(
  text: string,
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const words = ['-o', 'pipefail', '-c', text, process.execPath, CLI];
  return await promisify(execFile)('bash', words, { env: { ...process.env, FARKV_CONNECT: server().address } }).then(
    (done) => ({ code: 0, ...done }),
    (error: unknown) => error as { code: number; stdout: string; stderr: string },
  );
}

const ONE_LINE = /^farkv[a-z -]*: standard output cannot be written: ENOSPC: no space left on device, write\n$/;

test.before(async () => {
  const kv = server().client;
  await kv.putMany(Array.from({ length: 5000 }, (_, i) => ({ key: `key ${i}`, value: `value ${i} `.repeat(50) })));
  await kv.put('number', '1');
});
test.after.always(() => rmSync(directory, { recursive: true, force: true }));

test.serial('every command says in one line that standard output is full, and ends with 74', async (t) => {
  const commands = [
    'get number',
    'get number --json',
    'increment number',
    'scan',
    'scan --json --values',
    'scan --count',
    'export -',
    `export ${join(directory, 'whole.jsonl')}`,
    `backup ${join(directory, 'whole')}`,
    'status',
    'status --json',
    'top',
    'member list',
    'clients',
    'replication show',
    'completion bash',
    'import - < /dev/null',
    '--version',
    '--help',
    ...Object.keys(COMMANDS).map((name) => `${name} --help`),
  ];
  for (const command of commands) {
    const { code, stderr } = await script(`"$0" "$1" ${command} > /dev/full`);
    t.is(code, 74, `${command}: ${stderr}`);
    t.regex(stderr, ONE_LINE, command);
  }
});

test.serial('a reader that goes away ends a command quietly', async (t) => {
  for (const command of ['scan', 'scan --json --values', 'export -', 'scan --help'])
    t.deepEqual(
      { command, ...(await script(`"$0" "$1" ${command} | head -1 | wc -l`)) },
      { command, code: 0, stdout: '1\n', stderr: '' },
    );
});

test.serial('a file that cannot be written is named, and the command ends with 74', async (t) => {
  // A file may have a block of 1,024 bytes, and no more.
  const limited = (command: string) => script(`trap '' XFSZ; ulimit -f 1; "$0" "$1" ${command}`);
  const lines = join(directory, 'cut.jsonl');
  const exported = await limited(`export ${lines}`);
  t.is(exported.code, 74, exported.stderr);
  t.regex(exported.stderr, /^farkv export: \S+\.part-\S+ cannot be written: EFBIG: file too large, write\n$/);
  t.true(exported.stderr.includes(lines));
  const backup = join(directory, 'cut');
  const { code, stderr } = await limited(`backup ${backup}`);
  t.is(code, 74, stderr);
  t.regex(stderr, /^farkv backup: \S+\.chunks cannot be written: EFBIG: file too large, write\n$/);
  t.true(stderr.includes(backup));
  t.false(readdirSync(backup).includes('manifest.json'));
});
