/** The executable that scripts/make-binary.mjs makes: the commands run, and their addon leaves nothing behind. */
import test from 'ava';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { arch, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { inRepository } from '../../bench/repository.js';
import { CLI, type ReadyLine } from '../support/cluster.js';

const folder = mkdtempSync(join(tmpdir(), 'farkv-one-file-'));
const file = join(folder, `farkv-linux-${arch()}`);
const temporary = join(folder, 'tmp');

test.before((t) => {
  mkdirSync(temporary);
  const made = spawnSync(process.execPath, [inRepository('scripts/make-binary.mjs'), folder], { encoding: 'utf8' });
  t.is(made.status, 0, made.stderr);
});

test.after.always(() => rmSync(folder, { recursive: true, force: true }));

function farkv(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: 'utf8', env: { TMPDIR: temporary, ...env } });
  return { code: status, stdout, stderr };
}

test('help and version are those of the package', (t) => {
  for (const args of [['--version'], ['--help'], ['bench', '--help']]) {
    const { status, stdout } = spawnSync(process.execPath, [CLI, ...args], { encoding: 'utf8', env: {} });
    t.is(status, 0);
    t.deepEqual(farkv(args), { code: 0, stdout, stderr: '' });
  }
});

test('the licences of all that is in it lie beside it', (t) => {
  const text = readFileSync(`${file}.LICENSES`, 'utf8');
  for (const name of ['farkv', 'yargs 18', 'uplot 1', 'msgpackr 2', 'ioredis 6', 'Node.js 24.'])
    t.true(text.includes(`\n${name}`), name);
});

test('a server serves commands, and leaves nothing in the folder where its addon was', async (t) => {
  const listen = ['--listen', '127.0.0.1:0', '--fabric-listen', '127.0.0.1:0', '--http-listen', '127.0.0.1:0'];
  const directory = ['--memory', '64mb', '--data-dir', join(folder, 'data')];
  const child = spawn(file, ['server', '--json', '--stop-with-stdin', ...listen, ...directory], {
    env: { TMPDIR: temporary },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = once(child, 'exit');
  t.teardown(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([once(lines, 'line'), ended.then(() => ['{}'])])) as [string];
  const { control = [], http = [] } = JSON.parse(line) as Partial<ReadyLine>;
  const connect = ['--connect', control[0] ?? ''];
  for (const transport of ['shm', 'tcp']) {
    t.like(farkv(['put', ...connect, '--transport', transport, 'key', transport]), { code: 0, stderr: '' });
    t.like(farkv(['get', ...connect, '--transport', transport, 'key']), { code: 0, stdout: `${transport}\n` });
  }
  // Threads that share the addon, and files of the package.
  const bench = ['bench', 'load', 'farkv', ...connect, '-P', 'workloada', '-p', 'recordcount=100', '--no-harness'];
  t.like(farkv([...bench, '--threads', '2']), { code: 0, stderr: '' });
  for (const path of ['', 'page.js', 'uplot.js', 'metrics'])
    t.true((await fetch(`http://${http[0]}/${path}`)).ok, path);
  t.deepEqual(readdirSync(temporary), []);
  child.kill('SIGTERM');
  t.deepEqual(await ended, [0, null]);
});

test('NODE_OPTIONS runs nothing in it', (t) => {
  const foreign = join(folder, 'foreign.cjs');
  writeFileSync(foreign, "process.stdout.write('foreign');");
  const { code, stdout, stderr } = farkv(['--version'], { NODE_OPTIONS: `--require ${foreign}` });
  t.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  t.regex(stdout, /^\d+\.\d+\.\d+\n$/);
});

test('what cannot be in it, or be unpacked, is named with what to do', (t) => {
  const lmdb = farkv(['bench', 'load', 'lmdb', '-P', 'workloada', '--no-harness']);
  t.is(lmdb.code, 2);
  t.regex(lmdb.stderr, /the package lmdb, which the one-file executable cannot contain; run it with farkv as npm/);
  const build = farkv(['build']);
  t.is(build.code, 2);
  t.regex(build.stderr, /farkv is one file here: make this file again in a clone/);
  const nowhere = join(folder, 'nowhere');
  const { code, stderr } = farkv(['doctor'], { TMPDIR: nowhere });
  t.is(code, 1);
  t.true(
    stderr.startsWith(`farkv doctor: farkv's native addon could not be unpacked and loaded (${nowhere}: ENOENT`),
    stderr,
  );
  t.regex(stderr, /name another folder by TMPDIR/);
});
