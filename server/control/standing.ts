/**
 * Standing: connections, and the credentials that they were made with. Once per second each credential is looked at: a
 * connection whose certificate has expired, or whose token was taken out of its file, is ended. Both ends of a connection
 * between servers look: the accepting one at what it was shown (peer-plane.ts), the dialing one at what it has shown, and
 * at the certificate of the server that it dialed (metadata/peer-link.ts).
 *
 * Invariant: a connection outlives its credential by LOOK_MS at most, and by a second more where that is a file
 * (net/watched-files.ts).
 */
import { FarkvError } from '../../core/errors.js';

const LOOK_MS = 1000;

export interface Stander {
  /** Why the credential is good no more; undefined: it is good. */
  readonly lapsed: (wallMs: number) => string | undefined;
  readonly end: (why: FarkvError) => void;
}

export class Standing {
  readonly #wallMs: () => number;
  readonly #all = new Set<Stander>();
  /** Only while there are connections. */
  #look: NodeJS.Timeout | undefined;

  constructor(wallMs: () => number = Date.now) {
    this.#wallMs = wallMs;
  }

  add(one: Stander): void {
    this.#all.add(one);
    this.#look ??= setInterval(() => this.#endLapsed(), LOOK_MS).unref();
  }

  remove(one: Stander): void {
    this.#all.delete(one);
    if (this.#all.size > 0) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }

  #endLapsed(): void {
    const now = this.#wallMs();
    for (const one of [...this.#all]) {
      const why = one.lapsed(now);
      if (why !== undefined) one.end(new FarkvError('ERR_UNAUTHORIZED', why));
    }
  }
}
