// Targets of the control plane: test/fuzz, in Node.js, by an own mutator. It knows frames as values, which a mutator of
// bytes would have to find its way through, and needs neither a native addon nor instrumented code.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import process from 'node:process';
import { growing } from './native.mjs';

const MAIN = 'dist/test/fuzz/main.js';
const kept = (name) => `test/fuzz/corpus/${name}`;
const count = (folder) => (existsSync(folder) ? readdirSync(folder).length : 0);

async function run(root, args) {
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (part) => (output += part));
  child.stderr.setEncoding('utf8').on('data', (part) => (errors = (errors + part).slice(-4000)));
  await once(child, 'close');
  try {
    return JSON.parse(output);
  } catch {
    return {
      executions: 0,
      frames: 0,
      added: 0,
      blocks: [],
      failed: { why: `it ended by itself: ${errors}`, path: '' },
    };
  }
}

export function typescriptTargets(root) {
  const names = spawnSync(process.execPath, [MAIN, '--names'], { cwd: root, encoding: 'utf8' })
    .stdout.trim()
    .split('\n');
  return names.map((name) => ({
    name,
    native: false,
    run: async ({ seconds, seed, keep }) => {
      const into = growing(name);
      mkdirSync(join(root, into), { recursive: true });
      const begin = [kept(name), into].flatMap((folder) => ['--begin', folder]);
      const args = [name, '--seconds', String(seconds), '--seed', String(seed), ...begin, '--into', into];
      const { executions, frames, added, blocks, failed } = await run(root, args);
      // Each was kept because it reached something new: all of them are the corpus.
      if (keep && failed === undefined && count(join(root, into)) > 0)
        cpSync(join(root, into), join(root, kept(name)), { recursive: true });
      if (keep) rmSync(join(root, into), { recursive: true, force: true });
      const sum = (what) => blocks.reduce((all, one) => all + one[what], 0);
      return {
        executions,
        frames,
        added,
        reached: `${sum('reached')} of ${sum('known')} blocks`,
        files: blocks.map(({ path, reached, known }) => ({
          path: path.replace(/js$/, 'ts'),
          covered: reached,
          count: known,
          of: 'blocks',
        })),
        failed:
          failed === undefined
            ? undefined
            : `${failed.why}\nreplay: node ${MAIN} ${name} --input ${relative(root, join(root, failed.path))}`,
      };
    },
  }));
}
