/**
 * When the processes of all servers were ended, so that only the disks had any values, and how often that was under
 * load: a change had been acknowledged right before.
 */
import type { FaultLog } from './fault-log.js';
import { wasMade, type Operation } from './operation.js';
import type { Recorded } from './recorded.js';
import { intersection, union } from './spans.js';

/** Clients call in bursts, each of which begins sooner after the one before. */
const SHORTLY_NS = 500e6;

/** The moments from which on nobody ran. */
export function allEnded(log: FaultLog): number[] {
  const dead = log.servers.map((server) =>
    union(log.serverFaults.filter((f) => f.kind === 'dead' && f.server === server)),
  );
  return (dead.length === 0 ? [] : dead.reduce(intersection)).map(({ fromNs }) => fromNs);
}

export function underLoad(moments: readonly number[], record: Recorded): number[] {
  const operations: Operation[] = [...record.keys.values()].flatMap((key) => key.operations);
  const answers = operations.filter(wasMade).map(({ end }) => end);
  return moments.filter((atNs) => answers.some((end) => end <= atNs && end > atNs - SHORTLY_NS));
}
