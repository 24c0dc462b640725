/**
 * The verdict on everything that the clients of a run were told: what each violates, of which key, written by whom,
 * seen when, and which faults were under way. Not for: making a run (run.ts), searching one key's history
 * (linearizability.ts, search.ts).
 */
import { setImmediate } from 'node:timers/promises';
import { resolveDeletes } from './deletes.js';
import { emptiedIn, type Emptied, type Epoch } from './epochs.js';
import { checkExpiry } from './expiry.js';
import type { FaultLog } from './fault-log.js';
import { classOf } from './keys.js';
import { checkKey } from './linearizability.js';
import { describe, type Loss, type Operation } from './operation.js';
import { PermittedLosses } from './permitted-losses.js';
import { overtakenIn, type Led } from './overtaken.js';
import type { Recorded } from './recorded.js';
import { brokenPromises, lostWith } from './promise.js';
import { checkScans } from './scans.js';
import { checkTail } from './tails.js';

export interface Evidence {
  readonly record: Recorded;
  /** Of a shard, in their order. */
  readonly epochsOf: (shard: number) => readonly Epoch[];
  /** ledIn() all logs. */
  readonly kept: ReadonlySet<string>;
  /** ledIn() the log of each process. */
  readonly led: readonly Led[];
  readonly faults: FaultLog;
  readonly ownerLeaseMs: number;
  readonly beganNs: number;
  /** Of shards with copies; undefined: of a cache. */
  readonly replicas?: number | undefined;
  /** The copies are on disks too: nothing excuses a loss. */
  readonly durable?: boolean | undefined;
}

export interface Verdicts {
  readonly configurations: number;
  /** Reads of a recorded history that were replaced by an older value, all of which must be refused. */
  readonly seededStaleReads: number;
  /** New epochs without the values of the one before, for a cause that permits it. */
  readonly permittedLosses: number;
  readonly violations: readonly string[];
}

const OF_EACH = 3;

interface ShardLosses {
  readonly permitted: readonly Loss[];
  readonly forbidden: readonly Emptied[];
}

