// npm run dev: three servers of this clone on 127.0.0.1:7400 to 7402, with their log on debug and Node.js's inspector
// on 9229 to 9231, until Ctrl-C. Their directories are temporary. Further arguments go to each server:
//   npm run dev -- --level cache
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';

const root = join(import.meta.dirname, '..');
const directory = mkdtempSync(join(tmpdir(), 'farkv-dev-'));
const ids = ['s1', 's2', 's3'];
const peers = ids.map((id, i) => `${id}=127.0.0.1:${9400 + i}`).join(',');

const servers = ids.map((id, i) => {
  const options = [
    ['--id', id],
    ['--peers', peers],
    ['--listen', `127.0.0.1:${7400 + i}`],
    // A port for each worker: those of three servers in a row would be each other's.
    ['--fabric-listen', '127.0.0.1:0'],
    ['--data-dir', join(directory, id)],
    ['--memory', '256mb'],
    ['--log-level', 'debug'],
  ].flat();
  const node = [`--inspect=127.0.0.1:${9229 + i}`, '--enable-source-maps', 'dist/server/cli/main.js'];
  const child = spawn(
    process.execPath,
    [...node, 'server', '--stop-with-stdin', ...options, ...process.argv.slice(2)],
    {
      cwd: root,
      stdio: ['pipe', 'pipe', 'pipe'],
      // A group of their own: Ctrl-C is for this process, which then stops them in order.
      detached: true,
    },
  );
  child.stdin.on('error', () => undefined);
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (text) => process.stdout.write(`${id}  ${text}\n`));
  return { id, child };
});

const stop = () => servers.forEach(({ child }) => child.stdin.end());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop);
process.stdout.write('three servers begin on 127.0.0.1:7400 to 7402; try `npx farkv status` in another terminal\n');
const codes = await Promise.all(
  servers.map(async ({ id, child }) => {
    const [code, signal] = await once(child, 'exit');
    process.stdout.write(`${id}  ended with ${signal ?? code}\n`);
    return code;
  }),
);
rmSync(directory, { recursive: true, force: true });
process.exit(codes.every((code) => code === 0) ? 0 : 1);
