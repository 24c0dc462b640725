/**
 * A start whose write-ahead log is damaged. Where other servers have all that was in it (values-elsewhere.ts), `values/`
 * is put aside, not removed, and this server's copies are made anew of theirs; else the server ends, and an operator
 * decides.
 */
import { existsSync, lstatSync, renameSync } from 'node:fs';
import { FarkvError } from '../core/errors.js';
import type { Found } from '../core/shards/index.js';
import { makeDirectory } from '../net/private-directory.js';
import { describeError, type Log } from './log.js';
import { untilElsewhere, type Others } from './values-elsewhere.js';
import type { Values } from './values-log.js';
import { asideOf } from './values-watch.js';

export interface Opened {
  readonly plane: { readonly close: () => Promise<unknown> };
  readonly found: readonly Found[];
}

export interface StartingServer {
  readonly id: string;
  readonly others: Others;
  readonly log: Log;
}

type Those = Pick<Values, 'early' | 'watch'> & { readonly log: Pick<Values['log'], 'directory'> };

/**
 * Calls `start`, and once more without what was on the disk. Whole logs of other threads and snapshots go with the
 * damaged log: a disk that has lost what it had confirmed is not believed in the rest. Rejects with ERR_DATA_DIR where
 * the log is another's or cannot be read, where some shard is nowhere else, and where something was put aside before:
 * such a disk needs a person.
 */
export async function startsWith<T extends Opened>(
  values: Those,
  server: StartingServer,
  start: () => Promise<T>,
): Promise<T> {
  const { directory } = values.log;
  const aside = asideOf(directory);
  let opened: T;
  try {
    opened = await start();
  } catch (error) {
    const { code, message } = error as { code?: unknown; message: string };
    if (code !== 'ERR_CORRUPT' && code !== 'ERR_DATA_DIR') throw error;
    const why = code === 'ERR_DATA_DIR' ? '' : await putAside(values, server, message);
    if (why !== undefined) throw refusal(directory, message, why, error);
    return await startsWith(values, server, start);
  }
  if (!existsSync(aside)) return opened;
  // The run that put it aside may have ended before it joined: others may be gone since.
  const message = `what was there is put aside as ${aside}, since its log was damaged`;
  try {
    const why = await elsewhere(values, server, opened.found, message);
    if (why === undefined) return opened;
    throw refusal(directory, message, why, undefined, aside);
  } catch (error) {
    await opened.plane.close();
    throw error;
  }
}

/** Answers with why that may not be, or cannot. */
async function putAside(values: Those, server: StartingServer, message: string): Promise<string | undefined> {
  const { directory } = values.log;
  const aside = asideOf(directory);
  // mutation: recovered/put-aside-twice
  if (existsSync(aside)) return `A damaged log was put aside before, as ${aside}: look at the disk.`;
  if (!lstatSync(directory).isDirectory()) return 'It is not put aside, since it is a link.';
  const why = await elsewhere(values, server, undefined, message);
  if (why !== undefined) return why;
  try {
    renameSync(directory, aside);
    makeDirectory(directory); // which syncs both names
  } catch (error) {
    return `It cannot be put aside: ${describeError(error)}.`;
  }
  server.log.error(
    `${directory}: ${message}. Other servers have copies of all that was there: it is put aside as ${aside}, and copies are made anew of theirs. Look at the disk, and remove ${aside} when farkv status shows as many copies in sync as are wanted`,
    { event: 'values-put-aside', directory, to: aside },
  );
  values.early.movedAway();
  return undefined;
}

async function elsewhere(
  { log: { directory }, watch }: Those,
  { id, others, log }: StartingServer,
  found: readonly Found[] | undefined,
  message: string,
): Promise<string | undefined> {
  try {
    return await untilElsewhere(others, id, found, (servers) => {
      watch.waitsFor(servers);
      log.warn(`${directory}: ${message}. Waiting for ${servers.join(', ')} to be there with what was in it`, {
        event: 'values-awaited',
        directory,
        servers: servers.join(),
      });
    });
  } finally {
    watch.waitsFor([]);
  }
}

/** `left`: without what an operator goes on. */
function refusal(directory: string, message: string, why: string, cause: unknown, left = directory): FarkvError {
  const text = why === '' ? '' : `${why} `;
  return new FarkvError(
    'ERR_DATA_DIR',
    `${directory}: ${message}. ${text}Put back what this server wrote there. Or, to go on without it, move ${left} away and start this server again: its copies are made anew of other servers', and shards without another copy wait for farkv shard reset`,
    { cause },
  );
}
