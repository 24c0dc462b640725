/** Why a server is not ready, and what it is in the metadata group: what /readyz and /role say. */
import type { ClusterStatus } from '../status.js';

/** In words; undefined: it serves every shard that it owns, has a lease, and knows a leader. `status` is its own. */
export function notReady({ leader, members, shards }: ClusterStatus, id: string): string | undefined {
  const node = members.find((member) => member.id === id)?.node;
  if (node === undefined) return 'this server is starting';
  if (node.stopping === true) return 'this server is stopping';
  if (leader === undefined) return 'the metadata group has no leader';
  const recovering = node.values?.recovering;
  if (recovering !== undefined)
    return `this server reads its values from the disk: ${recovering.bytes} of ${recovering.all} bytes`;
  if (node.leaseHeld !== true) return 'this server has no lease from the metadata group, and answers nothing';
  const waiting = shards.filter(({ owner, state }) => owner === id && state !== 'serving').map(({ shard }) => shard);
  if (waiting.length === 0) return undefined;
  return `${waiting.length === 1 ? 'shard' : 'shards'} ${waiting.join(', ')} of this server ${waiting.length === 1 ? 'is' : 'are'} not served`;
}

/** leader, follower, learner, or candidate while there is no leader; starting: it is none of these yet. */
export function roleOf({ leader, members }: ClusterStatus, id: string): string {
  const own = members.find((member) => member.id === id);
  if (own?.node === undefined) return 'starting';
  if (leader === id) return 'leader';
  return own.role === 'voter' ? (leader === undefined ? 'candidate' : 'follower') : 'learner';
}

/** A server that lacks redundancy for longer serves what it has, and says so elsewhere. */
const COPIES_MS = 60_000;

/**
 * Readiness of one server from its start on. Who restarts one server after the other waits for each to be ready: so a
 * start is over only when every shard has as many copies in sync as it is to have, or as there are servers for. Once it
 * was so, or after a minute, the lack of a copy elsewhere makes this server no less ready.
 */
export class Readiness {
  readonly #id: string;
  readonly #nowMs: () => number;
  #servesSinceMs: number | undefined;
  #began = false;

  constructor(id: string, nowMs = (): number => performance.now()) {
    this.#id = id;
    this.#nowMs = nowMs;
  }

  /** The start is over. Until then `why` has to be asked again and again, so that the minute does not wait for a probe. */
  get began(): boolean {
    return this.#began;
  }

  /** In words; undefined: it is ready. */
  why(status: ClusterStatus): string | undefined {
    const why = notReady(status, this.#id);
    if (why !== undefined || this.#began) return why;
    this.#servesSinceMs ??= this.#nowMs();
    const lack = lacking(status);
    this.#began = lack.length === 0 || this.#nowMs() - this.#servesSinceMs >= COPIES_MS;
    return this.#began
      ? undefined
      : `${lack.length === 1 ? 'shard' : 'shards'} ${lack.join(', ')} ${lack.length === 1 ? 'has' : 'have'} fewer copies than there are to be: another server should not be stopped yet`;
  }
}

function lacking({ members, shards }: ClusterStatus): number[] {
  const keepers = members.filter((m) => m.state !== 'absent' && m.witness !== true && !m.draining).length;
  return shards.flatMap(({ shard, copies }) =>
    copies !== undefined && copies.inSync < Math.min(copies.wanted, keepers) ? [shard] : [],
  );
}
