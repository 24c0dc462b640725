/**
 * News of shards that have other owners, a line each, once: the metadata says which shards and when, the status why, if
 * it was a failover. So each waits for the next status. Not for: other news (happenings.ts).
 */
import type { MetadataState } from '../../core/metadata/state.js';
import { failoverText } from '../move-lines.js';
import type { FailoverStatus } from '../status.js';
import { STATUS_ANSWER_MS } from './bounds.js';

interface Passed {
  /** Undefined: nobody owned them. */
  readonly from: string | undefined;
  readonly to: string;
  readonly shards: readonly number[];
  readonly atMs: number;
}

/** Shards that fail over within a second are one failover (core/metadata/failovers.ts): until then more may come. */
const WHOLE_MS = 1000;
/** Of those that wait while nobody looks the last are kept. */
const MOST = 200;
const LISTED = 8;

/** `shard 3`, `shards 1, 2, 5`; of many the first ones and their number. */
export function shardsText(shards: readonly number[]): string {
  if (shards.length === 1) return `shard ${shards[0] ?? 0}`;
  const more = shards.length > LISTED ? ` and ${shards.length - LISTED} more` : '';
  return `shards ${shards.slice(0, LISTED).join(', ')}${more}`;
}

function passedText({ from, to, shards }: Passed): string {
  return from === undefined ? `${to} owns ${shardsText(shards)}` : `from ${from} to ${to}: ${shardsText(shards)}`;
}

export class OwnerNews {
  /** No status has been asked for since. */
  #fresh: readonly Passed[] = [];
  #asked: readonly Passed[] = [];

  /** Two states of the metadata, one after the other. */
  add(before: MetadataState, after: MetadataState, atMs: number): void {
    const passed = new Map<string, Passed & { readonly shards: number[] }>();
    for (const { shard, owner: to } of after.shards) {
      const from = before.shards[shard]?.owner;
      if (to === undefined || to === from) continue;
      const way = JSON.stringify([from, to]);
      const one = passed.get(way) ?? { from, to, shards: [], atMs };
      one.shards.push(shard);
      passed.set(way, one);
    }
    this.#fresh = [...this.#fresh, ...passed.values()].slice(-MOST);
  }

  /** A status is asked for now: it will know why what was added had to be. */
  ask(): void {
    this.#asked = [...this.#asked, ...this.#fresh].slice(-MOST);
    this.#fresh = [];
  }

  /** The answer, with the failovers as one server has seen them. */
  lines(failovers: readonly FailoverStatus[], nowMs: number): { readonly atMs: number; readonly text: string }[] {
    const causes = this.#asked.map((one) => ({ one, cause: causeOf(one, failovers, nowMs) }));
    const waits = ({ cause }: (typeof causes)[number]): boolean => cause !== undefined && cause.agoMs < WHOLE_MS;
    this.#asked = causes.filter(waits).map(({ one }) => one);
    const told = new Set<FailoverStatus>();
    return causes.flatMap((each) => {
      const { one, cause } = each;
      if (waits(each) || (cause !== undefined && told.has(cause))) return [];
      if (cause === undefined) return [{ atMs: one.atMs, text: passedText(one) }];
      told.add(cause);
      const shards = causes.flatMap((other) => (other.cause === cause ? other.one.shards : []));
      const sorted = [...new Set(shards)].sort((a, b) => a - b);
      return [{ atMs: one.atMs, text: failoverText(cause, shardsText(sorted)) }];
    });
  }
}

/** Both clocks are this server's, but the answer may have been on its way for as long as one may take. */
function causeOf(
  { from, to, atMs }: Passed,
  failovers: readonly FailoverStatus[],
  nowMs: number,
): FailoverStatus | undefined {
  return failovers.find(
    (one) =>
      one.to === to &&
      (from === undefined || one.from === from) &&
      Math.abs(nowMs - one.agoMs - atMs) <= STATUS_ANSWER_MS,
  );
}
