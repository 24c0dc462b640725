/**
 * How long changes waited when servers with copies were killed, as the clients of a run saw it. A change that was sent
 * after the kill cannot have been answered by who was killed, so the end of the first one that was answered is the end
 * of the wait, at the latest: clients with little to do make it look longer.
 */
import type { FaultLog } from './fault-log.js';
import { allEnded } from './all-ended.js';
import { wasMade, type Operation } from './operation.js';
import type { Recorded } from './recorded.js';

export interface Spread {
  readonly count: number;
  readonly p50Ms: number;
  readonly maxMs: number;
}

/** In milliseconds, one for each shard and kill. */
export interface Outages {
  /** Of shards whose owner was killed, alone or with all servers: from the kill to the first answer to a change that was sent after it. */
  readonly unanswered: readonly number[];
  /** Of shards of which a backup was killed: the longest change that was under way or begun within SOON_NS. */
  readonly paused: readonly number[];
  /** The longest change of the same shards in as long a time before the kill: what of that is this machine's. */
  readonly before: readonly number[];
}

const SOON_NS = 5e9;

export function outagesOf(record: Recorded, log: FaultLog): Outages {
  const changes = new Map<number, Operation[]>();
  for (const { shard, operations } of record.keys.values())
    changes.set(shard, [...(changes.get(shard) ?? []), ...operations.filter(wasMade)]);
  const unanswered: number[] = [];
  const paused: number[] = [];
  const before: number[] = [];
  const answered = (atNs: number, all: readonly Operation[]): void => {
    const first = Math.min(...all.filter((o) => o.call >= atNs).map((o) => o.end));
    if (first < atNs + 60e9) unanswered.push(first - atNs);
  };
  for (const atNs of allEnded(log)) for (const all of changes.values()) answered(atNs, all);
  for (const { fromNs, beyond, ended, stopped, inSync, owners } of log.looks) {
    // Only of one at a time: of two, nobody knows which of them a change waited for.
    if (beyond || ended.length !== 1 || stopped.length > 0) continue;
    const killed = log.serverFaults.find((f) => f.kind === 'dead' && f.server === ended[0] && f.fromNs >= fromNs);
    if (killed === undefined) continue;
    const atNs = killed.fromNs;
    for (const [shard, members] of inSync.entries()) {
      const all = changes.get(shard) ?? [];
      if (owners[shard] === ended[0]) {
        answered(atNs, all);
      } else if (members.includes(ended[0]!)) {
        push(paused, longest(all.filter((o) => o.end >= atNs && o.call <= atNs + SOON_NS)));
        push(before, longest(all.filter((o) => o.end >= atNs - SOON_NS && o.end < atNs)));
      }
    }
  }
  const ms = (times: readonly number[]): number[] => times.map((ns) => Math.round(ns / 1e6));
  return { unanswered: ms(unanswered), paused: ms(paused), before: ms(before) };
}

function push(to: number[], ns: number | undefined): void {
  if (ns !== undefined) to.push(ns);
}

function longest(changes: readonly Operation[]): number | undefined {
  return changes.length === 0 ? undefined : Math.max(...changes.map((o) => o.end - o.call));
}

export function spreadOf(ms: readonly number[]): Spread {
  const sorted = [...ms].sort((a, b) => a - b);
  return { count: ms.length, p50Ms: sorted[Math.floor(sorted.length / 2)] ?? 0, maxMs: sorted.at(-1) ?? 0 };
}
