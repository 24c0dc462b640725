/**
 * What says that a backup is whole: manifest.json, written last. It lists every file with its sum. Its own `sum` is the
 * CRC32C of the manifest without it, as JSON.stringify writes it.
 */
import { randomBytes } from 'node:crypto';
import { chmod, open, readdir, rename } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { FarkvError } from '../../core/errors.js';
import {
  hex128,
  hex256,
  list,
  literal,
  maybe,
  pattern,
  record,
  text,
  uint,
  type Check,
} from '../../core/protocol/check.js';
import { makeDirectory } from '../../net/private-directory.js';
import { fileReason, readRegular } from '../../net/regular-file.js';
import { syncDirectory } from '../../net/sync-directory.js';
import { SHARDS_MAX } from '../../core/metadata/check-state.js';
import { TENANTS_MAX } from '../../core/metadata/tenants.js';
import { writing } from '../transfer/write-failure.js';
import { crc32c } from './format.js';

export const MANIFEST = 'manifest.json';
const FORMAT = 'farkv-backup-1';
const ANY_FORMAT = /^farkv-backup-\d{1,9}$/;
const MANIFEST_BYTES_MAX = 16 << 20;

export interface BackupFile {
  readonly name: string;
  /** Its place in `tenants`. */
  readonly tenant: number;
  readonly shard: number;
  readonly entries: number;
  readonly chunks: number;
  readonly bytes: number;
  readonly sha256: string;
}

export interface BackupTenant {
  /** undefined: the default tenant. */
  readonly name?: string;
  readonly shards: number;
  readonly entries: number;
}

export interface Manifest {
  readonly format: typeof FORMAT;
  readonly id: string;
  readonly version: string;
  readonly clusterId: string;
  readonly hashSeed: string;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly endedAt: string;
  readonly entries: number;
  readonly bytes: number;
  readonly tenants: readonly BackupTenant[];
  readonly files: readonly BackupFile[];
}

const checkFile = record<BackupFile>({
  name: pattern(/^\d{1,2}-\d{4}\.chunks$/, 'the name of a file of a backup'),
  tenant: uint(TENANTS_MAX),
  shard: uint(SHARDS_MAX - 1),
  entries: uint(),
  chunks: uint(),
  bytes: uint(),
  sha256: hex256,
});
const time = pattern(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, 'a time');
const checkManifest: Check<Manifest> = record<Manifest>({
  format: literal(FORMAT),
  id: hex128,
  version: text(100),
  clusterId: text(100),
  hashSeed: hex128,
  startedAt: time,
  endedAt: time,
  entries: uint(),
  bytes: uint(),
  tenants: list(
    record<BackupTenant>({ name: maybe(text(200)), shards: uint(SHARDS_MAX), entries: uint() }),
    TENANTS_MAX + 1,
  ),
  files: list(checkFile, SHARDS_MAX),
});

export const fileName = (tenant: number, shard: number): string => `${tenant}-${String(shard).padStart(4, '0')}.chunks`;
export const tenantName = (name: string | undefined): string =>
  name === undefined ? 'the default tenant' : `tenant ${name}`;
export const newBackupId = (): string => randomBytes(16).toString('hex');
export const newManifest = (parts: Omit<Manifest, 'format'>): Manifest => ({ format: FORMAT, ...parts });

const sumOf = (manifest: unknown): number => crc32c(Buffer.from(JSON.stringify(manifest)));

/** Makes the directory, for its owner alone. Throws ERR_CONFIG when there is something in it. */
export async function prepareDirectory(directory: string): Promise<void> {
  try {
    makeDirectory(resolve(directory));
    const found = await readdir(directory);
    if (found.length > 0)
      throw new FarkvError(
        'ERR_CONFIG',
        `${directory} is not empty (${found[0] ?? ''}${found.length > 1 ? ', ...' : ''}): a backup goes to a new directory`,
      );
    await chmod(directory, 0o700); // mutation: backup/directory-mode
  } catch (cause) {
    throw cause instanceof FarkvError ? cause : cannot('written', directory, cause);
  }
}

/** The backup is whole from here on: its files must be on the disk before. */
export async function writeManifest(directory: string, manifest: Manifest): Promise<void> {
  const temporary = join(directory, `${MANIFEST}.new`);
  await writing(temporary, async () => {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(`${JSON.stringify({ ...manifest, sum: sumOf(manifest) }, undefined, 1)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
  });
  syncDirectory(directory);
  await rename(temporary, join(directory, MANIFEST));
  syncDirectory(directory);
}

/**
 * Throws ERR_CONFIG when there is no such directory, ERR_CORRUPT, with what is missing, when no whole backup is in it, and
 * ERR_UNSUPPORTED when another version of farkv made it.
 */
export async function readManifest(directory: string): Promise<Manifest> {
  let bytes: Buffer;
  try {
    bytes = readRegular(join(directory, MANIFEST), MANIFEST_BYTES_MAX);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') throw await unfinished(directory);
    throw cannot('read', join(directory, MANIFEST), cause);
  }
  try {
    const { sum, ...rest } = JSON.parse(bytes.toString()) as Record<string, unknown>;
    const { format } = rest;
    if (format !== FORMAT && typeof format === 'string' && ANY_FORMAT.test(format))
      throw new FarkvError(
        'ERR_UNSUPPORTED',
        `${join(directory, MANIFEST)} has format ${format}, of another version of farkv: use that one; this one reads ${FORMAT}`,
      );
    if (sum !== sumOf(rest)) throw new Error('its sum is wrong'); // mutation: backup/manifest
    const manifest = checkManifest(rest, 'the manifest');
    const shards = manifest.tenants.reduce((count, tenant) => count + tenant.shards, 0);
    if (manifest.files.length !== shards)
      throw new Error(`it lists ${manifest.files.length} files of ${shards} shards`);
    return manifest;
  } catch (cause) {
    if (cause instanceof FarkvError && cause.code === 'ERR_UNSUPPORTED') throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new FarkvError('ERR_CORRUPT', `${join(directory, MANIFEST)} is damaged: ${why}`, { cause });
  }
}

async function unfinished(directory: string): Promise<FarkvError> {
  let files: string[];
  try {
    files = await readdir(directory);
  } catch (cause) {
    return cannot('read', directory, cause);
  }
  const chunks = files.filter((name) => name.endsWith('.chunks'));
  if (chunks.length === 0) return new FarkvError('ERR_CONFIG', `${directory} is not a backup: it has no ${MANIFEST}`);
  return new FarkvError(
    'ERR_CORRUPT',
    `the backup in ${directory} was not finished: ${MANIFEST}, which is written last, is missing; there are ${chunks.length} of its files. Make the backup again`,
  );
}

function cannot(what: string, path: string, cause: unknown): FarkvError {
  return new FarkvError('ERR_CONFIG', `${path} cannot be ${what}: ${fileReason(cause)}`, { cause });
}
