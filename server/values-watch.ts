/**
 * How a server's durable values are doing, for `farkv status`: how far a start has read them, and how old snapshots are.
 * What its logs have is counted by the data plane (LogStats).
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { memberId, MEMBERS_MAX } from '../core/metadata/check-state.js';
import { list, literal, maybe, record, uint } from '../core/protocol/check.js';
import type { DataPlane } from '../native/data-plane.js';

const SNAPSHOT = /^snapshot-\d+-[0-9a-f]+$/;

/** Where a damaged log is put: beside values/, so on the same file system. */
export const asideOf = (directory: string): string => `${directory}.damaged`;

export interface ValuesStatus {
  /**
   * While a start reads logs and snapshots: bytes of all that will be read, which falls where less was written. No shard
   * is served yet.
   */
  readonly recovering?: { readonly bytes: number; readonly all: number };
  /** A damaged log is put aside when these servers are there, which have what was in it. Absent: nobody is waited for. */
  readonly waitsFor?: readonly string[];
  /** What an earlier start found damaged is beside them (values-aside.ts). Absent: nothing is. */
  readonly aside?: true;
  /** Copies that have one; others are in the log alone. Absent: the directory cannot be read. */
  readonly snapshots?: number;
  /** Age of the oldest of them. */
  readonly oldestSnapshotMs?: number;
  /** Changes are on the disk about so long after they are answered. Absent: before. */
  readonly syncMs?: number;
}

export const checkValuesStatus = record<ValuesStatus>({
  recovering: maybe(record<{ bytes: number; all: number }>({ bytes: uint(), all: uint() })),
  waitsFor: maybe(list(memberId, MEMBERS_MAX)),
  aside: maybe(literal(true)),
  snapshots: maybe(uint()),
  oldestSnapshotMs: maybe(uint()),
  syncMs: maybe(uint()),
});

export class ValuesWatch {
  readonly #directory: string;
  readonly #syncMs: number;
  readonly #nowMs: () => number;
  #recovering: Pick<DataPlane, 'progress'> | undefined;
  #waitsFor: readonly string[] = [];

  constructor(directory: string, nowMs: () => number = () => Date.now(), syncMs = 0) {
    this.#directory = directory;
    this.#syncMs = syncMs;
    this.#nowMs = nowMs;
  }

  /** Until the promise is settled. */
  async recovers<T>(plane: Pick<DataPlane, 'progress'>, promise: Promise<T>): Promise<T> {
    this.#recovering = plane;
    try {
      return await promise;
    } finally {
      this.#recovering = undefined;
    }
  }

  /** Empty: nobody is waited for any more. */
  waitsFor(servers: readonly string[]): void {
    this.#waitsFor = servers;
  }

  /** As in the status, without a look at the disk. */
  get recovering(): ValuesStatus['recovering'] {
    const progress = this.#recovering?.progress();
    return progress === undefined || progress.all === 0 ? undefined : progress;
  }

  async status(): Promise<ValuesStatus> {
    const { recovering } = this;
    const made = await this.#snapshotsMs();
    const isAside = await stat(asideOf(this.#directory)).then(
      () => true,
      () => false,
    );
    return {
      ...(recovering === undefined ? {} : { recovering }),
      ...(this.#waitsFor.length === 0 ? {} : { waitsFor: this.#waitsFor }),
      ...(isAside ? { aside: true } : {}),
      ...(this.#syncMs === 0 ? {} : { syncMs: this.#syncMs }),
      ...(made === undefined ? {} : { snapshots: made.length }),
      ...(made === undefined || made.length === 0
        ? {}
        : { oldestSnapshotMs: Math.max(0, Math.round(this.#nowMs() - Math.min(...made))) }),
    };
  }
  /** When they were made; undefined: the directory cannot be read. */
  async #snapshotsMs(): Promise<number[] | undefined> {
    const names = await readdir(this.#directory).catch(() => undefined);
    if (names === undefined) return undefined;
    const made = await Promise.all(
      names
        .filter((name) => SNAPSHOT.test(name))
        // One may be removed meanwhile, since its copy is gone.
        .map((name) => stat(join(this.#directory, name)).catch(() => undefined)),
    );
    return made.flatMap((one) => (one === undefined ? [] : [one.mtimeMs]));
  }
}
