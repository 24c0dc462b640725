/**
 * npm run deep (scripts/deep.mjs), in a project of its own that has stand-in parts: what is kept of a run that passes,
 * fails, lacks a tool or is interrupted; the report; the parts of a change. Not for: what the real parts run.
 */
import test, { type ExecutionContext } from 'ava';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inRepository } from '../bench/repository.js';

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

interface Result {
  readonly commit: string;
  readonly part: string;
  readonly step: string;
  readonly command: string;
  readonly seed?: number;
  readonly seconds: number;
  readonly began: string;
  readonly verdict: string;
  readonly why?: string;
  readonly replay?: readonly string[];
  readonly log?: string;
}

/** A stand-in for scripts/deep/parts.mjs; `node` is a step's command that runs a program of one line. */
const parts = (body: string): string => `
const node = (text) => [process.execPath, '-e', text];
export const PREPARE = node('');
export const PARTS = {${body}};`;

const TWO = parts(`
  good: { about: 'passes', steps: () => [{ name: 'one', command: node('console.log("did one")') }] },
  bad: {
    about: 'fails',
    steps: ({ seed }) => [seed()].map((from) => ({
      name: 'random', seed: from, command: node('console.error("replay: again --seed " + ' + from + '); process.exit(1)'),
    })),
  },`);

function write(directory: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
}

function git(t: ExecutionContext, directory: string, ...args: readonly string[]): string {
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'commit.gpgsign=false'];
  const { status, stdout, stderr } = spawnSync('git', [...who, ...args], { cwd: directory, encoding: 'utf8' });
  t.is(status, 0, stderr);
  return stdout.trim();
}

/** A repository with one commit, and beside it the folder of the results. */
function project(t: ExecutionContext, files: Readonly<Record<string, string>>): string {
  const top = mkdtempSync(join(tmpdir(), 'farkv-deep-'));
  t.teardown(() => rmSync(top, { recursive: true }));
  const directory = join(top, 'project');
  for (const path of ['scripts/deep.mjs', 'scripts/deep', 'scripts/rerun.mjs'])
    cpSync(inRepository(path), join(directory, path), { recursive: true });
  write(directory, { 'package.json': '{ "type": "module" }', ...files });
  git(t, directory, 'init', '--quiet');
  commit(t, directory);
  return directory;
}

function commit(t: ExecutionContext, directory: string): void {
  git(t, directory, 'add', '--all');
  git(t, directory, 'commit', '--quiet', '--allow-empty', '--message', 'a commit');
}

function start(directory: string, args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const env = { ...process.env, XDG_CACHE_HOME: join(directory, '../cache'), ...more };
  const child = spawn(process.execPath, ['scripts/deep.mjs', ...args], { cwd: directory, env });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += text.toString()));
  const ended = once(child, 'close').then(([code]): Ended => ({ code: code as number | null, output }));
  return { child, ended };
}

const run = (directory: string, args: readonly string[] = []): Promise<Ended> => start(directory, args).ended;

const resultsFile = (directory: string): string => join(directory, '../cache/farkv/deep/results.jsonl');
const results = (directory: string): Result[] =>
  readFileSync(resultsFile(directory), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Result);

/** The cells of the report's rows. */
const rows = (output: string): string[][] =>
  Array.from(output.matchAll(/^\| (.*) \|$/gm), ([, row = '']) => row.split(' | ').map((cell) => cell.trim())).slice(2);

test('a step that passed is kept with its log, and skipped at this commit until --again', async (t) => {
  const directory = project(t, { 'scripts/deep/parts.mjs': TWO });
  const first = await run(directory, ['good']);
  t.is(first.code, 0, first.output);
  const [result] = results(directory);
  t.like(result, { commit: git(t, directory, 'rev-parse', 'HEAD'), part: 'good', step: 'one', verdict: 'passed' });
  t.is(readFileSync(result!.log!, 'utf8'), 'did one\n');
  t.regex((await run(directory, ['good'])).output, /^good, one: skipped; /m);
  t.is(results(directory).length, 1);
  await run(directory, ['good', '--again']);
  t.is(results(directory).length, 2);
  write(directory, { 'new.txt': 'not committed' });
  await run(directory, ['good']);
  t.regex(results(directory)[2]!.commit, /^[0-9a-f]{40}\+[0-9a-f]{8}$/);
  commit(t, directory);
  await run(directory, ['good']);
  t.is(results(directory).length, 4);
});

