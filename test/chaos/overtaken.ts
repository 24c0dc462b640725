/**
 * What no look can rule out: a fault first cuts off or stops a server, the backup of a shard that it owns is promoted for
 * that, and is killed by the second half of the same fault before anybody was told. From the promotion on that copy was
 * the only one in sync, so two faults have hit a shard that has two copies.
 *
 * That is decided afterwards, by what the log of the killed process says: it had applied the promotion, so it owned the
 * shard when it died. A promotion that is applied when the process has ended is none: then the copy of the owner before
 * was in sync at the kill, its process lives, and nothing may be lost.
 */
import { keptName } from './epochs.js';
import type { FaultLog, ServerFault, Span } from './fault-log.js';
import type { Look } from './promise.js';

/** What the log of one process says. */
export interface Led {
  /** keptName() of a shard that it had begun to own with its copy. */
  readonly name: string;
  /** When it was known to have ended. A later process of its server may own the shard in the same epoch. */
  readonly endedNs: number;
}

export interface Overtaken {
  readonly shard: number;
  /** In which the killed server owned it. What it held may be gone in every later epoch, and in this one not. */
  readonly epoch: number;
  readonly by: string;
  readonly look: Look;
  /** When the process was ended. */
  readonly atNs: number;
}

export function overtakenIn(log: FaultLog, led: readonly Led[]): Overtaken[] {
  return log.looks.flatMap((look) =>
    look.beyond ? [] : look.inSync.flatMap((_, shard) => overtaken(log, led, look, shard) ?? []),
  );
}

function overtaken(log: FaultLog, led: readonly Led[], look: Look, shard: number): Overtaken | undefined {
  // Who was told of a promotion was not to kill.
  if (look.again === undefined) return undefined;
  const before = look.owners[shard];
  const seen = look.epochs[shard];
  if (before === undefined || seen === undefined) return undefined;
  if ((look.again.epochs[shard] ?? 0) > seen || !look.stopped.includes(before)) return undefined;
  const others = (look.inSync[shard] ?? []).filter((member) => member !== before);
  if (!others.every((member) => look.ended.includes(member))) return undefined;
  const epoch = seen + 1;
  for (const by of others) {
    const dead = endedBy(log, look, by);
    const name = keptName(shard, epoch, by);
    const hadIt = (one: Led, { fromNs, toNs }: Span): boolean =>
      one.name === name && one.endedNs >= fromNs && one.endedNs <= toNs;
    if (dead !== undefined && led.some((one) => hadIt(one, dead)) && wasParted(log, look, before, dead))
      return { shard, epoch, by, look, atNs: dead.fromNs };
  }
  return undefined;
}

function endedBy(log: FaultLog, { again, toNs }: Look, server: string): ServerFault | undefined {
  const isIt = (f: ServerFault): boolean => f.kind === 'dead' && f.server === server && f.fromNs >= (again?.atNs ?? 0);
  const dead = log.serverFaults.find(isIt);
  return dead !== undefined && dead.fromNs <= toNs ? dead : undefined;
}

/** By the first half of the fault, and until the kill. */
function wasParted(log: FaultLog, look: Look, owner: string, dead: ServerFault): boolean {
  const isFirstHalf = (f: Span): boolean => f.fromNs >= look.fromNs && f.fromNs < dead.fromNs && f.toNs >= dead.fromNs;
  return (
    log.serverFaults.some((f) => f.kind === 'stopped' && f.server === owner && isFirstHalf(f)) ||
    log.linkFaults.some((f) => f.from === owner && f.to === dead.server && isFirstHalf(f))
  );
}
