/**
 * Who votes in the metadata group: pure decisions of its leader, as leader-policy.ts. A vote moves by one `voters-set`;
 * the Raft group follows through a joint configuration, in which both majorities must agree (core/raft).
 */
import type { VotersSet } from './commands.js';
import type { Absences } from './copy-policy.js';
import type { GrantedLeases } from './owner-leases.js';
import type { MetadataState } from './state.js';

/**
 * Learners that have caught up become voters while there are fewer than votersMax. The number of voters stays odd: an
 * even group survives no more failures than the odd one below it, and is more likely to meet one.
 */
export function nextVoters(state: MetadataState, caughtUp: ReadonlySet<string>): VotersSet | undefined {
  const learners = learnersOf(state, caughtUp);
  const most = state.votersMax - (state.votersMax % 2 === 0 ? 1 : 0);
  const target = Math.min(most, state.voters.length + learners.length);
  const odd = target % 2 === 0 ? target - 1 : target;
  const add = odd - state.voters.length;
  return add <= 0 ? undefined : { t: 'voters-set', voters: [...state.voters, ...learners.slice(0, add)].sort() };
}

function learnersOf(state: MetadataState, caughtUp: ReadonlySet<string>): string[] {
  return state.servers
    .filter((s) => !s.draining && !state.voters.includes(s.id) && caughtUp.has(s.id))
    .map((s) => s.id);
}

export interface VoterLook {
  readonly state: MetadataState;
  readonly leases: GrantedLeases;
  readonly absences: Absences;
  /** Servers whose logs are about as long as the leader's. */
  readonly caughtUp: ReadonlySet<string>;
  readonly nowMs: number;
  /** A voter that has been dead for so long loses its vote; Infinity: never. */
  readonly replaceMs: number;
}

export interface Replacement {
  readonly dead: string;
  readonly by: string;
  readonly silentMs: number;
}

/**
 * A voter that has been dead for too long, and the learner that gets its vote, rather one whose zone has no living
 * voter. One at a time, and only while most of the voters live, before the change and after it: the joint configuration
 * needs both majorities to be left again.
 */
export function replacement(look: VoterLook): Replacement | undefined {
  const { state, leases, absences, caughtUp, nowMs, replaceMs } = look;
  const { voters } = state;
  const lives = (id: string): boolean => leases.alive(id, nowMs) && caughtUp.has(id);
  const dead = voters.find((id) => absences.silentMs(id, nowMs) >= replaceMs);
  if (dead === undefined) return undefined;
  const living = voters.filter(lives);
  if (2 * living.length <= voters.length) return undefined; // mutation: metadata/vote-without-majority
  const zoneOf = (id: string): string => state.members.get(id)?.zone ?? '';
  const crowd = (id: string): number => living.filter((one) => zoneOf(one) === zoneOf(id)).length;
  const [by] = learnersOf(state, caughtUp)
    .filter(lives)
    .sort((a, b) => crowd(a) - crowd(b));
  return by === undefined ? undefined : { dead, by, silentMs: absences.silentMs(dead, nowMs) };
}

export function replaced({ voters }: MetadataState, { dead, by }: Replacement): VotersSet {
  return { t: 'voters-set', voters: [...voters.filter((id) => id !== dead), by].sort() };
}

/** When `replacement` may have an answer because of time alone. */
export function replacementLookMs(
  { voters }: MetadataState,
  absences: Absences,
  nowMs: number,
  replaceMs: number,
): number | undefined {
  const ends = voters.map((id) => absences.endMs(id, replaceMs)).filter((at) => at > nowMs && at < Infinity);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** Whose vote has gone to whom, as this server has seen it since its start: only to be shown. */
export class MovedVotes {
  #voters: readonly string[] = [];
  readonly #moved = new Map<string, string>();

  get all(): { readonly from: string; readonly to: string }[] {
    return [...this.#moved].map(([from, to]) => ({ from, to }));
  }

  /** The metadata as applied now. */
  observe({ voters, servers }: MetadataState): void {
    const [from, ...more] = this.#voters.filter((id) => !voters.includes(id));
    const [to] = voters.filter((id) => !this.#voters.includes(id));
    this.#voters = voters;
    if (from !== undefined && to !== undefined && more.length === 0) this.#moved.set(from, to);
    for (const id of this.#moved.keys())
      if (voters.includes(id) || !servers.some((s) => s.id === id)) this.#moved.delete(id);
  }
}
