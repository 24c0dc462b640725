/**
 * Changes of the metadata as this server asks for them: given to the leader, wherever it is, and given again until this
 * server has seen the change in its own log. The machine takes each (proposer, sequence) once, so asking again is
 * always safe.
 */
import { FarkvError, type ErrorCode } from '../../core/errors.js';
import { encodeProposal, PROPOSALS_MAX, type Command } from '../../core/metadata/commands.js';
import { tooEarly } from '../../core/metadata/format.js';
import type { Applied } from '../../core/metadata/machine.js';

/**
 * 'unknown': it has been applied, but with an entry that this server never saw (it came by a snapshot); look at the
 * state. A command that was refused did not fit the state that it met.
 */
export type Outcome =
  { readonly ok: true } | { readonly ok: false; readonly code: ErrorCode; readonly message: string } | 'unknown';

export interface ProposerOptions {
  /** 64 random bits of this start, hex. */
  readonly proposer: string;
  /** Of the metadata as this server has it: nothing later is proposed (core/metadata/format.ts). */
  readonly formatVersion: () => number;
  /** Gives the bytes to the leader. Resolves when it took them; rejects when it did not, or may not have. */
  readonly submit: (bytes: Uint8Array, command: Command) => Promise<void>;
  /** When no sign of the change was seen for this long after the leader took it, it is given again. */
  readonly retryMs: number;
}

interface Pending {
  readonly bytes: Uint8Array;
  readonly command: Command;
  readonly settle: (outcome: Outcome) => void;
  readonly fail: (error: FarkvError) => void;
  retry: NodeJS.Timeout | undefined;
  lastError: unknown;
}

/** Half of what the machine's window allows. */
const UNANSWERED_MAX = PROPOSALS_MAX / 2;
const REFUSED_RETRY_MS = 50;

export class Proposer {
  readonly #options: ProposerOptions;
  readonly #pending = new Map<number, Pending>();
  readonly #queue: (() => void)[] = [];
  #sequence = 0;
  #closed = false;
  #failed = 0;

  constructor(options: ProposerOptions) {
    this.#options = options;
  }

  /**
   * Resolves when this server has applied the change or its refusal. Rejects with ERR_TIMEOUT when that took too long:
   * the change may still come. ERR_CLOSED after close(), ERR_UNSUPPORTED for what not every server would understand.
   */
  async propose(command: Command, timeoutMs: number): Promise<Outcome> {
    while (this.#pending.size >= UNANSWERED_MAX && !this.#closed)
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    if (this.#closed) throw new FarkvError('ERR_CLOSED', 'the server is closing');
    const early = tooEarly(command, this.#options.formatVersion());
    if (early !== undefined) throw early;
    const sequence = ++this.#sequence;
    const bytes = encodeProposal({ proposer: this.#options.proposer, sequence, command });
    return await new Promise<Outcome>((resolve, reject) => {
      const done = (): void => {
        clearTimeout(deadline);
        clearTimeout(pending.retry);
        this.#pending.delete(sequence);
        this.#queue.shift()?.();
      };
      const pending: Pending = {
        bytes,
        command,
        retry: undefined,
        lastError: undefined,
        settle: (outcome) => {
          done();
          resolve(outcome);
        },
        fail: (error) => {
          done();
          reject(error);
        },
      };
      const deadline = setTimeout(() => {
        this.#failed += 1;
        pending.fail(
          new FarkvError(
            'ERR_TIMEOUT',
            `the metadata group did not take a change (${command.t}) within ${timeoutMs} ms`,
            { cause: pending.lastError },
          ),
        );
      }, timeoutMs);
      this.#pending.set(sequence, pending);
      this.#submit(pending);
    });
  }

  /** How many were given up, since nobody took them in time. */
  get failed(): number {
    return this.#failed;
  }

  /** To be called for every applied command. */
  applied({ proposal, outcome }: Applied): void {
    if (proposal.proposer !== this.#options.proposer) return;
    this.#pending.get(proposal.sequence)?.settle(outcome === 'duplicate' ? 'unknown' : outcome);
  }

  /** To be called when this server learns of a leader: what the one before took may be lost with it. */
  leaderChanged(): void {
    for (const pending of [...this.#pending.values()]) this.#submit(pending);
  }

  close(): void {
    this.#closed = true;
    for (const pending of [...this.#pending.values()])
      pending.fail(new FarkvError('ERR_CLOSED', 'the server is closing'));
    for (const wake of this.#queue.splice(0)) wake();
  }

  #submit(pending: Pending): void {
    const again = (ms: number): void => {
      clearTimeout(pending.retry);
      pending.retry = setTimeout(() => {
        if ([...this.#pending.values()].includes(pending)) this.#submit(pending);
      }, ms);
    };
    again(this.#options.retryMs);
    this.#options.submit(pending.bytes, pending.command).catch((error: unknown) => {
      pending.lastError = error;
      again(REFUSED_RETRY_MS);
    });
  }
}
