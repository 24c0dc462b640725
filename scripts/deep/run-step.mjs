// Runs one step, with its output in a log, and ends all that the step started: when the step has ended, or when it is
// interrupted. Processes are found by a variable of their environment, since some have a process group of their own.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, closeSync, openSync, readFileSync, readdirSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { setTimeout } from 'node:timers/promises';

const MARK = 'FARKV_DEEP_STEP';
/** How long processes have to end by SIGTERM. A virtual machine and servers remove their files in it. */
const GRACE_MS = 10_000;
const POLL_MS = 50;

/** Processes of a step. Zombies have no environment, and processes of others show none. */
function processesOf(mark) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${MARK}=${mark}`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

function send(pids, signal) {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended meanwhile.
    }
  }
}

async function endAll(mark) {
  send(processesOf(mark), 'SIGTERM');
  const begun = performance.now();
  for (let left = processesOf(mark); left.length > 0; left = processesOf(mark)) {
    const waited = performance.now() - begun;
    if (waited > 2 * GRACE_MS) return;
    if (waited > GRACE_MS) send(left, 'SIGKILL');
    await setTimeout(POLL_MS);
  }
}

/**
 * Resolves with 'passed', 'failed' or 'interrupted' when no process of the step is left. `interruption` is an
 * AbortSignal.
 */
export async function runStep({ command, env = {} }, { root, log, interruption }) {
  const mark = randomUUID();
  const output = openSync(log, 'a');
  const [program, ...args] = command;
  const child = spawn(program, args, {
    cwd: root,
    env: { ...process.env, ...env, [MARK]: mark },
    // Ctrl-C reaches this program alone, which then ends all of the step.
    detached: true,
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  const exit = once(child, 'exit').catch((error) => [error.message]);
  let ending;
  const interrupt = () => (ending = endAll(mark));
  interruption.addEventListener('abort', interrupt, { once: true });
  if (interruption.aborted) interrupt();
  const [code] = await exit;
  if (typeof code === 'string') appendFileSync(log, `${code}\n`);
  interruption.removeEventListener('abort', interrupt);
  await (ending ?? endAll(mark));
  if (code === 0) return 'passed';
  return interruption.aborted ? 'interrupted' : 'failed';
}
