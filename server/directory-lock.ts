/**
 * The lock of a server's directory, which is made where it is not there: by name, or a temporary one, whose leftovers of
 * servers that were killed are removed. Not for: what lies in it (data-directory.ts).
 */
import { closeSync, constants, fstatSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { FarkvError } from '../core/errors.js';
import { makeDirectory, privateTemporaryDirectory } from '../net/private-directory.js';
import { fileReason, openRegular } from '../net/regular-file.js';
import { ownFile } from './own-file.js';

/** Each takes another start at the same moment. */
const TEMPORARY_TRIES = 100;

/** native/addon.ts tryLock */
export type TryLock = (fd: number) => boolean;
interface Locked {
  readonly path: string;
  /** The descriptor of its lock. */
  readonly lock: number;
}

/** Undefined: another process holds it. */
function lockIn(path: string, tryLock: TryLock): number | undefined {
  const how = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;
  try {
    const fd = ownFile(join(path, 'lock'), (file) => openRegular(file, how, 0o600));
    if (tryLock(fd)) return fd;
    closeSync(fd);
    return undefined;
  } catch (cause) {
    cannotUse(path, cause);
  }
}

export function lockNamed(name: string, tryLock: TryLock): Locked {
  const path = resolve(name);
  try {
    makeDirectory(path);
  } catch (cause) {
    refuse(`--data-dir ${name} cannot be made: ${fileReason(cause)}${readOnlyHint(cause)}`, cause);
  }
  const lock = lockIn(path, tryLock);
  if (lock !== undefined) return { path, lock };
  refuse(`${path} is in use by another farkv server: stop that one, or give this one a --data-dir of its own`);
}

/**
 * A new one. Until it is locked, another start takes it for that of a dead server (removeLeftovers): then it is left to
 * that one, and the next is made.
 */
export function lockTemporary(tryLock: TryLock): Locked {
  for (let tries = 0; tries < TEMPORARY_TRIES; tries++) {
    const path = makeTemporary();
    const lock = lockIn(path, tryLock);
    if (lock === undefined) continue;
    if (statSync(join(path, 'lock'), { throwIfNoEntry: false })?.ino === fstatSync(lock).ino) return { path, lock };
    closeSync(lock);
  }
  refuse(`other servers remove what this one makes in ${tmpdir()}: name a directory with --data-dir`);
}

function makeTemporary(): string {
  try {
    return mkdtempSync(join(privateTemporaryDirectory(), 'run-'));
  } catch (cause) {
    if (cause instanceof FarkvError) throw cause;
    refuse(
      `no directory can be made in ${tmpdir()}: ${fileReason(cause)}; name one with --data-dir, or another place with TMPDIR`,
      cause,
    );
  }
}

/** Temporary directories of servers that were killed: nobody holds their locks any more. */
export function removeLeftovers(own: string, tryLock: TryLock): void {
  const parent = privateTemporaryDirectory();
  for (const name of readdirSync(parent)) {
    const path = join(parent, name);
    if (!name.startsWith('run-') || path === own) continue;
    try {
      const fd = openRegular(join(path, 'lock'));
      try {
        if (tryLock(fd)) rmSync(path, { recursive: true, force: true });
      } finally {
        closeSync(fd);
      }
    } catch {
      // Another server is about to make it, or to remove it.
    }
  }
}

export function refuse(message: string, cause?: unknown): never {
  throw new FarkvError('ERR_DATA_DIR', message, cause === undefined ? undefined : { cause });
}

export function cannotUse(path: string, cause: unknown): never {
  if (cause instanceof FarkvError) throw cause;
  refuse(`${path} cannot be used: ${(cause as Error).message}${readOnlyHint(cause)}`, cause);
}

/** What to do where a unit of systemd, which INVOCATION_ID tells, has all but its own directories read-only. */
function readOnlyHint(cause: unknown): string {
  if ((cause as NodeJS.ErrnoException).code !== 'EROFS' || process.env.INVOCATION_ID === undefined) return '';
  return ': a unit with ProtectSystem=strict may write there only if ReadWritePaths= names the directory, in a drop-in (systemctl edit farkv)';
}