test('a step that fails is said with its log and the command that replays it; others run', async (t) => {
  const directory = project(t, { 'scripts/deep/parts.mjs': TWO });
  const { code, output } = await run(directory);
  t.is(code, 1);
  const [good, bad] = results(directory);
  t.is(good!.verdict, 'passed');
  t.like(bad, { part: 'bad', verdict: 'failed', replay: [`again --seed ${bad!.seed}`] });
  t.true(output.includes(`FAILED: bad, random; log ${bad!.log}\n  replay: again --seed ${bad!.seed}\n`), output);
});

test('a fresh seed that failed counts until the commit changes, whatever other seeds do', async (t) => {
  const body = `r: { about: '', steps: () => [{ name: 'one', seed: 7, command: node('process.exit(Number(process.env.CODE))') }] },`;
  const directory = project(t, { 'scripts/deep/parts.mjs': parts(body) });
  for (const CODE of ['1', '0']) await start(directory, [], { CODE }).ended;
  t.deepEqual(
    results(directory).map(({ verdict }) => verdict),
    ['failed', 'passed'],
  );
  t.is(rows((await run(directory, ['--report'])).output)[0]![2], 'failed');
});

test('a part that lacks a tool is left out, with what to install, and does not fail', async (t) => {
  const body = `
    a: { about: '', steps: () => [{ name: 'tool', needs: [tool('no-such-tool', 'p q'), tool('no-such', 'q')], command: node('') }] },
    b: { about: '', steps: () => [{ name: 'says so', leftOut: /^left out: (.*)$/m, command: node('console.log("left out: no registry")') }] },`;
  const directory = project(t, { 'scripts/deep/parts.mjs': `import { tool } from './needs.mjs';\n${parts(body)}` });
  const { code, output } = await run(directory);
  t.is(code, 0, output);
  t.regex(output, /^a, tool: left out .*: apt-get install p q$/m);
  t.regex(output, /^b, says so: left out .*: no registry$/m);
  t.deepEqual(
    results(directory).map(({ verdict, why }) => [verdict, why]),
    [
      ['left out', 'apt-get install p q'],
      ['left out', 'no registry'],
    ],
  );
});

test('an open seed that fails is known and no failure; one that passes is said to', async (t) => {
  const body = `
    a: { about: '', steps: () => [{ name: 'open', seed: 5, known: 'a lost entry', command: node('process.exit(1)') }] },
    b: { about: '', steps: () => [{ name: 'mended', seed: 6, known: 'an old value', command: node('') }] },`;
  const directory = project(t, { 'scripts/deep/parts.mjs': parts(body) });
  const { code, output } = await run(directory);
  t.is(code, 0, output);
  t.regex(output, /^a, open: known .*: a lost entry$/m);
  t.regex(output, /^b, mended: no longer fails; /m);
  const { output: table } = await run(directory, ['--report']);
  t.deepEqual(
    rows(table).map((row) => [row[2], row[7]!.replace(/^[0-9a-f]{7}, /, '')]),
    [
      ['known', 'never'],
      ['passed', 'this commit'],
    ],
  );
});

/** Two processes, one with a group of its own, connect to the test and never end; PORT='' makes the step pass. */
const HANGS = parts(`
  slow: { about: '', steps: () => [
    { name: 'one', command: node('') },
    { name: 'two', command: node(\`
      if (process.env.PORT) {
        require('net').connect(process.env.PORT);
        if (!process.env.INNER)
          require('child_process').spawn(process.execPath, process.execArgv,
            { detached: true, stdio: 'ignore', env: { ...process.env, INNER: 'yes' } });
      }\`) },
    { name: 'three', command: node('') },
  ] },`);

