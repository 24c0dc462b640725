/**
 * Which host this is, as far as shared memory reaches. A server writes it into its shm addresses, a client compares it
 * with its own: equal means that the socket's path leads to the server's socket.
 *
 * One boot of one kernel, and one view of its files: two containers on a host see different sockets under the same
 * path, so the mount namespace is part of it.
 */
import { readFileSync, readlinkSync } from 'node:fs';

export function shmHost(): string {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return `${boot}/${readlinkSync('/proc/self/ns/mnt')}`;
}
