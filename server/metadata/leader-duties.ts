/**
 * What the metadata's leader does of itself: makes the cluster when there is none, and gives shards to members. Every server has
 * one of these; only the leader's acts. What it proposes twice, or too late, the machine refuses.
 */
import type { Command } from '../../core/metadata/commands.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { describeError, type Log } from '../log.js';
import type { Outcome } from './proposer.js';

export interface LeaderDutiesOptions {
  readonly voters: readonly string[];
  readonly shards: number;
  /** How long all servers are waited for before the shards are given to those that came. */
  readonly assignAfterMs: number;
  readonly leads: () => boolean;
  readonly state: () => MetadataState;
  readonly propose: (command: Command, timeoutMs: number) => Promise<Outcome>;
  /** Random bytes as hex. */
  readonly randomHex: (bytes: number) => string;
  readonly log: Log;
}

const PROPOSE_MS = 10_000;
const RETRY_MS = 1000;

export class LeaderDuties {
  readonly #options: LeaderDutiesOptions;
  #busy = false;
  #again = false;
  #patience: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #impatient = false;
  #closed = false;

  constructor(options: LeaderDutiesOptions) {
    this.#options = options;
  }

  /** To be called when the leader or the metadata changed. */
  look(): void {
    if (this.#busy) this.#again = true;
    else void this.#act();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#patience);
    clearTimeout(this.#retry);
  }

  async #act(): Promise<void> {
    this.#busy = true;
    try {
      do {
        this.#again = false;
        const command = this.#closed ? undefined : this.#due();
        if (command === undefined) continue;
        const outcome = await this.#options.propose(command, PROPOSE_MS);
        // Whatever the outcome, the state says what is due now.
        if (outcome === 'unknown' || outcome.ok) this.#again = true;
      } while (this.#again);
    } catch (error) {
      if (this.#closed) return;
      this.#options.log.debug(`a duty of the leader was not done: ${describeError(error)}`);
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.look(), RETRY_MS);
    } finally {
      this.#busy = false;
    }
  }

  #due(): Command | undefined {
    const { leads, state, voters, shards, randomHex, assignAfterMs, log } = this.#options;
    if (!leads()) return undefined;
    const s = state();
    if (s.clusterId === '') {
      return { t: 'bootstrap', clusterId: randomHex(16), hashSeed: randomHex(16), ticketSecret: randomHex(16), shards, voters };
    }
    if (s.members.size === 0 || s.shards.every((one) => one.owner !== undefined)) return undefined;
    const missing = s.voters.filter((id) => !s.members.has(id));
    if (missing.length === 0 || this.#impatient) {
      if (missing.length > 0) log.warn(`${missing.join(', ')} did not come within ${assignAfterMs} ms: the shards go to ${[...s.members.keys()].join(', ')}`);
      return { t: 'assign-shards' };
    }
    this.#patience ??= setTimeout(() => {
      this.#impatient = true;
      this.look();
    }, assignAfterMs);
    return undefined;
  }
}
