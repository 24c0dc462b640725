/**
 * When which shard changed hands, and what that means for the values in it.
 *
 * The metadata gives a shard a new epoch with every new owner and every restart of the owner. What was in the memory of
 * the epoch before is lost then, where that is permitted (permitted-losses.ts). The new owner may have come to serve so
 * long before this process was told of the epoch, but no longer before: TOLD_LATE_NS. And a version tells the epoch in
 * which it was given: the first answer with a version of the new epoch, or of a later one, came after the loss, because
 * an owner serves only when nobody can read the old memory any more. Between these two lies the loss. An owner to which
 * the shard came with a copy says so: nothing may be lost then.
 */
import { ControlConnection } from '../../client/control-connection.js';
import type { TrustSource } from '../../net/tls.js';
import type { ClientMap } from '../../core/protocol/index.js';
import type { Loss, Operation } from './operation.js';

/**
 * From being served by the new owner to this process's knowledge of the epoch, over the fastest of the connections to
 * all servers.
 */
const TOLD_LATE_NS = 3e9;
/** native/table/layout.h: the low bits of a version count in the epoch. */
const SEQUENCE_BITS = 44n;

/** What an owner logs (server/shards/shard-events.ts). */
const LEADS = /shard (\d+) comes to this server in epoch (\d+), with the copy that is here/gu;

/** What a shard is called that came to this owner in this epoch. */
export const keptName = (shard: number, epoch: number, owner: string | undefined): string =>
  `${shard}/${epoch} ${owner ?? 'nobody'}`;

/** Names of those that this server began to own with its copy, while its process ran. */
export function ledIn(server: string, log: string): string[] {
  return [...log.matchAll(LEADS)].map(([, shard, epoch]) => keptName(Number(shard), Number(epoch), server));
}

export interface Epoch {
  readonly shard: number;
  readonly epoch: number;
  readonly owner: string | undefined;
  /**
   * When this process read of it; it may have lain there since `sinceNs`, when its event loop is known to have turned
   * before.
   */
  readonly toldNs: number;
  readonly sinceNs: number;
}

/** On a busy machine this process may not run for a while. Two turns back: timers fire before sockets are read. */
const TICK_MS = 20;
const TICKS = 3;

/** Follows the maps of all servers. */
export class EpochWatch {
  readonly #connections: ControlConnection[];
  readonly #epochs = new Map<number, Map<number, Epoch>>();
  readonly #mapEpochs = new Set<number>();
  readonly #ticksNs: number[] = [];
  #ticking: NodeJS.Timeout | undefined;

  constructor(servers: readonly string[], trust?: TrustSource) {
    this.#connections = servers.map(
      (server) =>
        new ControlConnection({
          servers: [server],
          token: undefined,
          tls: trust,
          handlers: {
            cluster: () => undefined,
            map: (map) => this.#learn(map),
            ticket: () => undefined,
            connected: () => undefined,
            failed: () => undefined,
            roundFailed: () => undefined,
          },
        }),
    );
  }

  start(): void {
    this.#tick();
    this.#ticking = setInterval(() => this.#tick(), TICK_MS);
    for (const one of this.#connections) one.start();
  }

  close(): void {
    clearInterval(this.#ticking);
    for (const one of this.#connections) one.close();
  }

  /** Versions of the metadata that were seen: how often it changed, at least. */
  get maps(): number {
    return this.#mapEpochs.size;
  }

  /** In order of the epochs. */
  of(shard: number): readonly Epoch[] {
    return [...(this.#epochs.get(shard)?.values() ?? [])].sort((a, b) => a.epoch - b.epoch);
  }

  get all(): readonly Epoch[] {
    return [...this.#epochs.keys()].flatMap((shard) => this.of(shard));
  }

  #tick(): void {
    this.#ticksNs.push(Number(process.hrtime.bigint()));
    if (this.#ticksNs.length > TICKS) this.#ticksNs.shift();
  }

  #learn(map: ClientMap): void {
    const toldNs = Number(process.hrtime.bigint());
    const sinceNs = this.#ticksNs[0] ?? toldNs;
    this.#mapEpochs.add(map.mapEpoch);
    for (const { shard, epoch, owner } of map.shards) {
      const known = this.#epochs.get(shard) ?? new Map<number, Epoch>();
      this.#epochs.set(shard, known);
      if (!known.has(epoch)) known.set(epoch, { shard, epoch, owner, toldNs, sinceNs });
    }
  }
}

/** A new epoch of a shard that began without the values of the one before. */
export interface Emptied {
  readonly before: Epoch;
  readonly next: Epoch;
  /** When its values went, if there were any. */
  readonly loss: Loss;
}

/** For one shard: the operations on all of its keys, the epochs that were seen, and ledIn() all logs. */
export function emptiedIn(
  epochs: readonly Epoch[],
  operations: Iterable<Operation>,
  kept: ReadonlySet<string>,
): Emptied[] {
  const ends = new Map<number, number>();
  for (const o of operations) {
    const version =
      o.kind === 'get' ? o.version : o.kind === 'swap' && typeof o.outcome === 'object' ? o.outcome.version : undefined;
    if (version === undefined || version === 0n) continue;
    const epoch = Number(version >> SEQUENCE_BITS);
    ends.set(epoch, Math.min(o.end, ends.get(epoch) ?? Infinity));
  }
  const emptied: Emptied[] = [];
  let before = epochs[0];
  for (const next of epochs.slice(1)) {
    if (before === undefined) break;
    // Epochs in between were over before anybody was told: for all that is known the shard was lost with the first of
    // them.
    for (let e = before.epoch + 1; e <= next.epoch; e++) {
      if (kept.has(keptName(next.shard, e, next.owner))) continue;
      const end = Math.min(Infinity, ...[...ends].flatMap(([of, at]) => (of >= e ? [at] : [])));
      emptied.push({
        before,
        next: { ...next, epoch: e },
        loss: {
          kind: 'loss',
          call: Math.min(next.sinceNs - TOLD_LATE_NS, end),
          end,
          by: `epoch ${e}, ${next.owner ?? 'nobody'}`,
        },
      });
    }
    before = next;
  }
  return emptied;
}
