/**
 * The end of the process when its disk cannot be trusted any more.
 *
 * After a failed fsync the kernel may have dropped the dirty pages and marked them clean: a second fsync would succeed
 * and the bytes would still not be there (the PostgreSQL "fsyncgate" of 2018). So there is no second one: the process
 * ends without a clean-up, and what is on disk is looked at afresh by the next start.
 */
import { writeSync } from 'node:fs';

export type Fatal = (what: string, cause: unknown) => never;

/**
 * Ends the process from any thread: process.exit in a worker would end the worker only, and process.abort does not work
 * there.
 */
export const endProcess: Fatal = (what, cause) => {
  const why = cause instanceof Error ? cause.message : String(cause);
  writeSync(
    2,
    `farkv: fatal: ${what}: ${why}. The process ends, since its disk cannot be trusted: look at the disk, then start it again.\n`,
  );
  process.kill(process.pid, 'SIGABRT');
  // Another thread may take the signal; this one must not go on meanwhile.
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
};
