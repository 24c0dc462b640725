/**
 * Durable shards of a server: where their logs and snapshots lie in its data directory, which copies are wanted of what is
 * there, and what the start found (docs/durable-cluster.md).
 *
 *   values/   THREAD-NUMBER        logs, one row of files for each data-plane thread
 *             snapshot-SHARD-COPY  snapshots
 *             early                what was acknowledged may not be there (early-mark.ts)
 *   values.damaged/   what was put aside (values-aside.ts)
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { FarkvError } from '../core/errors.js';
import { tableMemory } from '../core/metadata/placement.js';
import { fromHex64, toHex64 } from '../core/hex64.js';
import type { RecoveredCopy } from '../core/metadata/commands.js';
import { isWhole, policyOf } from '../core/metadata/copy-sets.js';
import type { MetadataState } from '../core/metadata/state.js';
import type { Found } from '../core/shards/index.js';
import type { DataPlane, DataPlaneLog, RecoveredOnDisk } from '../native/data-plane.js';
import { formatSize } from '../core/size.js';
import type { DataDirectory } from './data-directory.js';
import { EarlyMark } from './early-mark.js';
import { codeOf, describeError, type Log } from './log.js';
import type { Outcome } from './metadata/proposer.js';
import { makeDirectory } from '../net/private-directory.js';
import { errnoText } from '../net/regular-file.js';
import { ValuesWatch } from './values-watch.js';

const PROGRESS_MS = 250;
const CURRENT_MS = 5000;
/** The event of lines that say how far a start has read values: `bytes` of `all`, several times a second. */
export const RECOVERING = 'recovering';

export interface ValuesOptions {
  readonly id: string;
  /** The least that a shard needs. */
  readonly shardMemoryMin: number;
  /** 0: a change is answered when it is on the disk. */
  readonly syncMs: number;
}

/**
 * What is on the disk and not wanted is removed, so the metadata must be what it was when the last run had ended, or
 * later: an entry that is applied now comes behind all of those.
 */
export async function whenCurrent(proposeNothing: (ms: number) => Promise<Outcome>, log: Log): Promise<void> {
  for (;;) {
    try {
      if ((await proposeNothing(CURRENT_MS)) !== 'unknown') return;
    } catch (error) {
      if (!(error instanceof FarkvError && error.code === 'ERR_TIMEOUT')) throw error;
      log.info(`waiting for the metadata, before values are recovered: ${describeError(error)}`, {
        event: 'metadata-awaited',
        ...codeOf(error),
      });
    }
  }
}

/** What durable shards need of the data plane. `threads`: at least so many, each of which has a log there. */
export interface Values {
  readonly log: DataPlaneLog;
  readonly threads: number;
  readonly watch: ValuesWatch;
  readonly early: EarlyMark;
}

/** Undefined: no shard of the cluster is durable. The state must be one that was current when this server had started. */
export function valuesOf(
  state: MetadataState,
  directory: DataDirectory,
  { id, shardMemoryMin, syncMs }: ValuesOptions,
): Values | undefined {
  if (!isDurable(state)) {
    if (syncMs === 0) return undefined;
    throw new FarkvError(
      'ERR_CONFIG',
      '--sync: no values of this cluster are on disks (its first start sets --level durable): leave it out',
    );
  }
  if (directory.ephemeral)
    throw new FarkvError(
      'ERR_CONFIG',
      '--data-dir: this cluster keeps values on disks (level durable), and a temporary directory is lost with the process: name a directory on a disk',
    );
  const path = join(directory.path, 'values');
  makeDirectory(path);
  const recovers = state.copySets.flatMap(({ copies }, shard) =>
    copies.flatMap((c) =>
      c.member === id && c.id !== undefined && policyOf(state, shard).level === 'durable'
        ? [{ shard, copy: fromHex64(c.id) }]
        : [],
    ),
  );
  return {
    threads: threadsOf(readdirSync(path)),
    watch: new ValuesWatch(path, undefined, syncMs),
    early: new EarlyMark(path),
    log: {
      directory: path,
      cluster: Buffer.from(state.clusterId, 'hex'),
      instance: fromHex64(directory.instance),
      shardMemoryBytes: Math.max(shardMemoryMin, tableMemory(state)),
      recovers,
      syncMs,
    },
  };
}

