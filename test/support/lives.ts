/**
 * That the native objects end well: a program which goes through the stages of one's life is run in a process of its
 * own, and in worker threads that come and go. The programs are native-stages.ts and plane-stages.ts; the stage is
 * their argument or workerData.
 */
import test, { type ExecutionContext } from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

export interface End {
  readonly pid: number | undefined;
  readonly code: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly err: string;
  /** Its TMPDIR: a process that does not close what it has leaves sockets. It goes with the test. */
  readonly directory: string;
}

/** Runs a stage in a process; resolves when it has ended. `options`: more of Node.js. */
export async function lifeInProcess(
  t: Pick<ExecutionContext, 'teardown'>,
  program: string,
  stage: string,
  options: readonly string[] = [],
): Promise<End> {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-life-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const child = spawn(process.execPath, ['--expose-gc', ...options, program, stage], {
    // An arena that a thread begins reserves 64 MiB at once: what a stage reads of its size would hold for a moment only.
    env: { ...process.env, MALLOC_ARENA_MAX: '1', TMPDIR: directory },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (data: Buffer) => (out += data.toString()));
  child.stderr.on('data', (data: Buffer) => (err += data.toString()));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { pid: child.pid, code, signal, out: out.trim(), err, directory };
}

/** Declares the tests in worker threads. `gone` checks, after a thread was terminated, that it left nothing. */
export function testLivesInThreads(
  program: string,
  stages: readonly string[],
  gone: (threadId: number) => boolean = () => true,
): void {
  test('several worker threads load the addon and live at once', async (t) => {
    const workers = Array.from({ length: 4 }, () => new Worker(program, { workerData: 'a whole life' }));
    const said = await Promise.all(
      workers.map(async (worker) => {
        const [[text], [code]] = (await Promise.all([once(worker, 'message'), once(worker, 'exit')])) as [
          [string],
          [number],
        ];
        return `${text} ${code}`;
      }),
    );
    t.deepEqual(
      said,
      Array.from({ length: 4 }, () => 'lived 0'),
    );
  });

  test('a worker thread may be terminated in the middle of its work, again and again', async (t) => {
    for (let i = 0; i < 5; i++) {
      const worker = new Worker(program, { workerData: 'works until it is ended' });
      await once(worker, 'message');
      await new Promise(setImmediate);
      const { threadId } = worker;
      t.is(await worker.terminate(), 1);
      t.true(gone(threadId));
    }
  });

  for (const stage of stages) {
    test(`a worker thread ends well: ${stage}`, async (t) => {
      const worker = new Worker(program, { workerData: stage });
      const [code] = (await once(worker, 'exit')) as [number];
      t.is(code, 0);
    });
  }
}
