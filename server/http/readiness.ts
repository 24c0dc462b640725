/** Why a server is not ready: what /readyz says. */
import type { OwnReadiness } from '../own-readiness.js';
import { ANSWER_MS } from './bounds.js';

/** In words; undefined: it serves every shard that it owns, has a lease, and knows a leader. */
export function notReady({
  role,
  stopping,
  hasLeader,
  recovering,
  leaseHeld,
  waiting,
  dataPlaneSilentMs,
}: OwnReadiness): string | undefined {
  if (role === 'starting')
    return `this server is starting${hasLeader ? '' : ', and knows no leader of the metadata group yet'}`;
  if (stopping) return 'this server is stopping';
  if (!hasLeader) return 'the metadata group has no leader';
  if (recovering !== undefined)
    return `this server reads its values from the disk: ${recovering.bytes} of ${recovering.all} bytes`;
  if (!leaseHeld) return 'this server has no lease from the metadata group, and answers nothing';
  if (dataPlaneSilentMs >= ANSWER_MS)
    return `a thread of the data plane has not answered for ${Math.round(dataPlaneSilentMs / 1000)} s`;
  if (waiting.length === 0) return undefined;
  return `${waiting.length === 1 ? 'shard' : 'shards'} ${waiting.join(', ')} of this server ${waiting.length === 1 ? 'is' : 'are'} not served`;
}

/** A server that lacks redundancy for longer serves what it has, and says so elsewhere. */
const COPIES_MS = 60_000;

/**
 * Readiness of one server from its start on. Who restarts one server after the other waits for each to be ready: so a
 * start is over only when every shard has as many copies in sync as it is to have, or as there are servers for. Once it
 * was so, or after a minute, the lack of a copy elsewhere makes this server no less ready.
 */
export class Readiness {
  readonly #nowMs: () => number;
  #servesSinceMs: number | undefined;
  #began = false;

  constructor(nowMs = (): number => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** The start is over. Until then `why` has to be asked again and again, so that the minute does not wait for a probe. */
  get began(): boolean {
    return this.#began;
  }

  /** In words; undefined: it is ready. */
  why(own: OwnReadiness): string | undefined {
    const why = notReady(own);
    if (why !== undefined || this.#began) return why;
    this.#servesSinceMs ??= this.#nowMs();
    const { lacking } = own;
    this.#began = lacking.length === 0 || this.#nowMs() - this.#servesSinceMs >= COPIES_MS;
    return this.#began
      ? undefined
      : `${lacking.length === 1 ? 'shard' : 'shards'} ${lacking.join(', ')} ${lacking.length === 1 ? 'has' : 'have'} fewer copies than there are to be: another server should not be stopped yet`;
  }
}
