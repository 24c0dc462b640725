/** Servers whose output goes to a pipe that nobody reads, with real processes. */
import test from 'ava';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLI } from '../support/cluster.js';

/** One that is full. */
function unreadPipe(t: { teardown: (f: () => void) => void }): number {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-unread-'));
  const path = join(directory, 'pipe');
  if (spawnSync('mkfifo', [path]).status !== 0) throw new Error('there is no mkfifo');
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  t.teardown(() => {
    closeSync(fd);
    rmSync(directory, { recursive: true });
  });
  for (const size of [4096, 1])
    try {
      while (writeSync(fd, Buffer.alloc(size, '.')) > 0);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  return fd;
}

test('a server serves, and ends as it is told, though nobody reads its log', async (t) => {
  const args = ['server', '--json', '--listen', '127.0.0.1:0', '--memory', '32mb', '--log-level', 'debug'];
  const server = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', 'pipe', unreadPipe(t)] });
  t.teardown(() => server.kill('SIGKILL'));
  const ended = once(server, 'close');
  const [line] = (await Promise.race([once(server.stdout!, 'data'), ended])) as [Buffer];
  t.regex(String(line), /"event":"ready"/);
  server.kill('SIGTERM');
  t.deepEqual(await ended, [0, null]);
});
