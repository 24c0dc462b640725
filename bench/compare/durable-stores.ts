/**
 * Stores that keep values on a disk, for as long as one row takes: durable farkv, Redis with its append-only file, and
 * lmdb with syncs. All in the temporary directory, so on one disk; what was written is removed at the end.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { copiesMade } from '../copies/status.js';
import { diskProblem } from '../disk.js';
import { openFarkv, type OpenFarkv } from './copied-stores.js';
import type { Lab } from './lab.js';
import { inParts, keyOf, loadRedis, openRedis, valueOf, type RedisStore } from './stores.js';

type Undo = (f: () => Promise<unknown>) => void;

export const VALUE_BYTES = 100;

/** An empty directory on a disk. */
export function diskDirectory(undo: Undo): string {
  const problem = diskProblem(tmpdir());
  if (problem !== undefined) throw new Error(problem);
  const directory = mkdtempSync(join(tmpdir(), 'farkv-durable-'));
  undo(() => {
    rmSync(directory, { recursive: true, force: true });
    return Promise.resolve();
  });
  return directory;
}

/** Of one server, or of three whose values are on the disks of two; `options` are more of each server's. */
export function openDurable(
  lab: Lab,
  transport: 'tcp' | 'shm',
  servers: 1 | 3,
  options: readonly string[],
  undo: Undo,
): Promise<OpenFarkv> {
  const problem = diskProblem(tmpdir());
  if (problem !== undefined) return Promise.reject(new Error(problem));
  return openFarkv(
    lab,
    transport,
    {
      servers,
      valueBytes: VALUE_BYTES,
      options: ['--level', 'durable', ...options],
      ...(servers === 1 ? {} : { copied: copiesMade }),
    },
    undo,
  );
}

export async function openAppendOnlyRedis(lab: Lab, fsync: 'always' | 'everysec', undo: Undo): Promise<RedisStore> {
  lab.note(`starting redis-server, appendfsync ${fsync} (${lab.keys.toLocaleString('en')} records)`);
  const store = await openRedis({ appendOnly: { directory: diskDirectory(undo), fsync } });
  undo(() => store.peer.stop());
  undo(() => {
    store.client.disconnect();
    return Promise.resolve();
  });
  const value = valueOf(VALUE_BYTES);
  await inParts(lab.keys, lab.signal, (part) => loadRedis(store.client, part, value));
  return store;
}

/** Its `put` resolves when the value is on the disk: with overlapping syncs, the default, it would before. */
export async function openSyncedLmdb(lab: Lab, undo: Undo): Promise<RootDatabase<Buffer, string>> {
  lab.note(`starting lmdb (${lab.keys.toLocaleString('en')} records)`);
  const value = valueOf(VALUE_BYTES);
  const database = open<Buffer, string>({
    path: join(diskDirectory(undo), 'lmdb'),
    encoding: 'binary',
    compression: false,
    overlappingSync: false,
    mapSize: 4 * lab.keys * (VALUE_BYTES + 200) + 2 ** 28,
  });
  undo(() => database.close());
  await inParts(lab.keys, lab.signal, (part) =>
    database.transaction(() => {
      for (const i of part) void database.put(keyOf(i), value);
    }),
  );
  return database;
}