test('an interruption ends all that the step started; the next run goes on after what passed', async (t) => {
  const directory = project(t, { 'scripts/deep/parts.mjs': HANGS });
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const address = server.address();
  const PORT = String(typeof address === 'object' ? address?.port : '');
  const connected: Socket[] = [];
  const both = new Promise<void>((resolve) =>
    server.on('connection', (socket) => {
      socket.on('error', () => undefined).resume();
      if (connected.push(socket) === 2) resolve();
    }),
  );
  const { child, ended } = start(directory, [], { PORT });
  t.teardown(() => child.kill());
  await Promise.race([both, ended]);
  t.is(connected.length, 2);
  const closed = connected.map((socket) => once(socket, 'close'));
  child.kill('SIGINT');
  const { code, output } = await ended;
  t.is(code, 130, output);
  await Promise.all(closed);
  const ends = (): string[][] => results(directory).map(({ step, verdict }) => [step, verdict]);
  const before = [
    ['one', 'passed'],
    ['two', 'interrupted'],
  ];
  t.deepEqual(ends(), before);
  t.is(rows((await run(directory, ['--report'])).output)[1]![2], 'interrupted');
  const next = await run(directory);
  t.is(next.code, 0, next.output);
  t.regex(next.output, /^slow, one: skipped/m);
  t.deepEqual(ends(), [...before, ['two', 'passed'], ['three', 'passed']]);
});

test('random steps that ran for fewer minutes than by default are not the last green', async (t) => {
  const timed = parts(`
  seeds: {
    about: 'passes',
    steps: ({ minutes, seed }) => [{ name: 'random', seed: seed(), minutes, command: node('') }],
  },`);
  const directory = project(t, { 'scripts/deep/parts.mjs': timed });
  const lastGreen = async (): Promise<string | undefined> => rows((await run(directory, ['--report'])).output)[0]?.[7];
  await run(directory, ['--minutes', '0.1']);
  t.is(await lastGreen(), 'never');
  await run(directory, ['--minutes', '7']);
  t.regex((await lastGreen()) ?? '', /this commit$/);
});

test('the report says what is here, what was last green, and survives half a line', async (t) => {
  const directory = project(t, { 'scripts/deep/parts.mjs': TWO });
  const empty = await run(directory, ['--report']);
  t.is(empty.code, 0);
  t.deepEqual(
    rows(empty.output).map((row) => row.slice(0, 3)),
    [
      ['good', 'one', 'not run'],
      ['bad', 'random', 'not run'],
    ],
  );
  await run(directory);
  const green = git(t, directory, 'rev-parse', 'HEAD').slice(0, 7);
  commit(t, directory);
  commit(t, directory);
  appendFileSync(resultsFile(directory), '{ "commit": "00');
  await run(directory, ['bad']);
  const { output } = await run(directory, ['--report']);
  const [good, bad] = rows(output);
  t.deepEqual(good!.slice(2), ['not run', '', '', '', '', `${green}, 2 commits ago`]);
  t.is(bad![2], 'failed');
  t.is(bad![7], 'never');
  t.regex(output, new RegExp(`^bad, random: replay: again --seed ${bad![5]}$`, 'm'));
  t.true(existsSync(join(directory, '../cache/farkv/deep', bad![6]!)));
});

test('--changed takes the parts of the folders that changed, and hands them the files', async (t) => {
  const body = ['a', 'b', 'c']
    .map((n) => `${n}: { about: '', steps: ({ files }) => [{ name: 'one', command: node('').concat(files ?? []) }] },`)
    .join('\n');
  const table = `# T\n### Which parts a change asks for\n| folder | parts |\n|---|---|\n| \`core\`, \`net/\` | \`a\` |
| \`core/deep\` | \`b\` |\n| \`docs\`, \`.\` | none |\n| \`scripts\` | \`c\` |\n\n## Next\n| \`core\` | \`c\` |\n`;
  const files = { 'scripts/deep/parts.mjs': parts(body), 'docs/testing.md': table };
  const directory = project(t, files);
  const asked = async (...base: string[]): Promise<string> => {
    const { code, output } = await run(directory, ['--changed', ...base, '--again']);
    t.is(code, 0, output);
    return /ask for (.*)$/m.exec(output)?.[1] ?? output;
  };
  write(directory, { 'net/x.ts': '' });
  commit(t, directory);
  t.is(await asked(), 'a');
  t.regex(results(directory)[0]!.command, / net\/x\.ts$/);
  write(directory, { 'core/deep/y.ts': '', 'README.md': '' });
  t.is(await asked('HEAD'), 'b');
  t.is(await asked(), 'a, b');
  write(directory, { 'new/z.ts': '' });
  t.is(await asked('HEAD'), 'a, b, c');
  commit(t, directory);
  git(t, directory, 'update-ref', 'refs/remotes/origin/main', 'HEAD');
  t.is(await asked(), 'no part');
});

