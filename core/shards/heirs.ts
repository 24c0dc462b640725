/**
 * Servers that may take over what a server that ends has. Each is looked at until it has ended or is about to, so that
 * servers that are all told to end do not wait for each other.
 */
import type { Member } from '../metadata/state.js';
import type { Request, Failure } from './actions.js';

const LOOK_MS = 200;

/** A server, and what its result is of. */
export interface Looked {
  readonly server: Member;
  readonly was: 'looked at' | 'left alone';
}

export class Heirs {
  readonly #gone = new Set<string>();
  readonly #ask: (action: Request, looked: Looked) => void;

  constructor(ask: (action: Request, looked: Looked) => void) {
    this.#ask = ask;
  }

  /** They are not waited for. */
  get gone(): ReadonlySet<string> {
    return this.#gone;
  }

  watch(servers: readonly Member[]): void {
    for (const server of servers) this.#ask({ do: 'look', server }, { server, was: 'looked at' });
  }

  done({ server, was }: Looked, failed: Failure | undefined): void {
    if (failed !== undefined) this.#gone.add(server.id);
    else if (was === 'left alone') this.watch([server]);
    else this.#ask({ do: 'wait', ms: LOOK_MS }, { server, was: 'left alone' });
  }
}
