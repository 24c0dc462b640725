/**
 * A file that gets its name only once it is whole and on the disk. Until then it has a name of its own beside it, so two
 * of one name, or a file that somebody makes meanwhile, do not disturb each other: the later one is refused.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { FarkvError } from '../../core/errors.js';
import { fileReason } from '../../net/regular-file.js';
import { writing } from './write-failure.js';

/** Of file systems that have no links: vfat, and some over a network. */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

const codeOf = (cause: unknown): string => (cause as NodeJS.ErrnoException).code ?? 'error';
const exists = (path: string, cause?: unknown): FarkvError =>
  new FarkvError('ERR_CONFIG', `${path} exists already: name a new file`, cause === undefined ? undefined : { cause });

/** Gives the file its name, and takes no other file's. Throws ERR_CONFIG when there is one. */
async function name(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
    await rm(temporary);
  } catch (cause) {
    if (codeOf(cause) === 'EEXIST') throw exists(path, cause);
    if (!NO_LINKS.includes(codeOf(cause))) throw cause;
    if (existsSync(path)) throw exists(path, cause);
    await rename(temporary, path);
  }
}

/**
 * `work` writes the file; a failure of it leaves no file. Throws ERR_CONFIG when there is one of this name, before or
 * after, or none can be made there, and WriteFailure for what the system says against writing.
 */
export async function newFile(path: string, work: (file: FileHandle, path: string) => Promise<void>): Promise<void> {
  if (existsSync(path)) throw exists(path);
  const temporary = `${path}.part-${process.pid}-${randomBytes(4).toString('hex')}`;
  let file: FileHandle;
  try {
    file = await open(temporary, 'wx', 0o600);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `${temporary} cannot be written: ${fileReason(cause)}`, { cause });
  }
  try {
    try {
      await work(file, temporary);
      await writing(temporary, () => file.sync());
    } finally {
      await file.close();
    }
    await writing(path, () => name(temporary, path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