test('wrong usage is one line with a hint', async (t) => {
  const directory = project(t, { 'scripts/deep/parts.mjs': TWO });
  for (const args of [['nothing'], ['--minutes', '0'], ['--fast'], ['--changed', 'a', 'b'], ['--changed', 'nobody']]) {
    const { code, output } = await run(directory, args);
    t.is(code, 2, output);
    t.regex(output, /^deep: .*; --help says more\n$/);
  }
  t.regex((await run(directory, ['--help'])).output, /^ {2}good +passes$/m);
});

test('the replay commands of a log are those of what failed', async (t) => {
  const { replaysIn } = (await import(pathToFileURL(inRepository('scripts/deep/replays.mjs')).href)) as {
    replaysIn: (text: string) => string[];
  };
  const log = `replay: npm run sim -- --seed 3 --steps 5
replay: FARKV_SEED=4 FARKV_TEST=reads
FAILED: ../build/native-address-undefined/test/table/table_model
FAILED: ../build/native/test/base/hash
  ✔ a › passes
    ℹ seed 5; replay: FARKV_SEED=5 npx ava dist/a.test.js -m 'passes'
  ✘ [fail]: a › does not
    ℹ seed 6; replay: FARKV_SEED=6 npx ava dist/a.test.js -m 'does not'
node dist/test/chaos/main.js --seconds 60 --seed 7 --servers 3
node dist/test/chaos/main.js --seconds 60 --seed 8 --servers 5
  seed 8: 4 kills, 100 operations, 2 failures
  seed 7: 4 kills, 100 operations, 0 failures`;
  t.deepEqual(replaysIn(log), [
    'npm run sim -- --seed 3 --steps 5',
    'FARKV_SEED=4 FARKV_TEST=reads make -s -C native test ONLY=table_model SAN=address,undefined',
    'make -s -C native test ONLY=hash',
    "FARKV_SEED=6 npx ava dist/a.test.js -m 'does not'",
    'node dist/test/chaos/main.js --seconds 60 --seed 8 --servers 5',
  ]);
});

test('docs/testing.md says of each folder which parts a change asks for', async (t) => {
  const load = async (path: string): Promise<unknown> => await import(pathToFileURL(inRepository(path)).href);
  const { folderTable } = (await load('scripts/deep/changed.mjs')) as {
    folderTable: (markdown: string) => { folder: string; parts: string[] }[];
  };
  const { PARTS } = (await load('scripts/deep/parts.mjs')) as { PARTS: Record<string, unknown> };
  const table = folderTable(readFileSync(inRepository('docs/testing.md'), 'utf8'));
  const paths = git(t, inRepository('.'), 'ls-files').split('\n');
  const folders = new Set(paths.map((path) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : '.')));
  const named = table.map(({ folder }) => folder);
  t.deepEqual(
    [...folders].filter((folder) => !named.includes(folder)),
    [],
  );
  t.deepEqual(
    named.filter((folder) => !existsSync(inRepository(folder))),
    [],
  );
  t.deepEqual([...new Set(table.flatMap(({ parts: some }) => some))].sort(), Object.keys(PARTS).sort());
});

test('open seeds are listed as mended ones are', (t) => {
  const keys = (path: string): string[] => Object.keys(JSON.parse(readFileSync(inRepository(path), 'utf8')) as object);
  t.deepEqual(keys('test/open-seeds.json'), keys('test/mended-seeds.json'));
});
