/**
 * The state of a new member before its first start.
 *
 * The first members of a group all begin with the same entry 1, which is committed by definition and names the voters.
 * A member that joins later begins with nothing: it knows no configuration, so it never campaigns, and is told all by
 * the leader once that has added it.
 */
import { encodeConfiguration, isConfiguration } from './configuration.js';
import { EntryType } from './entry.js';
import { invariant } from './invariant.js';
import type { RestoredState } from './raft.js';

/** For each of the first voters, the same everywhere. To be persisted before the member is started. */
export function bootstrapState(voters: readonly number[]): RestoredState {
  const config = { voters: [...voters].sort((a, b) => a - b), outgoing: [], learners: [] };
  invariant(isConfiguration(config), 'a group begins with at least one voter, and none twice');
  return {
    hardState: { term: 1, vote: 0, commit: 1 },
    entries: [{ index: 1, term: 1, type: EntryType.Config, data: encodeConfiguration(config) }],
  };
}

export function emptyState(): RestoredState {
  return { hardState: { term: 0, vote: 0, commit: 0 }, entries: [] };
}
