/**
 * Changes that only the leader of a term may propose, because they rest on what it alone knows in that term
 * (core/metadata/owner-leases.ts). Proposer gives a change again to whoever leads next; here it is given once, to this
 * server's own Raft member, and a change of the term ends the matter: whether it took effect is then in the log.
 */
import { FarkvError } from '../../core/errors.js';
import { encodeProposal, type Command } from '../../core/metadata/commands.js';
import type { Applied } from '../../core/metadata/machine.js';
import type { MetadataDriver } from './driver.js';
import type { Outcome } from './proposer.js';

interface Pending {
  readonly term: number;
  readonly settle: (outcome: Outcome) => void;
  readonly fail: (error: FarkvError) => void;
}

export class LocalProposer {
  readonly #driver: Pick<MetadataDriver, 'propose' | 'leads' | 'term'>;
  /** 64 random bits of this start, hex; not those of a Proposer. */
  readonly #proposer: string;
  readonly #pending = new Map<number, Pending>();
  #sequence = 0;

  constructor(driver: Pick<MetadataDriver, 'propose' | 'leads' | 'term'>, proposer: string) {
    this.#driver = driver;
    this.#proposer = proposer;
  }

  /**
   * Rejects with ERR_NO_LEADER when this server does not lead in `term`, or stops to before the change is applied;
   * ERR_BUSY when it takes none.
   */
  propose(command: Command, term: number): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const lost = (): FarkvError => new FarkvError('ERR_NO_LEADER', 'this server leads no longer');
      if (!this.#driver.leads || this.#driver.term !== term) {
        reject(lost());
        return;
      }
      const sequence = ++this.#sequence;
      const refusal = this.#driver.propose(encodeProposal({ proposer: this.#proposer, sequence, command }));
      if (refusal !== undefined)
        reject(new FarkvError('ERR_BUSY', `the metadata group accepts no changes now (${refusal})`));
      else this.#pending.set(sequence, { term, settle: resolve, fail: reject });
    });
  }

  /** To be called for every applied command. */
  applied({ proposal, outcome }: Applied): void {
    if (proposal.proposer !== this.#proposer) return;
    this.#pending.get(proposal.sequence)?.settle(outcome === 'duplicate' ? 'unknown' : outcome);
    this.#pending.delete(proposal.sequence);
  }

  /** To be called when the leader or the term may have changed. */
  look(): void {
    for (const [sequence, pending] of this.#pending) {
      if (this.#driver.leads && this.#driver.term === pending.term) continue;
      this.#pending.delete(sequence);
      pending.fail(new FarkvError('ERR_NO_LEADER', 'this server leads no longer'));
    }
  }

  close(): void {
    for (const pending of this.#pending.values()) pending.fail(new FarkvError('ERR_CLOSED', 'the server is closing'));
    this.#pending.clear();
  }
}
