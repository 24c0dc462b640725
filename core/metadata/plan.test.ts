import test from 'ava';
import { MetadataLog, hexOf } from '../../test/support/metadata-log.js';
import { seeded } from '../../test/support/random.js';
import { placeOn, planRebalance } from './plan.js';
import type { Member, MetadataState } from './state.js';

const members = (log: MetadataLog): Member[] => [...log.state.members.values()];
const counts = (owners: Iterable<string | undefined>): Map<string, number> => {
  const load = new Map<string, number>();
  for (const id of owners) load.set(id ?? '', (load.get(id ?? '') ?? 0) + 1);
  return load;
};
const after = (
  state: MetadataState,
  moves: readonly { readonly shard: number; readonly to: string }[],
): Map<string, number> => counts(state.shards.map((s) => moves.find((m) => m.shard === s.shard)?.to ?? s.owner));

test('shards of a dead owner are spread over those that are left, who keep theirs', (t) => {
  const log = MetadataLog.cluster(12, ['s1', 's2', 's3']);
  const rest = members(log).filter((m) => m.id !== 's2');
  const placed = placeOn(log.state, log.ownedBy('s2'), rest);
  t.is(placed.size, 4);
  t.deepEqual(
    [
      ...after(
        log.state,
        [...placed].map(([shard, to]) => ({ shard, to })),
      ).values(),
    ].sort(),
    [6, 6],
  );
});

test('a balanced cluster needs no move', (t) => {
  for (const [shards, count] of [
    [12, 3],
    [13, 3],
    [7, 5],
    [64, 4],
  ] as const) {
    const log = MetadataLog.cluster(
      shards,
      Array.from({ length: count }, (_, i) => `s${i + 1}`),
    );
    const load = [...counts(log.state.shards.map((s) => s.owner)).values()];
    if (Math.max(...load) - Math.min(...load) <= 1 && load.length === count)
      t.deepEqual(planRebalance(log.state, members(log)), [], `${shards} on ${count}`);
  }
  t.pass();
});

test('a server that comes gets its part, from each of the others as little as possible, and nothing else moves', (t) => {
  const log = MetadataLog.cluster(12, ['s1', 's2', 's3']);
  const comer: Member = { ...members(log)[0]!, id: 's4' };
  const moves = planRebalance(log.state, [...members(log), comer]);
  t.is(moves.length, 3);
  t.true(moves.every((m) => m.to === 's4' && log.shard(m.shard).owner === m.from));
  t.deepEqual([...after(log.state, moves).values()], [3, 3, 3, 3]);
});

test('a shard with copies goes to a server that has one rather, and such shards go first', (t) => {
  const ids = ['s1', 's2', 's3'];
  const log = MetadataLog.cluster(12, ids);
  const state = log.state;
  // s3 has lost what it owned to s1 and s2, where each shard's other copy is at s3 or not.
  const shards = state.shards.map((s) => ({ ...s, owner: s.shard % 2 === 0 ? 's1' : 's2' }));
  const at = (member: string) =>
    ({ member, start: state.members.get(member)!.incarnation, worker: 0, state: 'in-sync', rank: 0 }) as const;
  const copySets = shards.map(({ shard, owner }) => ({
    config: 1,
    copies: [at(owner), at(shard < 6 ? 's3' : owner === 's1' ? 's2' : 's1')],
  }));
  const moves = planRebalance({ ...state, shards, copySets }, members(log));
  t.is(moves.length, 4);
  t.true(
    moves.every((m) => m.to === 's3' && m.shard < 6),
    JSON.stringify(moves),
  );
});

test('a member with more memory gets more shards, in proportion', (t) => {
  const log = MetadataLog.cluster(12, ['s1', 's2', 's3'], [2 ** 31, 2 ** 30, 2 ** 30]);
  const moves = planRebalance(log.state, members(log));
  const load = after(log.state, moves);
  t.deepEqual([load.get('s1'), load.get('s2'), load.get('s3')], [6, 3, 3]);
});

test('a server that is to go keeps nothing', (t) => {
  const log = MetadataLog.cluster(12, ['s1', 's2', 's3']);
  const moves = planRebalance(
    log.state,
    members(log).filter((m) => m.id !== 's1'),
  );
  t.is(moves.length, log.ownedBy('s1').length);
  t.is(after(log.state, moves).get('s1'), undefined);
});

