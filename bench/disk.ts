/**
 * The disk that a directory is on: which file system, how long a sync takes, how fast files are read past the page
 * cache, and what a process has written to it.
 */
import { execFile } from 'node:child_process';
import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** File systems in memory (statfs(2)): tmpfs, ramfs. */
const IN_MEMORY: readonly number[] = [0x01021994, 0x858458f6];
const BLOCK = 4096;
const BLOCKS = 256;

/** Why nothing that has to do with syncs can be measured there; undefined: it can. */
export function diskProblem(directory: string): string | undefined {
  return IN_MEMORY.includes(statfsSync(directory).type)
    ? `${directory} is in memory, where fdatasync does nothing: set TMPDIR to a directory on a disk`
    : undefined;
}

/** `ext4 on /dev/vda`. */
export function fileSystemOf(directory: string): string {
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, at = '?']) => directory === at || directory.startsWith(at.endsWith('/') ? at : `${at}/`))
    .sort(([, a = ''], [, b = '']) => b.length - a.length);
  const [device = '?', , type = '?'] = mounts[0] ?? [];
  return `${type} on ${device}`;
}

/** Microseconds to write a block of a file that has them all already, and to sync it: the median. */
export function syncUs(directory: string): number {
  const own = mkdtempSync(join(directory, 'farkv-sync-'));
  const file = openSync(join(own, 'blocks'), 'w');
  try {
    writeSync(file, Buffer.alloc(BLOCK * BLOCKS));
    fdatasyncSync(file);
    const block = Buffer.alloc(BLOCK, 1);
    const times = Array.from({ length: BLOCKS }, (_, i) => {
      const began = performance.now();
      writeSync(file, block, 0, BLOCK, i * BLOCK);
      fdatasyncSync(file);
      return (performance.now() - began) * 1000;
    }).sort((a, b) => a - b);
    return times[BLOCKS / 2] ?? 0;
  } finally {
    closeSync(file);
    rmSync(own, { recursive: true });
  }
}

/** Bytes per second at which all files of the directory are read, one after the other and past the page cache. */
export async function readSpeed(directory: string): Promise<number> {
  let bytes = 0;
  let seconds = 0;
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    // A snapshot that is being written is read by no start, and has another name when it is done.
    if (name.endsWith('-new') || (statSync(path, { throwIfNoEntry: false })?.size ?? 0) < BLOCK) continue;
    const { stderr } = await promisify(execFile)('dd', [`if=${path}`, 'of=/dev/null', 'bs=1M', 'iflag=direct'], {
      env: { ...process.env, LC_ALL: 'C' },
    });
    const [, read, took] = /^(\d+) bytes.*copied, ([\d.e-]+) s/m.exec(stderr) ?? [];
    if (read === undefined || took === undefined) throw new Error(`dd printed no time: ${stderr}`);
    bytes += Number(read);
    seconds += Number(took);
  }
  return bytes / seconds;
}

/** Bytes that the process has had written to a disk since it began (proc_pid_io(5)); writes of its children are not in them. */
export function writtenBytes(pid: number): number {
  const bytes = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1];
  if (bytes === undefined) throw new Error(`/proc/${pid}/io says nothing of written bytes`);
  return Number(bytes);
}
