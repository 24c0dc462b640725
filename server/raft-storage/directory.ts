/**
 * Whose directory it is: the file `member`, written last when a directory is made, and a lock.
 *
 *   farkv raft directory
 *   {"format":1,"clusterId":"...","memberId":3}
 *   crc32c 0123abcd
 *
 * A directory without it was never finished: nothing in it was acknowledged, and it is made afresh. One of another
 * cluster or of another member is refused, whatever else it holds.
 */
import { FarkvError } from '../../core/errors.js';
import type { Checksum } from './checksum.js';
import { Damage, NewerFormat } from './damage.js';
import type { Disk } from './disk.js';
import { listSegments } from './segment.js';
import { STATE_FILE, StateFile } from './state-file.js';

const FILE = 'member';
const FORMAT = 1;
const TITLE = 'farkv raft directory';

export interface Identity {
  readonly clusterId: string;
  readonly memberId: number;
}

export function lockDirectory(disk: Disk): void {
  if (!disk.lock('lock'))
    throw new FarkvError(
      'ERR_DATA_DIR',
      `${disk.path} is in use by another process. Stop that one, or give this one another directory.`,
    );
}

/** Whose directory this is; undefined when it is nobody's yet. */
export function readIdentity(disk: Disk, checksum: Checksum): Identity | undefined {
  const bytes = disk.read(FILE);
  if (bytes === undefined) return undefined;
  const [title, body = '', sum] = new TextDecoder().decode(bytes).split('\n');
  if (title !== TITLE || sum !== `crc32c ${hex(checksum(new TextEncoder().encode(body)))}`)
    throw new Damage(`the file ${FILE} cannot be read`);
  const { format, clusterId, memberId } = JSON.parse(body) as Record<string, unknown>;
  if (typeof format !== 'number' || format > FORMAT)
    throw new NewerFormat(`it has format ${String(format)}, this version knows ${FORMAT}`);
  if (typeof clusterId !== 'string' || typeof memberId !== 'number')
    throw new Damage(`the file ${FILE} cannot be read`);
  return { clusterId, memberId };
}

/** Makes the directory this member's; durable when it returns. */
export function writeIdentity(disk: Disk, { clusterId, memberId }: Identity, checksum: Checksum): void {
  const body = JSON.stringify({ format: FORMAT, clusterId, memberId });
  const text = new TextEncoder();
  const file = disk.create(`${FILE}.new`);
  file.write(text.encode(`${TITLE}\n${body}\ncrc32c ${hex(checksum(text.encode(body)))}\n`), 0);
  file.datasync();
  file.close();
  disk.rename(`${FILE}.new`, FILE);
  disk.syncNames();
}

/**
 * Removes what an unfinished making left behind. Where there is more than that can have left, `member` was lost, and
 * removing the rest would lose a member's vote and log.
 */
export function clearUnfinished(disk: Disk, checksum: Checksum): void {
  const names = disk.names().filter((name) => /^(log|snapshot|state|member)/.test(name));
  const term = names.includes(STATE_FILE) ? termIn(disk, checksum) : 0;
  if (
    term > FIRST_TERM ||
    names.some((name) => name.startsWith('snapshot-')) ||
    listSegments(disk).some((sequence) => sequence > 1)
  ) {
    throw new Damage(`the file ${FILE} is missing`);
  }
  for (const name of names) disk.remove(name);
}

/** The term that a new group's first members begin in. */
const FIRST_TERM = 1;

function termIn(disk: Disk, checksum: Checksum): number {
  try {
    const state = StateFile.open(disk, checksum);
    state.close();
    return state.term;
  } catch (error) {
    // Cut short while it was made.
    if (error instanceof Damage) return 0;
    throw error;
  }
}

export function checkIdentity(disk: Disk, found: Identity, wanted: Identity): void {
  if (found.clusterId !== wanted.clusterId) {
    throw new FarkvError(
      'ERR_DATA_DIR',
      `${disk.path} belongs to cluster ${found.clusterId}, not to ${wanted.clusterId}. Give this server another directory.`,
    );
  }
  if (found.memberId !== wanted.memberId) {
    throw new FarkvError(
      'ERR_DATA_DIR',
      `${disk.path} belongs to member ${found.memberId}, not to ${wanted.memberId}. Give this server its own directory.`,
    );
  }
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, '0');
}
