import test from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
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
    [2, 4, 2],
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

test('the README names every package that is installed with farkv, and every command', (t) => {
  const { dependencies } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  for (const name of Object.keys(dependencies)) t.true(README.includes(`\`${name}\``), name);
  for (const command of ['server', 'get', 'put', 'delete', 'scan', 'status', 'doctor', 'bench'])
    t.true(README.includes(command), command);
});
