/**
 * Majorities, plain and joint: what a set of voters has agreed on. Pure functions; quorum.test.ts holds them against a
 * model that is too simple to be wrong.
 *
 * A joint configuration has two sets of voters, and agreement needs a majority of each (Raft paper, section 6). An
 * empty set agrees with everything, so that a configuration that is not joint is one whose outgoing set is empty.
 */
import type { Configuration } from './configuration.js';
import { present } from './invariant.js';

export type VoteResult = 'won' | 'lost' | 'pending';

/**
 * Scratch for sorting; a call never leaves this module, so one is enough and nothing is allocated for each
 * acknowledgement.
 */
const scratch: number[] = [];

/** The largest value that a majority of `voters` has reached; Infinity for no voters. */
export function majorityValue(voters: readonly number[], valueOf: (voter: number) => number): number {
  const n = voters.length;
  if (n === 0) return Infinity;
  for (let i = 0; i < n; i++) {
    const value = valueOf(present(voters[i]));
    // Insertion sort, descending, by number: sets are small, and Array.sort without a comparator would order by text.
    let at = i;
    while (at > 0 && present(scratch[at - 1]) < value) {
      scratch[at] = present(scratch[at - 1]);
      at--;
    }
    scratch[at] = value;
  }
  return present(scratch[n >> 1]); // mutation: raft/half-a-majority
}

/**
 * The largest value that both halves of the configuration have reached. Infinity only when there are no voters at all.
 */
export function quorumValue(config: Configuration, valueOf: (voter: number) => number): number {
  // mutation: raft/joint-commit
  return Math.min(majorityValue(config.voters, valueOf), majorityValue(config.outgoing, valueOf));
}

function majorityVote(voters: readonly number[], votes: ReadonlyMap<number, boolean>): VoteResult {
  if (voters.length === 0) return 'won';
  let yes = 0;
  let missing = 0;
  for (const voter of voters) {
    const vote = votes.get(voter);
    if (vote === undefined) missing++;
    else if (vote) yes++;
  }
  const needed = (voters.length >> 1) + 1;
  if (yes >= needed) return 'won';
  return yes + missing >= needed ? 'pending' : 'lost';
}

/** Votes of members that are no voters are not counted. */
export function voteResult(config: Configuration, votes: ReadonlyMap<number, boolean>): VoteResult {
  const incoming = majorityVote(config.voters, votes);
  const outgoing = majorityVote(config.outgoing, votes); // mutation: raft/joint-election
  if (incoming === 'lost' || outgoing === 'lost') return 'lost';
  return incoming === 'won' && outgoing === 'won' ? 'won' : 'pending';
}
