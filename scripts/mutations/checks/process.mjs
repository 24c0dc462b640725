/** Runs a command with a limit of time. What it started ends with it: a test that never ends has workers of its own. */
import { clearTimeout, setTimeout } from 'node:timers';
import { spawn } from 'node:child_process';

/** A mutation that makes a test run for ever is not caught. Twice what the longest has taken on a machine with other work. */
const LIMIT_MS = 300_000;

/** Resolves with the exit code or signal, all output as one text, and whether it took too long. */
export function run(command, args, directory, env = {}) {
  return new Promise((done) => {
    const child = spawn(command, args, {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
      detached: true,
    });
    let output = '';
    let late = false;
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    const timer = setTimeout(() => {
      late = true;
      process.kill(-child.pid, 'SIGKILL');
    }, LIMIT_MS);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      done({ code, signal, output, late });
    });
  });
}
