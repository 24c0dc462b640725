/**
 * What is in the way of shards that move to this server, for operators (`farkv status`, `member list`, `shard`): the
 * last thing that went wrong with each, until the shard has moved, is copied anew or has another owner. Decides nothing;
 * server/move-lines.ts prints it.
 */
import { boolean, list, record, text, uint, type Check } from '../../core/protocol/check.js';
import { memberId, shardNumber } from '../../core/metadata/check-state.js';
import type { MetadataState } from '../../core/metadata/state.js';

export interface MoveError {
  readonly shard: number;
  readonly from: string;
  readonly to: string;
  /** To copy it; the last one failed. */
  readonly attempts: number;
  readonly reason: string;
  /** By the server that says so; false: it is tried again. */
  readonly calledOff: boolean;
  /** How long ago it was. */
  readonly agoMs: number;
}

/** More are not told of: they would all say the same. */
const TOLD_MAX = 256;
const REASON_MAX = 400;

export const checkMoveErrors: Check<MoveError[]> = list(
  record<MoveError>({
    shard: shardNumber,
    from: memberId,
    to: memberId,
    attempts: uint(),
    reason: text(REASON_MAX),
    calledOff: boolean,
    agoMs: uint(),
  }),
  TOLD_MAX,
);

type Noted = Omit<MoveError, 'agoMs'> & { readonly epoch: number; readonly atMs: number };

export class MoveErrors {
  readonly #noted = new Map<number, Noted>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** `epoch`: of the shard at its present owner. */
  note(error: Omit<MoveError, 'agoMs'> & { readonly epoch: number }): void {
    const reason = error.reason.length > REASON_MAX ? `${error.reason.slice(0, REASON_MAX - 3)}...` : error.reason;
    this.#noted.set(error.shard, { ...error, reason, atMs: this.#nowMs() });
  }

  /** It is tried anew: what was called off before is of the past. */
  begun(shard: number): void {
    if (this.#noted.get(shard)?.calledOff === true) this.#noted.delete(shard);
  }

  list({ shards, moves }: MetadataState): MoveError[] {
    for (const { shard, from, to, epoch, calledOff } of this.#noted.values()) {
      const stands = calledOff || moves.some((m) => m.shard === shard && m.to === to);
      if (!stands || shards[shard]?.owner !== from || shards[shard].epoch !== epoch) this.#noted.delete(shard);
    }
    return [...this.#noted.values()]
      .slice(0, TOLD_MAX)
      .map(({ shard, from, to, attempts, reason, calledOff, atMs }) => ({
        shard,
        from,
        to,
        attempts,
        reason,
        calledOff,
        agoMs: Math.round(this.#nowMs() - atMs),
      }));
  }
}
