/** Runs a command with a limit of time. What it started ends with it: a test that never ends has workers of its own. */
import { clearTimeout, setTimeout } from 'node:timers';
import { spawn } from 'node:child_process';

/** A mutation that makes a test run for ever is not caught. Twice what the longest has taken on a machine with other work. */
const LIMIT_MS = 300_000;

/** Each has a process group of its own, which Ctrl-C does not reach. */
const running = new Set();

function end(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

/** Ends all that runs, for a run that is interrupted. */
export const endAll = () => running.forEach(end);

/** Resolves with the exit code or signal, all output as one text, and whether it took too long. */
export function run(command, args, directory, env = {}) {
  return new Promise((done) => {
    const child = spawn(command, args, {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
      detached: true,
    });
    running.add(child);
    let output = '';
    let late = false;
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    const timer = setTimeout(() => {
      late = true;
      end(child);
    }, LIMIT_MS);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      running.delete(child);
      done({ code, signal, output, late });
    });
  });
}