test('random clusters: after the plan nobody is above its part, the moves are as few as can be, and a second plan is empty', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let i = 0; i < 200; i++) {
    const ids = Array.from({ length: 1 + random.below(6) }, (_, n) => `s${n + 1}`);
    const log = MetadataLog.cluster(
      1 + random.below(40),
      ids,
      ids.map(() => (1 + random.below(4)) << 28),
    );
    const owners = log.state.shards.map((s) => ({ ...s, owner: random.pick(ids) }));
    const state: MetadataState = { ...log.state, shards: owners };
    const among = members(log).slice(0, 1 + random.below(ids.length));
    const moves = planRebalance(state, among);
    const total = among.reduce((sum, m) => sum + m.memoryBytes, 0);
    const load = after(state, moves);
    for (const m of among) {
      const part = (owners.length * m.memoryBytes) / total;
      t.true(Math.abs((load.get(m.id) ?? 0) - part) < 1, `${m.id} has ${load.get(m.id) ?? 0} of ${part}`);
    }
    // Whatever the rounding, those above the ceiling of their part and the strangers must give up at least that.
    let least = 0;
    for (const [id, n] of counts(owners.map((s) => s.owner))) {
      const m = among.find((one) => one.id === id);
      least += m === undefined ? n : Math.max(0, n - Math.ceil((owners.length * m.memoryBytes) / total - 1e-6));
    }
    t.true(
      moves.length >= least,
      `${moves.length} < ${least}: ${JSON.stringify([...counts(owners.map((s) => s.owner))])} ${JSON.stringify(among.map((m) => [m.id, m.memoryBytes / total]))}`,
    );
    const again: MetadataState = {
      ...state,
      shards: owners.map((s) => ({ ...s, owner: moves.find((m) => m.shard === s.shard)?.to ?? s.owner })),
    };
    t.deepEqual(planRebalance(again, among), []);
  }
});

test('moves under way count as done', (t) => {
  const log = MetadataLog.cluster(4, ['s1', 's2']);
  for (const s of log.state.shards) log.open(s.shard, 100 + s.shard);
  const from = log.ownedBy('s1');
  log.do({ t: 'shard-move', shard: from[0]!, epoch: log.shard(from[0]!).epoch, to: 's2' });
  const moves = planRebalance(log.state, members(log));
  t.deepEqual(
    moves.map((m) => [m.from, m.to]),
    [['s2', 's1']],
  );
  t.not(moves[0]!.shard, from[0]!);
  t.is(log.state.members.get('s1')!.incarnation, hexOf(1));
});

/** The state when all of these moves are done, with those under way. */
const done = (
  state: MetadataState,
  planned: readonly { readonly shard: number; readonly to: string }[],
): MetadataState => {
  const to = new Map([...state.moves, ...planned].map((m) => [m.shard, m.to]));
  return { ...state, shards: state.shards.map((s) => ({ ...s, owner: to.get(s.shard) ?? s.owner ?? '' })), moves: [] };
};

test('random moves under way: no shard is planned to where it is or while it moves, and the shards are spread when all moves are done', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let i = 0; i < 300; i++) {
    const ids = Array.from({ length: 2 + random.below(5) }, (_, n) => `s${n + 1}`);
    const log = MetadataLog.cluster(1 + random.below(40), ids);
    const shards = log.state.shards.map((s) => ({ ...s, owner: random.pick(ids) }));
    const moves = shards
      .filter(() => random.below(4) === 0)
      .map((s) => ({ shard: s.shard, to: random.pick(ids.filter((id) => id !== s.owner)), planned: 1 }));
    const state: MetadataState = { ...log.state, shards, moves };
    const plan = planRebalance(state, members(log));
    for (const { shard, from, to } of plan) {
      t.is(from, shards[shard]!.owner);
      t.not(from, to);
      t.false(
        moves.some((m) => m.shard === shard),
        `shard ${shard} is under way`,
      );
    }
    const part = shards.length / ids.length;
    const load = counts(done(state, plan).shards.map((s) => s.owner));
    const coming = counts(moves.map((m) => m.to));
    if (ids.every((id) => (coming.get(id) ?? 0) <= Math.floor(part))) {
      for (const id of ids)
        t.true(Math.abs((load.get(id) ?? 0) - part) < 1, `${id} has ${load.get(id) ?? 0} of ${part}`);
      t.deepEqual(planRebalance(done(state, plan), members(log)), []);
    } else {
      const next = done(state, plan);
      const last = counts(done(next, planRebalance(next, members(log))).shards.map((s) => s.owner));
      for (const id of ids)
        t.true(Math.abs((last.get(id) ?? 0) - part) < 1, `${id} has ${last.get(id) ?? 0} of ${part} in the end`);
    }
  }
});
