/**
 * Assertions of core/raft. A broken invariant means that the algorithm, its driver or its disk is wrong; going on could
 * answer wrongly, so it is thrown as an error that nobody is meant to catch but the top of the process, which stops.
 */
export class RaftInvariantError extends Error {
  constructor(readonly reason: string) {
    super(`raft invariant broken: ${reason}`);
    this.name = 'RaftInvariantError';
  }
}

/** This member's disk has less than it had acknowledged: it is a copy from before, or has lost writes. */
export class LostEntriesError extends RaftInvariantError {}

/** `text` is constant at every call, so that a check that holds builds no string. */
export function invariant(condition: boolean, text: string): asserts condition {
  if (!condition) throw new RaftInvariantError(text);
}

/** The value of a look-up that cannot miss. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new RaftInvariantError('what must be there is missing');
  return value;
}
