/** Reads a whole backup and compares it with its manifest: every CRC, every count, every sum. Writes nothing. */
import { join } from 'node:path';
import { readChunks, type Damage } from './chunk-reader.js';
import type { BackupFile, Manifest } from './manifest.js';

/** `onDamage` is called for each damage, `onRead` with the bytes of each chunk that is good. */
export async function checkBackup(
  directory: string,
  manifest: Manifest,
  onDamage: (damage: Damage) => void,
  onRead: (bytes: number) => void,
): Promise<void> {
  for (const file of manifest.files) {
    const { name, tenant, shard } = file;
    for await (const part of readChunks(join(directory, name), { backup: manifest.id, tenant, shard })) {
      if (part.kind === 'damage') onDamage(part);
      else if (part.kind === 'chunk') onRead(part.bytes);
      else for (const what of differences(file, part)) onDamage({ kind: 'damage', file: name, offset: 0, what });
    }
  }
}

function differences(file: BackupFile, found: Omit<BackupFile, 'name' | 'tenant' | 'shard'>): string[] {
  return (['entries', 'chunks', 'bytes', 'sha256'] as const)
    .filter((field) => file[field] !== found[field])
    .map((field) => `${field}: ${found[field]}, the manifest says ${file[field]}`);
}
