import test from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Cluster } from '../support/cluster.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** What a program says at its end that it prints. */
function promised(program: string): string {
  return Array.from(program.matchAll(/^\/\/ prints: (.*\n)/gm), ([, line]) => line ?? '').join('');
}

test('each example prints what it says', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1 });
  const env = { ...process.env, FARKV: cluster.server(0).address };
  const files = readdirSync(`${ROOT}examples`).filter((name) => name.endsWith('.mjs'));
  t.true(files.length >= 10);
  for (const file of files) {
    const path = `examples/${file}`;
    const program = readFileSync(ROOT + path, 'utf8');
    t.not(promised(program), '', path);
    const child = spawn(process.execPath, [path], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    t.is(stdout, promised(program), `${path}\n${stderr}`);
    t.is(child.exitCode, 0, `${path}\n${stderr}`);
  }
});