/** Lets the event loop turn between keys: whoever waits for this may be told to stop. */
export async function judge(evidence: Evidence): Promise<Verdicts> {
  const { record, faults, beganNs } = evidence;
  const violations: string[] = [];
  const say = (what: string, fromNs: number, toNs: number): void => {
    const under = faults.underWay(fromNs, Math.min(toNs, fromNs + 60e9), beganNs);
    violations.push(
      `at ${((fromNs - beganNs) / 1e9).toFixed(3)} s: ${what}\n  faults under way or shortly before: ${under.length === 0 ? 'none' : under.join('; ')}`,
    );
  };
  for (const { by, what, call, end } of someOfEach(record.wrong)) say(`${by}: ${what}`, call, end);
  if (evidence.replicas !== undefined && evidence.durable !== true)
    violations.push(
      ...brokenPromises(faults, evidence.replicas, beganNs).map((why) => `the run proves nothing: ${why}`),
    );
  const losses = lossesOfShards(evidence);
  const lossesOf = (shard: number): Loss[] => {
    const { permitted = [], forbidden = [] } = losses.get(shard) ?? {};
    return [...permitted, ...forbidden.map(({ loss }) => loss)];
  };
  resolveDeletes(record, lossesOf, say);
  let configurations = 0;
  let seededStaleReads = 0;
  const lostWith = new Map<Emptied, string[]>();
  const lose = (emptied: Emptied, what: string): void =>
    void lostWith.set(emptied, [...(lostWith.get(emptied) ?? []), what]);
  for (const [key, { shard, operations }] of record.keys) {
    if (operations.length === 0) continue;
    await setImmediate();
    const { permitted, forbidden } = losses.get(shard) ?? { permitted: [], forbidden: [] };
    if (classOf(key) === 't') {
      for (const { operation, why } of checkExpiry(operations, permitted)) {
        const guilty =
          operation.kind === 'get' && operation.value === undefined
            ? forbidden.findLast(({ loss }) => loss.call <= operation.end)
            : undefined;
        if (guilty !== undefined) lose(guilty, `${key}: ${why}, ${describe(operation, beganNs)}`);
        else
          say(
            `${key} of shard ${shard}, whose values expire: ${why}\n  ${describe(operation, beganNs)}`,
            operation.call,
            operation.end,
          );
      }
      continue;
    }
    const history = [...operations, ...within(permitted, operations)];
    const verdict = checkKey(history, undefined, beganNs);
    if (verdict.linearizable) {
      configurations += verdict.configurations;
      const stale = withStaleRead(history);
      if (stale === undefined) continue;
      seededStaleReads++;
      if (checkKey(stale).linearizable)
        violations.push(`${key}: a stale read that was put into its history is not refused`);
      continue;
    }
    // What only a loss explains that nothing permits is told with that epoch, once for all keys of the shard.
    const suspects = within(
      forbidden.map(({ loss }) => loss),
      operations,
    );
    const explained = suspects.length > 0 && checkKey([...history, ...suspects]).linearizable;
    const guilty = explained
      ? (forbidden.find(({ loss }) => checkKey([...history, loss]).linearizable) ?? forbidden[0])
      : undefined;
    if (guilty !== undefined) lose(guilty, `${key}: ${verdict.why.split('\n').slice(0, 3).join('\n    ')}`);
    else {
      const { fromNs, toNs } = verdict.undecided
        ? { fromNs: beganNs, toNs: beganNs }
        : (verdict.at ?? { fromNs: operations[0]!.call, toNs: operations[0]!.end });
      const epochs = evidence
        .epochsOf(shard)
        .map((e) => `${e.epoch} ${e.owner ?? 'nobody'} at ${((e.toldNs - beganNs) / 1e9).toFixed(3)} s`)
        .join(', ');
      say(
        `${key} of shard ${shard} is not linearizable${verdict.undecided ? ' (undecided)' : ''}: ${verdict.why}\n  epochs of the shard: ${epochs}`,
        fromNs,
        toNs,
      );
    }
  }
  for (const [key, { shard, operations }] of record.tails) {
    await setImmediate();
    const { permitted, forbidden } = losses.get(shard) ?? { permitted: [], forbidden: [] };
    const first = Math.min(...operations.map(({ call }) => call));
    const lost = [...permitted, ...forbidden.map(({ loss }) => loss)].filter(({ end }) => end >= first);
    for (const { at, why } of checkTail(operations, lost).slice(0, OF_EACH))
      say(`${key} of shard ${shard}, which grows: ${why} (${at.by})`, at.call, at.end);
  }
  for (const emptied of [...losses.values()].flatMap(({ forbidden }) => forbidden)) {
    const keys = lostWith.get(emptied) ?? [];
    const seen =
      keys.length === 0
        ? 'no key shows it'
        : `values are lost, ${keys.length} times:\n    ${keys.slice(0, 3).join('\n    ')}`;
    say(`${nameOf(emptied)}; ${seen}`, emptied.next.toldNs, emptied.next.toldNs);
  }
  checkScans(record, lossesOf, say);
  return {
    configurations,
    seededStaleReads,
    permittedLosses: [...losses.values()].reduce((sum, { permitted }) => sum + permitted.length, 0),
    violations,
  };
}

/** Of what clients saw to be wrong the first of each kind in time, and how many more there were. */
function someOfEach(wrong: Recorded['wrong']): Recorded['wrong'] {
  const kinds = new Map<string, Recorded['wrong']>();
  for (const one of [...wrong].sort((a, b) => a.call - b.call)) {
    const kind = `${one.by.replace(/^\S+ (\S+).*$/u, '$1')} ${/had changed|nobody writes|^ERR_\w+/u.exec(one.what)?.[0] ?? ''}`;
    kinds.set(kind, [...(kinds.get(kind) ?? []), one]);
  }
  return [...kinds.values()].flatMap((all) =>
    all
      .slice(0, OF_EACH)
      .map((one, i) =>
        i < OF_EACH - 1 || all.length === OF_EACH
          ? one
          : { ...one, what: `${one.what}\n  and ${all.length - OF_EACH} more like that` },
      ),
  );
}

