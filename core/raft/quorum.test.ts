/** Quorums held against models that are too simple to be wrong: all subsets are tried. */
import test from 'ava';
import { Random, seeded } from '../../test/support/random.js';
import type { Configuration } from './configuration.js';
import { majorityValue, quorumValue, voteResult } from './quorum.js';

function randomVoters(random: Random, most: number): number[] {
  const ids = new Set<number>();
  for (let left = random.below(most + 1); left > 0; left--) ids.add(1 + random.below(12));
  return [...ids].sort((a, b) => a - b);
}

function randomConfig(random: Random): Configuration {
  const voters = randomVoters(random, 7);
  return {
    voters: voters.length > 0 ? voters : [1],
    outgoing: random.below(2) === 0 ? [] : randomVoters(random, 7),
    learners: [],
  };
}

/** The largest value v of any voter such that more than half of the voters have at least v. */
function simpleMajority(voters: readonly number[], values: ReadonlyMap<number, number>): number {
  if (voters.length === 0) return Infinity;
  const reached = (value: number) => voters.filter((id) => (values.get(id) ?? 0) >= value).length * 2 > voters.length;
  return Math.max(...[0, ...voters.map((id) => values.get(id) ?? 0)].filter(reached));
}

test('a value is agreed on exactly when more than half of each half of a configuration has reached it', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let i = 0; i < 20_000; i++) {
    const config = randomConfig(random);
    // Numbers of one to four digits: ordered as text they would come out differently.
    const values = new Map(
      Array.from({ length: 13 }, (_, id) => [id, random.below(random.pick([10, 100, 5000]))] as const),
    );
    const valueOf = (id: number) => values.get(id) ?? 0;
    const expected = simpleMajority(config.voters, values);
    if (majorityValue(config.voters, valueOf) !== expected)
      t.is(majorityValue(config.voters, valueOf), expected, JSON.stringify([config, [...values]]));
    const joint = Math.min(expected, simpleMajority(config.outgoing, values));
    if (quorumValue(config, valueOf) !== joint)
      t.is(quorumValue(config, valueOf), joint, JSON.stringify([config, [...values]]));
  }
  t.pass();
});

test('an election is decided exactly when the votes that are missing cannot change it', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let i = 0; i < 5_000; i++) {
    const config = randomConfig(random);
    const everyone = [...new Set([...config.voters, ...config.outgoing])];
    const votes = new Map<number, boolean>();
    for (const id of everyone) if (random.below(3) > 0) votes.set(id, random.below(2) === 0);
    // Votes of others must not count.
    votes.set(99, true);
    const missing = everyone.filter((id) => !votes.has(id));
    const outcomes = new Set<boolean>();
    for (let mask = 0; mask < 1 << missing.length; mask++) {
      const all = new Map(votes);
      missing.forEach((id, bit) => all.set(id, (mask & (1 << bit)) !== 0));
      const wins = [config.voters, config.outgoing].every(
        (half) => half.length === 0 || half.filter((id) => all.get(id) === true).length * 2 > half.length,
      );
      outcomes.add(wins);
    }
    const expected = outcomes.size === 2 ? 'pending' : outcomes.has(true) ? 'won' : 'lost';
    if (voteResult(config, votes) !== expected)
      t.is(voteResult(config, votes), expected, JSON.stringify([config, [...votes]]));
  }
  t.pass();
});
