/**
 * How a start of a server becomes a member: it proposes itself until the metadata names this start. Then everybody
 * knows its addresses, and what an earlier start served is closed.
 */
import { FarkvError } from '../../core/errors.js';
import type { Command, MemberJoin } from '../../core/metadata/commands.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { codeOf, describeError, type Log } from '../log.js';
import type { Outcome } from './proposer.js';

export interface JoinMembersOptions {
  readonly member: Omit<MemberJoin, 't' | 'replaces'>;
  readonly state: () => MetadataState;
  readonly propose: (command: Command, timeoutMs: number) => Promise<Outcome>;
  readonly log: Log;
}

const PROPOSE_MS = 30_000;

/** Resolves when the metadata names this start. Rejects with ERR_REMOVED when the server was removed from the cluster. */
export async function joinMembers({ member, state, propose, log }: JoinMembersOptions): Promise<void> {
  const { id, incarnation, instance } = member;
  let isCurrent = false;
  for (;;) {
    const present = state().members.get(id)?.incarnation;
    if (present === incarnation) return;
    const server = state().servers.find((s) => s.id === id);
    // One of the first servers that has not come yet is known by its id alone.
    const isMissing = server === undefined || (server.instance !== undefined && server.instance !== instance);
    if (isMissing && isCurrent) {
      throw new FarkvError(
        'ERR_REMOVED',
        `${id} was removed from the cluster: to bring it back, start it with an empty data directory and --join`,
      );
    }
    try {
      if (isMissing) {
        // The part of the log that is applied here may end before this server came.
        isCurrent = (await propose({ t: 'no-op' }, PROPOSE_MS)) !== 'unknown';
        continue;
      }
      const outcome = await propose(
        { t: 'member-join', ...member, ...(present === undefined ? {} : { replaces: present }) },
        PROPOSE_MS,
      );
      if (outcome !== 'unknown' && !outcome.ok && outcome.code !== 'ERR_BUSY')
        throw new FarkvError(outcome.code, outcome.message);
    } catch (error) {
      if (!(error instanceof FarkvError && error.code === 'ERR_TIMEOUT')) throw error;
      log.info(`still joining: ${describeError(error)}`, { event: 'join-retried', ...codeOf(error) });
    }
  }
}
