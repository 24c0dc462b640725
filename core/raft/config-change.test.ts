/** Which configuration may follow which, and how one is written in an entry. */
import test from 'ava';
import { seeded } from '../../test/support/random.js';
import { leaveJoint, nextConfiguration, type MemberChange } from './config-change.js';
import {
  decodeConfiguration,
  encodeConfiguration,
  isConfiguration,
  isJoint,
  type Configuration,
} from './configuration.js';

const config = (voters: number[], outgoing: number[] = [], learners: number[] = []): Configuration => ({
  voters,
  outgoing,
  learners,
});

function subsets<T>(of: readonly T[]): T[][] {
  return Array.from({ length: 1 << of.length }, (_, mask) => of.filter((_item, bit) => (mask & (1 << bit)) !== 0));
}

/** All sets of members that are a quorum. */
function quorums({ voters, outgoing }: Configuration): number[][] {
  const everyone = [...new Set([...voters, ...outgoing])];
  return subsets(everyone).filter((set) =>
    [voters, outgoing].every(
      (half) => half.length === 0 || half.filter((id) => set.includes(id)).length * 2 > half.length,
    ),
  );
}

function everyQuorumMeets(a: Configuration, b: Configuration): boolean {
  const others = quorums(b);
  return quorums(a).every((one) => others.every((other) => one.some((id) => other.includes(id))));
}

test('every quorum of a configuration meets every quorum of the one that follows it', (t) => {
  const everyone = [1, 2, 3, 4, 5];
  for (const voters of subsets(everyone).filter((set) => set.length > 0)) {
    for (const wanted of subsets(everyone).filter((set) => set.length > 0)) {
      const changes: MemberChange[] = everyone.flatMap((id) =>
        wanted.includes(id) === voters.includes(id)
          ? []
          : [{ kind: wanted.includes(id) ? 'voter' : 'remove', id } as const],
      );
      if (changes.length === 0) continue;
      const before = config(voters);
      const next = nextConfiguration(before, { changes });
      if (!next.ok) {
        t.fail(`${voters.join()} to ${wanted.join()}: ${next.reason}`);
        return;
      }
      const met = everyQuorumMeets(before, next.config) && everyQuorumMeets(next.config, leaveJoint(next.config));
      if (!met) t.fail(`${voters.join()} to ${wanted.join()} by ${JSON.stringify(next.config)}`);
      t.deepEqual(leaveJoint(next.config).voters, wanted);
    }
  }
});

test('a change of one voter is one step, of several a joint configuration, of learners one step', (t) => {
  const next = (changes: MemberChange[], joint = false) =>
    nextConfiguration(config([1, 2, 3], [], [4]), { changes, joint });
  t.deepEqual(next([{ kind: 'voter', id: 5 }]), { ok: true, config: config([1, 2, 3, 5], [], [4]) });
  t.deepEqual(next([{ kind: 'voter', id: 4 }]), { ok: true, config: config([1, 2, 3, 4]) });
  t.deepEqual(next([{ kind: 'learner', id: 1 }]), { ok: true, config: config([2, 3], [], [1, 4]) });
  t.deepEqual(
    next([
      { kind: 'remove', id: 1 },
      { kind: 'voter', id: 4 },
    ]),
    { ok: true, config: config([2, 3, 4], [1, 2, 3]) },
  );
  t.deepEqual(
    next([
      { kind: 'learner', id: 9 },
      { kind: 'remove', id: 4 },
    ]),
    { ok: true, config: config([1, 2, 3], [], [9]) },
  );
  t.deepEqual(next([{ kind: 'voter', id: 5 }], true), { ok: true, config: config([1, 2, 3, 5], [1, 2, 3], [4]) });
  // Demoted in a joint configuration: it votes in the old half and learns in the new.
  t.deepEqual(
    next([
      { kind: 'learner', id: 1 },
      { kind: 'remove', id: 2 },
    ]),
    { ok: true, config: config([3], [1, 2, 3], [1, 4]) },
  );
});

test('changes that mean nothing, or would leave nobody to vote, are refused', (t) => {
  const of = (changes: MemberChange[], base = config([1], [], [2])) => nextConfiguration(base, { changes });
  t.deepEqual(of([{ kind: 'remove', id: 1 }]), { ok: false, reason: 'no-voters' });
  t.deepEqual(of([{ kind: 'learner', id: 1 }]), { ok: false, reason: 'no-voters' });
  for (const changes of [
    [],
    [{ kind: 'voter', id: 1 }],
    [{ kind: 'learner', id: 2 }],
    [{ kind: 'remove', id: 7 }],
    [{ kind: 'voter', id: 0 }],
    [{ kind: 'voter', id: 1.5 }],
    [
      { kind: 'voter', id: 3 },
      { kind: 'remove', id: 3 },
    ],
  ] as MemberChange[][]) {
    t.deepEqual(of(changes), { ok: false, reason: 'change-invalid' }, JSON.stringify(changes));
  }
  t.deepEqual(of([{ kind: 'voter', id: 3 }], config([1, 2], [1])), { ok: false, reason: 'change-in-progress' });
});

test('a configuration comes back from its bytes, and no other bytes are one', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let i = 0; i < 2_000; i++) {
    const ids = [
      ...new Set(
        Array.from({ length: 1 + random.below(9) }, () =>
          random.below(2) === 0 ? 1 + random.below(9) : 1 + random.next() * 2 ** 21,
        ),
      ),
    ].sort((a, b) => a - b);
    const learners = ids.filter(() => random.below(3) === 0);
    const voters = ids.filter((id) => !learners.includes(id));
    const outgoing = ids.filter(() => random.below(3) === 0);
    const made = config(voters, outgoing, learners);
    const bytes = encodeConfiguration(made);
    t.deepEqual(decodeConfiguration(bytes), voters.length > 0 ? made : undefined);
    if (voters.length === 0) continue;
    t.is(decodeConfiguration(bytes.subarray(0, random.below(bytes.length))), undefined);
    t.is(decodeConfiguration(Uint8Array.from([...bytes, 0])), undefined);
    t.is(decodeConfiguration(Uint8Array.from([9, ...bytes.subarray(1)])), undefined, 'another format');
  }
  t.true(isJoint(config([1], [2])));
});

test('what is no configuration is told apart', (t) => {
  for (const bad of [
    undefined,
    7,
    {},
    { voters: [1] },
    config([]),
    config([2, 1]),
    config([1, 1]),
    config([1], [], [1]),
    config([1.5]),
    config([0]),
    config([1], [2, 2]),
  ]) {
    t.false(isConfiguration(bad), JSON.stringify(bad));
  }
  t.true(isConfiguration(config([1, 2], [2, 3], [3])), 'a learner that still votes in the outgoing half');
});
