import test from 'ava';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Cluster } from '../support/cluster.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const README = readFileSync(`${ROOT}README.md`, 'utf8');

test('the programs in the README, of the adapters and of the recipes run as they stand', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1 });
  const programsOf = (markdown: string): string[] =>
    Array.from(markdown.matchAll(/^```js\n(.*?)^```$/gms), ([, program]) => program ?? '');
  const docs = ['adapters', 'recipes'].map((name) => readFileSync(`${ROOT}docs/${name}.md`, 'utf8'));
  const programs = [README, ...docs].map(programsOf);
  t.deepEqual(
    programs.map((all) => all.length),
    [1, 4, 2],
  );
  for (const program of programs.flat()) {
    // Run in the project's folder, so that `farkv` is this package; only the server's port is another.
    const child = spawn(
      process.execPath,
      ['--input-type=module', '-e', program.replaceAll('127.0.0.1:7400', cluster.server(0).address)],
      { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    const [stderr, [code]] = (await Promise.all([
      text(child.stderr),
      once(child, 'close'),
      text(child.stdout),
    ])) as unknown as [string, [number]];
    t.is(code, 0, `${program}\n${stderr}`);
  }
});

/** A minimal system has no curl: this does the same with those options that the README has. */
const STAND_IN = `#!${process.execPath}
const url = process.argv.slice(2).find((one) => !one.startsWith('-'));
process.stdout.on('error', () => process.exit(23));
require('node:http').get('http://' + url, (response) => {
  if (response.statusCode >= 400) process.exit(22);
  response.pipe(process.stdout);
}).on('error', () => process.exit(7));
`;
const hasCurl = spawnSync('curl', ['--version']).error === undefined;

test("the README's curl lines read each endpoint of a server", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'farkv-curl-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'curl'), STAND_IN, { mode: 0o755 });
  const cluster = await Cluster.start(t, { servers: 1, args: ['--http-listen', '127.0.0.1:0'] });
  const lines = Array.from(README.matchAll(/^```sh\n(.*?)^```$/gms), ([, block]) => block ?? '')
    .join('')
    .split('\n')
    .filter((line) => line.includes('curl '));
  t.true(lines.length > 0);
  const script = lines.join('\n').replaceAll('127.0.0.1:9100', cluster.server(0).readyLine?.http[0] ?? '');
  const paths = [`${folder}:${process.env.PATH ?? ''}`, ...(hasCurl ? [process.env.PATH] : [])];
  for (const PATH of paths) {
    const child = spawn('sh', ['-ec', script], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, PATH } });
    const [stdout, stderr, [code]] = (await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ])) as unknown as [string, string, [number]];
    t.is(code, 0, stderr);
    t.regex(
      stdout,
      /^<!doctype html>.*<\/html>\nok\nready\nleader\n# HELP farkv_/s,
      'the page, and what probes ask for',
    );
    t.regex(stdout, /^farkv_raft_has_leader 1$/m);
    t.regex(stdout, /^event: (start|view|happened)\ndata: [[{].*[\]}]$/m);
  }
});

test('the README names every package that is installed with farkv, and every command', (t) => {
  const { dependencies } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  for (const name of Object.keys(dependencies)) t.true(README.includes(`\`${name}\``), name);
  for (const command of ['server', 'get', 'put', 'delete', 'scan', 'status', 'doctor', 'bench'])
    t.true(README.includes(command), command);
});
