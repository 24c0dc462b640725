/**
 * Where the shm transport's sockets lie. A Unix socket's path is at most 107 bytes, so they are in the data directory
 * when that is short enough, else in this user's private temporary directory under a name made from the data
 * directory's path. Both are private (0700): reaching the socket is the first half of a client's permission, its ticket
 * the second.
 */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { privateTemporaryDirectory } from '../net/private-directory.js';

const PATH_MAX = 107;

/**
 * One for each data-plane thread. The data directory's lock makes them this process's: a file that is there is a dead
 * one's.
 */
export function socketPaths(dataDirectory: string, workers: number): string[] {
  const inside = (worker: number): string => join(dataDirectory, `g${worker}.sock`);
  const name = createHash('sha256').update(dataDirectory).digest('hex').slice(0, 16);
  const path =
    Buffer.byteLength(inside(workers - 1)) <= PATH_MAX
      ? inside
      : (worker: number): string => join(privateTemporaryDirectory(), `${name}-${worker}.sock`);
  return Array.from({ length: workers }, (_, worker) => path(worker));
}

export function removeSockets(paths: readonly string[]): void {
  for (const path of paths) rmSync(path, { force: true });
}
