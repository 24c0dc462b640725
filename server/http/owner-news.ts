/**
 * News of shards that have other owners: a line for all that go the same way for the same reason, and why, if nobody had
 * planned it. Not for: other news (happenings.ts).
 */
import { Failovers, type FailedOver } from '../../core/metadata/failovers.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { failoverText } from '../move-lines.js';

/** Shards of one server come to another one by one: what comes within this time is told together. */
const WHOLE_MS = 1000;
const LISTED = 8;

/** `shard 3`, `shards 1, 2, 5`; of many the first ones and their number. */
export function shardsText(shards: readonly number[]): string {
  if (shards.length === 1) return `shard ${shards[0] ?? 0}`;
  const more = shards.length > LISTED ? ` and ${shards.length - LISTED} more` : '';
  return `shards ${shards.slice(0, LISTED).join(', ')}${more}`;
}

interface Passed {
  /** Undefined: nobody owned them, and before that this start had seen no owner. */
  readonly from: string | undefined;
  readonly to: string;
  /** Undefined: it was planned. */
  readonly why: FailedOver | undefined;
  readonly shards: Set<number>;
  /** The first of them. */
  readonly atMs: number;
}

function textOf({ from, to, why, shards }: Passed): string {
  const which = shardsText([...shards].sort((a, b) => a - b));
  if (why !== undefined) return failoverText(why, which);
  return from === undefined ? `${to} owns ${which}` : `from ${from} to ${to}: ${which}`;
}

export interface OwnerNewsOptions {
  /** Of this start: a start applies the log again, so the news begin with the state that names it. */
  readonly incarnation: string;
  readonly tell: (text: string, atMs: number) => void;
  readonly wholeMs?: number | undefined;
}

export class OwnerNews {
  readonly #options: OwnerNewsOptions;
  readonly #failovers = new Failovers();
  readonly #passed = new Map<string, Passed>();
  #before: MetadataState | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: OwnerNewsOptions) {
    this.#options = options;
  }

  /** Each state of the metadata, one after the other. */
  observe(state: MetadataState, nowMs: number): void {
    const before = this.#before;
    if (before === undefined && !this.#hasJoined(state)) return;
    this.#before = state;
    const failed = new Map(this.#failovers.observe(state, nowMs).map((one) => [one.shard, one]));
    if (before === undefined || before.shards === state.shards) return;
    for (const { shard, owner: to } of state.shards) {
      const owner = before.shards[shard]?.owner;
      if (to === undefined || to === owner) continue;
      const why = failed.get(shard);
      const from = why?.from ?? owner;
      const way = JSON.stringify([from, to, why?.why, why?.values]);
      const passed = this.#passed.get(way) ?? { from, to, why, shards: new Set(), atMs: nowMs };
      passed.shards.add(shard);
      this.#passed.set(way, passed);
    }
    if (this.#passed.size > 0)
      this.#timer ??= setTimeout(() => this.#tell(), this.#options.wholeMs ?? WHOLE_MS).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #hasJoined({ members }: MetadataState): boolean {
    for (const { incarnation } of members.values()) if (incarnation === this.#options.incarnation) return true;
    return false;
  }

  #tell(): void {
    this.#timer = undefined;
    const all = [...this.#passed.values()];
    this.#passed.clear();
    for (const one of all) this.#options.tell(textOf(one), one.atMs);
  }
}
