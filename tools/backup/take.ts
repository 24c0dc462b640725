/**
 * Takes a backup: the entries of every shard of some tenants, each shard into a file, several side by side; then the
 * manifest. Without the manifest it is no backup, so whatever ends this in the middle leaves nothing that could be
 * taken for one.
 *
 * Promise: a key that is present from the beginning to the end is in the backup, and each key with a value, flags and
 * an expiry that one write gave it and that it had meanwhile. Nothing is promised across keys.
 */
import { join } from 'node:path';
import { FarkvError } from '../../core/errors.js';
import { EVERY_NAMESPACE } from '../../native/native-client.js';
import { PACKAGE_VERSION } from '../../native/version.js';
import { Room } from '../transfer/room.js';
import { shardEntries } from '../transfer/shard-entries.js';
import type { TransferClient } from '../transfer/transfer-client.js';
import { ChunkWriter } from './chunk-writer.js';
import {
  fileName,
  newBackupId,
  newManifest,
  prepareDirectory,
  tenantName,
  writeManifest,
  type BackupFile,
  type Manifest,
} from './manifest.js';

/** Shards that are read side by side. */
const SIDE_BY_SIDE = 4;
/** Of large values that are held at once; one that is larger is held alone. */
const LARGE_BYTES = 64 << 20;

export interface Done {
  readonly share: number;
  readonly entries: number;
  readonly bytes: number;
}

/** One client for each tenant. */
export async function takeBackup(
  sources: readonly TransferClient[],
  directory: string,
  onDone: (done: Done) => void,
): Promise<Manifest> {
  const origins = sources.map((source) => source.origin());
  checkOrigins(origins);
  await prepareDirectory(directory);
  const startedAt = new Date().toISOString();
  const id = newBackupId();
  const room = new Room(LARGE_BYTES);
  const slices = origins.flatMap(({ shards: { first, count } }, tenant) =>
    Array.from({ length: count }, (_, i) => ({ tenant, shard: first + i })),
  );
  const files: BackupFile[] = [];
  const shares = new Map<unknown, number>();
  let entries = 0;
  let bytes = 0;

  const copy = async (slice: { readonly tenant: number; readonly shard: number }): Promise<void> => {
    const { tenant, shard } = slice;
    const source = sources[tenant];
    if (source === undefined) return;
    const writer = await ChunkWriter.create(join(directory, fileName(tenant, shard)), { backup: id, tenant, shard });
    try {
      for await (const part of shardEntries(source, shard, EVERY_NAMESPACE, room)) {
        await writer.add(part.entries);
        entries += part.entries.length;
        bytes += part.entries.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
        shares.set(slice, part.share);
        onDone({ share: [...shares.values()].reduce((sum, one) => sum + one, 0) / slices.length, entries, bytes });
      }
      files.push(await writer.finish());
    } catch (error) {
      await writer.close();
      throw error;
    }
  };

  const left = slices.values();
  let failed = false;
  const work = async (): Promise<void> => {
    for (const slice of left) {
      if (failed) return;
      try {
        await copy(slice);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: SIDE_BY_SIDE }, work));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;

  files.sort((a, b) => a.tenant - b.tenant || a.shard - b.shard);
  const { clusterId = '', hashSeed = '' } = origins[0] ?? {};
  const manifest = newManifest({
    id,
    version: PACKAGE_VERSION,
    clusterId,
    hashSeed,
    startedAt,
    endedAt: new Date().toISOString(),
    entries: files.reduce((sum, file) => sum + file.entries, 0),
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    tenants: origins.map(({ tenant, shards }, i) => ({
      ...(tenant === undefined ? {} : { name: tenant }),
      shards: shards.count,
      entries: files.reduce((sum, file) => sum + (file.tenant === i ? file.entries : 0), 0),
    })),
    files,
  });
  await writeManifest(directory, manifest);
  return manifest;
}

/** Each tenant once, all of one cluster. Throws ERR_CONFIG. */
function checkOrigins(origins: readonly ReturnType<TransferClient['origin']>[]): void {
  const seen = new Set<string | undefined>();
  for (const { tenant, clusterId } of origins) {
    if (clusterId !== origins[0]?.clusterId)
      throw new FarkvError('ERR_CONFIG', `two clusters were reached: ${origins[0]?.clusterId ?? ''} and ${clusterId}`);
    if (seen.has(tenant)) throw new FarkvError('ERR_CONFIG', `two of the tokens are of ${tenantName(tenant)}`);
    seen.add(tenant);
  }
}
