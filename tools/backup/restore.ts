/**
 * Puts a backup into a cluster, of any size and number of shards: each entry by its key, with its namespace, flags,
 * codec and expiry. The order is: who takes which tenant, the whole backup is checked, and only then the first entry is
 * written. Each chunk is checked again as it is read for being written.
 *
 * What was written stays when it fails; it can be done again, since every entry is put, or (`keep`) is there already.
 * An entry that the cluster refuses is told, and the others are written.
 */
import { join } from 'node:path';
import { FarkvError } from '../../core/errors.js';
import { EntryWriter, isOfEntry } from '../transfer/entry-writer.js';
import type { TransferClient } from '../transfer/transfer-client.js';
import { checkBackup } from './check.js';
import { damageText, readChunks, type Damage } from './chunk-reader.js';
import { tenantName, type Manifest } from './manifest.js';

export type Target = Pick<TransferClient, 'namespace' | 'origin'>;

export interface RestoreEvents {
  readonly damage: (damage: Damage) => void;
  readonly checked: (bytes: number) => void;
  readonly written: (bytes: number, entries: number) => void;
  readonly refused: (key: Buffer, error: FarkvError) => void;
}

export interface Restored {
  readonly written: number;
  readonly kept: number;
  readonly expired: number;
}

/** The client of each tenant of the manifest. Throws ERR_CONFIG where there is none. */
export function targetsOf(manifest: Manifest, clients: readonly Target[]): Target[] {
  return manifest.tenants.map(({ name }) => {
    const found = clients.find((client) => client.origin().tenant === name); // mutation: backup/tenant-of-another
    if (found !== undefined) return found;
    const opened = clients.map((client) => tenantName(client.origin().tenant)).join(', ');
    throw new FarkvError(
      'ERR_CONFIG',
      `the backup has ${tenantName(name)}, which none of the given tokens opens (they open ${opened}): the cluster needs that tenant, and --tenant-token-file its token; nothing was written`,
    );
  });
}

export async function restoreBackup(
  directory: string,
  manifest: Manifest,
  clients: readonly Target[],
  keep: boolean,
  events: RestoreEvents,
): Promise<Restored> {
  const targets = targetsOf(manifest, clients);
  let damages = 0;
  const damaged = (damage: Damage): void => {
    damages++;
    events.damage(damage);
  };
  await checkBackup(directory, manifest, damaged, events.checked);
  // mutation: backup/damaged-restored
  if (damages > 0)
    throw new FarkvError(
      'ERR_CORRUPT',
      `the backup in ${directory} is damaged (see above); nothing was written: restore another backup, or another copy of this one`,
    );
  const writers = targets.map((target) => new EntryWriter(target, keep));
  let bytes = 0;
  let entries = 0;
  try {
    for (const { name, tenant, shard } of manifest.files) {
      const writer = writers[tenant];
      if (writer === undefined) throw new FarkvError('ERR_CORRUPT', `${name} is of no tenant of the manifest`);
      for await (const part of readChunks(join(directory, name), { backup: manifest.id, tenant, shard })) {
        if (part.kind === 'damage') throw new FarkvError('ERR_CORRUPT', damageText(part));
        if (part.kind === 'end') continue;
        for (const entry of part.entries)
          await writer.put(entry, (error) => {
            if (!isOfEntry(error)) return false;
            events.refused(entry.key, error);
            return true;
          });
        bytes += part.bytes;
        entries += part.entries.length;
        events.written(bytes, entries);
      }
    }
  } finally {
    await Promise.allSettled(writers.map((writer) => writer.end()));
  }
  for (const writer of writers) await writer.end();
  const sum = (of: (writer: EntryWriter) => number): number => writers.reduce((n, writer) => n + of(writer), 0);
  return { written: sum((w) => w.written), kept: sum((w) => w.kept), expired: sum((w) => w.expired) };
}
