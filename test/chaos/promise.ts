/**
 * What a replicated tenant promises, and whether the faults of a run kept within it: a value is never lost while one
 * copy in sync stays, so no fault may end the processes of all of them. The nemesis looks at the leader's status before
 * it ends a process, and at the servers' maps right before; it writes both down, and ends only what they allow. The judge
 * reads the looks, not the code that made them. overtaken.ts has what no look can rule out.
 */
import type { ClusterStatus } from '../../server/status.js';
import { copied } from '../support/status.js';
import type { FaultLog, Span } from './fault-log.js';

/** A copy is removed no sooner after it was last heard: native/replication/copies.c waits for a second. */
export const PARTED_NS = 800e6;
const SLACK_NS = 100e6;

/** Right before processes are ended, by shard: what the maps of all servers say. */
export interface Again {
  readonly atNs: number;
  readonly epochs: readonly number[];
  readonly owners: readonly (string | undefined)[];
}

/** What was seen before processes were ended. The span begins before the status was asked for. */
export type Look = Span & {
  /** By shard: the servers whose copies were in sync. */
  readonly inSync: readonly (readonly string[])[];
  readonly owners: readonly (string | undefined)[];
  readonly epochs: readonly number[];
  /** Absent where that does not matter: the fault is beyond the promise. */
  readonly again?: Again | undefined;
  /** Whose processes end, all at once. */
  readonly ended: readonly string[];
  /** Who stands still or is cut off as part of the same fault. */
  readonly stopped: readonly string[];
  /** A fault of its own kind: it ends all copies of some shards, and says so. */
  readonly beyond: boolean;
};

/** A leader that stood still or was cut off may tell an old state: all must have the same term, and answer. */
export function isCurrent(status: ClusterStatus): boolean {
  return (
    status.leader === status.answeredBy &&
    status.members.every((m) => m.state === 'up' && m.node?.term === status.term && m.node.role !== 'candidate')
  );
}

/** All copies that there are to be are in sync, and every shard is served. */
export function isWhole(status: ClusterStatus): boolean {
  return isCurrent(status) && copied(status);
}

export function inSyncOf(status: ClusterStatus): string[][] {
  return status.shards.map(({ copies }) =>
    (copies?.copies ?? []).filter(({ state }) => state === 'in-sync').map(({ member }) => member),
  );
}

/** The shards of which no copy in sync is left when these servers end. */
export function lostWith({ inSync, ended }: Pick<Look, 'inSync' | 'ended'>): number[] {
  return inSync.flatMap((members, shard) => (members.every((one) => ended.includes(one)) ? [shard] : []));
}

/** Of a shard that has changed hands since it was looked at, only its owner is known to be in sync. */
export function inSyncAgain({ inSync, epochs }: Pick<Look, 'inSync' | 'epochs'>, again: Again): readonly string[][] {
  return inSync.map((members, shard) => {
    if ((again.epochs[shard] ?? 0) <= (epochs[shard] ?? 0)) return [...members];
    const owner = again.owners[shard];
    return owner === undefined ? [] : [owner];
  });
}

/** Why the faults of a run went further than what the values are promised to survive; empty: they did not. */
export function brokenPromises(log: FaultLog, replicas: number, sinceNs: number): string[] {
  const second = (ns: number): string => `${((ns - sinceNs) / 1e9).toFixed(3)} s`;
  const broken: string[] = [];
  for (const dead of log.serverFaults.filter((f) => f.kind === 'dead')) {
    const look = log.looks.findLast((l) => l.fromNs <= dead.fromNs && l.ended.includes(dead.server));
    if (look === undefined || look.toNs < dead.fromNs) {
      broken.push(`${dead.server} was ended at ${second(dead.fromNs)}, and nobody had looked at the copies`);
      continue;
    }
    if (look.beyond) continue;
    const lost = lostWith(look);
    if (lost.length > 0) broken.push(`at ${second(dead.fromNs)} all copies of shards ${lost.join(', ')} were ended`);
    const { again } = look;
    if (again === undefined || again.atNs > dead.fromNs || dead.fromNs - again.atNs > PARTED_NS)
      broken.push(`${dead.server} was ended at ${second(dead.fromNs)}, and nobody had looked again right before`);
    else {
      const last = lostWith({ inSync: inSyncAgain(look, again), ended: look.ended });
      if (last.length > 0)
        broken.push(`at ${second(dead.fromNs)} the copies of shards ${last.join(', ')} were ended that were left`);
    }
    const most = Math.max(...look.inSync.map((members) => members.filter((m) => look.ended.includes(m)).length));
    if (most >= replicas) broken.push(`at ${second(dead.fromNs)} ${most} copies of a shard were ended at once`);
    const isOwn = (fromNs: number, ...servers: readonly string[]): boolean =>
      dead.fromNs - fromNs < PARTED_NS + SLACK_NS && servers.every((s) => [...look.ended, ...look.stopped].includes(s));
    const others = [
      ...log.serverFaults.filter((f) => !look.ended.includes(f.server) && !isOwn(f.fromNs, f.server)),
      ...log.linkFaults.filter((f) => !isOwn(f.fromNs, f.from, f.to)),
    ];
    for (const other of others)
      if (other.fromNs < dead.fromNs && other.toNs > look.fromNs)
        broken.push(`${dead.server} was ended at ${second(dead.fromNs)} while another fault was under way`);
  }
  return broken;
}