function nameOf({ before, next }: Emptied): string {
  return `shard ${next.shard} went from ${before.owner ?? 'nobody'} (epoch ${before.epoch}) to ${next.owner ?? 'nobody'} (epoch ${next.epoch}) without its values, though ${before.owner ?? 'its owner'} was neither ended nor out of hearing for its lease`;
}

/** A replicated shard may lose its values only while a fault lasts that ended all of its copies in sync. */
function lossesBeyond(emptied: readonly Emptied[], faults: FaultLog, shard: number): Loss[] {
  const beyond = faults.looks.filter((look) => look.beyond && lostWith(look).includes(shard));
  return emptied.flatMap(({ next, loss }) => {
    const look = beyond.find(({ fromNs, toNs }) => next.toldNs >= fromNs && next.sinceNs <= toNs);
    return look === undefined ? [] : [{ ...loss, call: Math.min(loss.end, Math.max(loss.call, look.fromNs)) }];
  });
}

/** And where its last copy in sync was overtaken by a fault: only what that one owned, and only while that lasts. */
function lossesOvertaken(emptied: readonly Emptied[], { faults, led }: Evidence, shard: number): Loss[] {
  const overtaken = overtakenIn(faults, led).filter((one) => one.shard === shard);
  return emptied.flatMap(({ next, loss }) => {
    const one = overtaken.find(
      ({ epoch, atNs, look }) => next.epoch > epoch && next.toldNs >= atNs && next.sinceNs <= look.toNs,
    );
    return one === undefined ? [] : [{ ...loss, call: Math.min(loss.end, Math.max(loss.call, one.atNs)) }];
  });
}

function lossesOfShards(evidence: Evidence): Map<number, ShardLosses> {
  const { record, epochsOf, kept, faults, ownerLeaseMs, replicas, durable = false } = evidence;
  const causes = new PermittedLosses(faults, ownerLeaseMs);
  const ofShard = new Map<number, Operation[][]>();
  for (const { shard } of record.tails.values()) ofShard.set(shard, ofShard.get(shard) ?? []);
  for (const { shard, operations } of record.keys.values())
    ofShard.set(shard, [...(ofShard.get(shard) ?? []), operations]);
  return new Map(
    [...ofShard].map(([shard, lists]) => {
      if (durable) return [shard, { forbidden: [], permitted: [] }];
      const emptied = emptiedIn(epochsOf(shard), lists.flat(), kept);
      if (replicas !== undefined) {
        const permitted = [...lossesBeyond(emptied, faults, shard), ...lossesOvertaken(emptied, evidence, shard)];
        return [shard, { forbidden: [], permitted }];
      }
      const forbidden = emptied.filter(({ before, next }) => causes.cause(before, next) === undefined);
      return [
        shard,
        { forbidden, permitted: emptied.filter((one) => !forbidden.includes(one)).map(({ loss }) => loss) },
      ];
    }),
  );
}

/** Those that can lie within the time of these operations. */
function within(losses: readonly Loss[], operations: readonly Operation[]): readonly Loss[] {
  let first = Infinity;
  let last = -Infinity;
  for (const { call, end } of operations) {
    first = Math.min(first, call);
    last = Math.max(last, end === Infinity ? call : end);
  }
  return losses.filter((l) => l.end >= first && l.call <= last);
}

/** The last read that can be made to tell a value that another acknowledged write had replaced before it. */
function withStaleRead(history: readonly Operation[]): Operation[] | undefined {
  const puts = history.filter((o) => o.kind === 'put' && o.outcome === 'stored').sort((a, b) => a.call - b.call);
  const reads = history.filter((o) => o.kind === 'get').sort((a, b) => b.call - a.call);
  for (const read of reads) {
    const later = puts.findLast((p) => p.end < read.call);
    const old = puts.findLast((p) => later !== undefined && p.end < later.call);
    if (old?.kind !== 'put' || old.value === read.value) continue;
    const { value } = old;
    return history.map((o) => (o === read ? { ...read, value, version: undefined } : o));
  }
  return undefined;
}