export function isDurable({ policies }: Pick<MetadataState, 'policies'>): boolean {
  return policies.some(({ level }) => level === 'durable');
}

function threadsOf(names: readonly string[]): number {
  const threads = names.flatMap((name) => /^(\d{1,2})-\d+$/.exec(name)?.[1] ?? []);
  return Math.max(0, ...threads.map((thread) => Number(thread) + 1));
}

/** Starts the data plane with what is on the disk, and says how far that is. Rejects with what `startsWith` takes. */
export async function recover(
  plane: Pick<DataPlane, 'recover' | 'progress'>,
  { log: { directory }, watch }: Pick<Values, 'log' | 'watch'>,
  log: Log,
): Promise<{ readonly addresses: ReturnType<DataPlane['start']>; readonly found: readonly Found[] }> {
  const timer = setInterval(() => {
    const { bytes, all } = plane.progress();
    if (all > 0)
      log.progress(
        `recovering values: ${Math.floor((100 * Math.min(bytes, all)) / all)} % of ${formatSize(all)} read`,
        { event: RECOVERING, bytes, all },
      );
  }, PROGRESS_MS);
  try {
    const { addresses, copies, torn } = await watch.recovers(plane, plane.recover());
    for (const text of torn)
      log.warn(
        `${join(directory, text)}. That is how a log ends when its server is killed, or loses its power, while it writes: nothing that was answered is lost, unless the disk has lost what it had confirmed, or the server answered before its disk (--sync)`,
        { event: 'log-torn', directory },
      );
    report(copies, directory, plane.progress().bytes, log);
    return { addresses, found: copies.map(foundOf) };
  } finally {
    clearInterval(timer);
  }
}

function foundOf({ shard, copy, worker, whole, epoch, prepared }: RecoveredOnDisk): Found {
  return { shard, copy: toHex64(copy), worker, whole, epoch, lsn: prepared };
}

function report(copies: readonly RecoveredOnDisk[], directory: string, bytes: number, log: Log): void {
  const whole = copies.filter((c) => c.whole).length;
  if (copies.length > 0)
    log.info(`recovered ${whole} of ${copies.length} copies from ${directory}, ${formatSize(bytes)} read`, {
      event: 'recovered',
      copies: copies.length,
      whole,
      bytes,
    });
  for (const { shard, why, whole: isWhole } of copies)
    if (!isWhole)
      log.error(
        `shard ${shard}: the copy in ${directory} cannot be used: ${why}. It is made anew of another server's; where there is none, the shard waits for an operator: start this server again when the disk can be read, or give the values up with farkv shard reset ${shard} --accept-loss`,
        { event: 'copy-unusable', shard },
      );
}

/** What the metadata is told with the join. `early`: they may lack what an earlier run has acknowledged. */
export function toldOf(found: readonly Found[], early: boolean): readonly RecoveredCopy[] {
  const mark = early ? ({ early: true } as const) : {};
  return found
    .filter(({ whole }) => whole)
    .map(({ shard, copy, worker, epoch, lsn }) => ({ shard, copy, worker, epoch, lsn, ...mark }));
}

/** Whether every copy of this server that the metadata takes for whole was found, and could be read. */
export function isAllFound({ copySets }: MetadataState, id: string, found: readonly Found[]): boolean {
  const read = new Set(found.flatMap((f) => (f.whole ? [`${f.shard}/${f.copy}`] : [])));
  return copySets.every(({ copies }, shard) =>
    copies.every((c) => c.member !== id || !isWhole(c) || read.has(`${shard}/${c.id ?? ''}`)),
  );
}

/** An operation on a log failed: nothing is acknowledged any more that would have to be there. */
export function logFailure(directory: string, operation: string, file: string, errno: number): FarkvError {
  return new FarkvError(
    'ERR_DATA_DIR',
    `${join(directory, file)}: ${operation} failed: ${errnoText(errno)}. What this server has not acknowledged may be lost (with --sync the last that it acknowledged, too), so it ends: look at the disk, then start it again`,
  );
}
