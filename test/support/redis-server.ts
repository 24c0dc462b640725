/** A real redis-server for a test, which has to be installed: apt-get install redis-server. */
import type { ExecutionContext } from 'ava';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** Resolves when it accepts connections on 127.0.0.1; it ends with the test. */
export async function startRedis(t: ExecutionContext, port: number, args: readonly string[] = []): Promise<void> {
  if (spawnSync('redis-server', ['--version']).error !== undefined)
    throw new Error('redis-server is missing: apt-get install redis-server');
  const words = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...args];
  const child = spawn('redis-server', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
  });
  for await (const line of createInterface({ input: child.stdout })) if (line.includes('Ready to accept')) return;
  throw new Error('redis-server ended');
}
