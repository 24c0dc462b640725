/**
 * Which moves rest, for whoever plans for a server that is drained. A move that was called off though both servers are
 * there had a reason: the new owner could not reach the old one, or had no memory for the shard. Such a shard is
 * planned elsewhere, and there again only after a rest that doubles each time.
 *
 * The metadata does not say why a move is no more, and need not: this is read off its changes. It is soft state; every
 * server keeps it, so that the next leader knows what the last one did, and nothing that is safe rests on it. Not for:
 * moves that a restart of either server has ended; nor the reasons, which a server keeps for operators
 * (server/shards/move-errors.ts).
 */
import type { MetadataState, Move } from './state.js';

const REST_MS = 10_000;
const REST_MAX_MS = 300_000;

/** A move that was called off. */
export interface CalledOff {
  readonly shard: number;
  readonly from: string;
  readonly to: string;
  /** So often, one after the other. */
  readonly times: number;
  readonly restMs: number;
}

interface Rest extends CalledOff {
  /** Incarnations: of what starts again nothing is known. */
  readonly fromStart: string | undefined;
  readonly toStart: string | undefined;
  readonly untilMs: number;
}

export class MoveRests {
  #before: MetadataState | undefined;
  /** By shard and new owner. */
  readonly #rests = new Map<string, Rest>();

  /** To be called with each state of the metadata. Returns what was called off since the last one. */
  observe(state: MetadataState, nowMs: number): CalledOff[] {
    const before = this.#before;
    this.#before = state;
    if (before === undefined || before === state) return [];
    this.#forget(before, state);
    const found: CalledOff[] = [];
    const standing = new Map(state.moves.map((m) => [m.shard, m]));
    for (const move of before.moves) {
      const outcome = outcomeOf(move, standing.get(move.shard), before, state);
      if (outcome === undefined) continue;
      const { from, came } = outcome;
      if (came) {
        for (const [key, rest] of this.#rests) if (rest.from === from && rest.to === move.to) this.#rests.delete(key);
        continue;
      }
      const key = keyOf(move.shard, move.to);
      const times = (this.#rests.get(key)?.times ?? 0) + 1;
      const restMs = Math.min(REST_MAX_MS, REST_MS * 2 ** (times - 1));
      const rest = {
        shard: move.shard,
        from,
        to: move.to,
        times,
        restMs,
        fromStart: startOf(state, from),
        toStart: startOf(state, move.to),
        untilMs: nowMs + restMs,
      };
      this.#rests.set(key, rest);
      found.push(rest);
    }
    return found;
  }

  /** It is not to be planned there now. */
  rests(shard: number, to: string, nowMs: number): boolean {
    return nowMs < (this.#rests.get(keyOf(shard, to))?.untilMs ?? -Infinity);
  }

  /** A shard did not get from the one to the other, and none has since. */
  troubled(from: string, to: string): boolean {
    return [...this.#rests.values()].some((rest) => rest.from === from && rest.to === to);
  }

  /** When something may be planned that rests now. */
  nextEndMs(nowMs: number): number | undefined {
    const ends = [...this.#rests.values()].map((rest) => rest.untilMs).filter((at) => at > nowMs);
    return ends.length === 0 ? undefined : Math.min(...ends);
  }

  /**
   * What is of an earlier start of a server, or of an earlier hold on the shard; and all of a server that is not to be
   * drained after all: whoever drains it anew has done something about it.
   */
  #forget(before: MetadataState, state: MetadataState): void {
    const undone = new Set(
      before.servers
        .filter((s) => s.draining && state.servers.some((now) => now.id === s.id && !now.draining))
        .map((s) => s.id),
    );
    for (const [key, rest] of this.#rests) {
      const same =
        state.shards[rest.shard]?.owner === rest.from &&
        startOf(state, rest.from) === rest.fromStart &&
        startOf(state, rest.to) === rest.toStart;
      if (!same || undone.has(rest.from)) this.#rests.delete(key);
    }
  }
}

function keyOf(shard: number, to: string): string {
  return `${shard} ${to}`;
}

function startOf(state: MetadataState, id: string): string | undefined {
  return state.members.get(id)?.incarnation;
}

/** Undefined: it stands, or a restart has ended it. */
function outcomeOf(
  move: Move,
  present: Move | undefined,
  before: MetadataState,
  state: MetadataState,
): { readonly from: string; readonly came: boolean } | undefined {
  const [was, is] = [before.shards[move.shard], state.shards[move.shard]];
  const from = was?.owner;
  if (from === undefined || from === move.to || is === undefined) return undefined;
  if (is.owner === move.to) return { from, came: true };
  const stands = present?.to === move.to && present.planned === move.planned;
  const same =
    is.owner === from &&
    is.epoch === was?.epoch &&
    [from, move.to].every((id) => startOf(before, id) !== undefined && startOf(before, id) === startOf(state, id));
  return stands || !same ? undefined : { from, came: false };
}
