import test from 'ava';
import { FarkvError } from '../errors.js';
import { encodeValue } from '../protocol/value.js';
import { bootstrapOf } from '../../test/support/metadata-log.js';
import { Random, seeded } from '../../test/support/random.js';
import {
  encodeProposal,
  decodeProposal,
  PROPOSALS_MAX,
  type Command,
  type MemberJoin,
  type ShardOpened,
} from './commands.js';
import { FORMAT_NEWEST } from './format.js';
import { MetadataMachine } from './machine.js';
import { reduce } from './reduce.js';
import type { Region, Shard } from './state.js';

const PROPOSER = 'aa'.repeat(8);
const bootstrap = bootstrapOf(6, ['s1', 's2', 's3']);
const incarnation = (n: number): string => n.toString(16).padStart(16, '0');
const region = (segment: number, rkey = '7'): Region => ({
  provider: 'shm',
  kind: 'heap',
  segment,
  tag: 1,
  bytes: 4096,
  remoteAddress: '4096',
  rkey,
});

function join(id: string, n: number, replaces?: number, more: Partial<MemberJoin> = {}): MemberJoin {
  return {
    t: 'member-join',
    id,
    incarnation: incarnation(n),
    ...(replaces === undefined ? {} : { replaces: incarnation(replaces) }),
    instance: incarnation(1000 + id.charCodeAt(1)),
    control: ['127.0.0.1:7400'],
    memoryBytes: 1 << 30,
    fabric: [
      { provider: 'tcp', address: '127.0.0.1:7500', worker: 0 },
      { provider: 'tcp', address: '127.0.0.1:7501', worker: 1 },
    ],
    ...more,
  };
}

/** A machine and its one proposer. */
class Log {
  readonly machine = new MetadataMachine();
  #sequence = 0;

  try(command: Command): string {
    const { outcome } = this.machine.apply(encodeProposal({ proposer: PROPOSER, sequence: ++this.#sequence, command }));
    return outcome === 'duplicate' ? outcome : outcome.ok ? 'ok' : outcome.code;
  }

  do(...commands: Command[]): this {
    for (const c of commands) if (this.try(c) !== 'ok') throw new Error(`refused: ${JSON.stringify(c)}`);
    return this;
  }

  shard(n: number): Shard {
    return this.machine.state.shards[n]!;
  }
}

function opened(s: Shard, n: number, memberIncarnation: number, regions = [region(0)]): ShardOpened {
  return {
    t: 'shard-opened',
    shard: s.shard,
    owner: s.owner!,
    memberIncarnation: incarnation(memberIncarnation),
    epoch: s.epoch,
    incarnation: incarnation(n),
    layoutEpoch: 1,
    buckets: 64,
    regions,
  };
}

test('the first bootstrap makes the cluster and later ones change nothing', (t) => {
  const log = new Log().do(bootstrap);
  t.is(log.try({ ...bootstrap, clusterId: '4f'.repeat(16) }), 'ERR_BUSY');
  t.is(log.machine.state.clusterId, '1f'.repeat(16));
  t.is(log.machine.state.shards.length, 6);
});

test('nothing else is taken before the cluster exists', (t) => {
  t.is(new Log().try(join('s1', 1)), 'ERR_NO_LEADER');
});

test('shards are spread evenly over members and their data-plane workers', (t) => {
  const log = new Log().do(bootstrap, join('s1', 1), join('s2', 1), join('s3', 1), { t: 'assign-shards' });
  const { shards } = log.machine.state;
  for (const id of ['s1', 's2', 's3'])
    t.deepEqual(
      shards
        .filter((s) => s.owner === id)
        .map((s) => s.worker)
        .sort(),
      [0, 1],
    );
  t.true(shards.every((s) => s.epoch === 1 && s.incarnation === undefined));
  t.is(log.try({ t: 'assign-shards' }), 'ERR_BUSY');
});

test('a shard that may be opening keeps its worker when others are assigned', (t) => {
  const log = new Log().do(bootstrap, join('s1', 1), join('s2', 1), { t: 'assign-shards' });
  const { state } = log.machine;
  const shards = state.shards.map(({ owner, ...s }) => (s.shard === 0 ? s : { ...s, owner: owner!, worker: 1 }));
  const reduced = reduce({ ...state, shards }, { t: 'assign-shards' });
  if (!reduced.ok) return t.fail(reduced.message);
  t.not(reduced.state.shards[0]?.owner, undefined);
  t.true(reduced.state.shards.slice(1).every(({ worker }) => worker === 1));
});

test('a restarted member has its shards closed under a new epoch', (t) => {
  const log = new Log().do(bootstrap, join('s1', 1), join('s2', 1), { t: 'assign-shards' });
  const mine = log.machine.state.shards.find((s) => s.owner === 's1')!;
  const other = log.machine.state.shards.find((s) => s.owner === 's2')!;
  log.do(opened(mine, 50, 1), opened(other, 51, 1));
  log.do(join('s1', 2, 1));
  t.like(log.shard(mine.shard), { owner: 's1', epoch: 2, incarnation: undefined, regions: [], layoutEpoch: 0 });
  t.like(log.shard(other.shard), { owner: 's2', epoch: 1, incarnation: incarnation(51) });
});

test('a join that was overtaken by a later start of the same server is refused', (t) => {
  const log = new Log().do(bootstrap, join('s1', 1), join('s1', 3, 1));
  t.is(log.try(join('s1', 2, 1)), 'ERR_BUSY');
  t.is(log.machine.state.members.get('s1')?.incarnation, incarnation(3));
  t.is(log.try(join('s1', 3, 3)), 'ERR_BUSY');
});

test('a stranger, and a known server with another data directory, cannot join', (t) => {
  const log = new Log().do(bootstrap, join('s1', 1));
  t.is(log.try(join('s9', 1)), 'ERR_CONFIG');
  t.is(log.try(join('s1', 2, 1, { instance: incarnation(77) })), 'ERR_DATA_DIR');
});

test('only the present owner opens a shard, once in an epoch', (t) => {
  const log = new Log().do(bootstrap, join('s1', 1), { t: 'assign-shards' });
  const s = log.shard(0);
  t.is(log.try({ ...opened(s, 50, 1), owner: 's2' }), 'ERR_NOT_OWNER');
  t.is(log.try({ ...opened(s, 50, 1), epoch: 2 }), 'ERR_NOT_OWNER');
  t.is(log.try(opened(s, 50, 9)), 'ERR_NOT_OWNER');
  t.is(log.try({ ...opened(s, 50, 1), shard: 600 }), 'ERR_CONFIG');
  log.do(opened(s, 50, 1));
  t.is(log.try(opened(s, 51, 1)), 'ERR_BUSY');
  t.like(log.shard(0), { incarnation: incarnation(50), layoutEpoch: 1, buckets: 64 });
});

test('layout changes are deltas that must follow each other', (t) => {
  const log = new Log().do(bootstrap, join('s1', 1), { t: 'assign-shards' });
  log.do(opened(log.shard(0), 50, 1, [region(0), region(1)]));
  const delta: Command = {
    t: 'shard-layout',
    shard: 0,
    incarnation: incarnation(50),
    from: 1,
    layoutEpoch: 4,
    buckets: 128,
    add: [region(2), region(1, '8')],
    remove: [{ provider: 'shm', kind: 'heap', segment: 0 }],
  };
  const before = log.machine.state;
  log.do(delta);
  t.deepEqual(log.shard(0).regions, [region(1, '8'), region(2)]);
  t.like(log.shard(0), { layoutEpoch: 4, buckets: 128 });
  t.is(log.try(delta), 'ERR_BUSY');
  t.is(log.try({ ...delta, from: 4, incarnation: incarnation(51) }), 'ERR_NOT_OWNER');
  t.deepEqual(before.shards[0]?.regions, [region(0), region(1)], 'a state that somebody holds does not change');
});

test('a segment has a region for each device, which come and go by themselves', (t) => {
  const log = new Log().do(bootstrap, join('s1', 1), { t: 'assign-shards' });
  const of = (device: number, rkey: string): Region => ({ ...region(0, rkey), provider: 'verbs', device });
  const first: Region = { ...region(0, '1'), provider: 'verbs' };
  log.do(opened(log.shard(0), 50, 1, [first, of(1, '2')]));
  log.do({
    ...{ t: 'shard-layout', shard: 0, incarnation: incarnation(50), from: 1, layoutEpoch: 2, buckets: 64 },
    add: [{ ...of(1, '3'), segment: 1 }],
    remove: [{ provider: 'verbs', device: 1, kind: 'heap', segment: 0 }],
  });
  t.deepEqual(log.shard(0).regions, [first, { ...of(1, '3'), segment: 1 }]);
});

test('what did not change keeps its identity', (t) => {
  const log = new Log().do(bootstrap, join('s1', 1), { t: 'assign-shards' });
  const before = log.machine.state;
  log.do(opened(log.shard(2), 50, 1));
  const after = log.machine.state;
  t.not(after.shards[2], before.shards[2]);
  for (const i of [0, 1, 3, 4, 5]) t.is(after.shards[i], before.shards[i]);
  t.is(after.members, before.members);
  t.is(after.mapEpoch, before.mapEpoch + 1);
});

test('a repeated proposal takes effect once, in any order within the window', (t) => {
  const machine = new MetadataMachine();
  const bytes = (sequence: number, command: Command = { t: 'no-op' }): Uint8Array =>
    encodeProposal({ proposer: PROPOSER, sequence, command });
  const outcome = (sequence: number): unknown => machine.apply(bytes(sequence)).outcome;
  machine.apply(bytes(3, bootstrap));
  t.is(outcome(3), 'duplicate');
  t.deepEqual(outcome(1), { ok: true });
  t.is(outcome(1), 'duplicate');
  t.deepEqual(outcome(2), { ok: true });
  t.deepEqual(outcome(3 + PROPOSALS_MAX - 1), { ok: true });
  t.is(outcome(3), 'duplicate');
  t.deepEqual(outcome(500), { ok: true });
  t.is(outcome(4), 'duplicate');
  t.is(outcome(500), 'duplicate');
  t.deepEqual(
    machine.apply(encodeProposal({ proposer: 'bb'.repeat(8), sequence: 3, command: { t: 'no-op' } })).outcome,
    { ok: true },
  );
});

test('an entry of a later version is refused by name and changes nothing', (t) => {
  const { machine } = new Log().do(bootstrap);
  const before = machine.state;
  const entry = { format: 1, proposer: PROPOSER, sequence: 9, command: { t: 'no-op' } };
  for (const later of [
    { ...entry, format: FORMAT_NEWEST + 1 },
    { ...entry, command: { t: 'split-shard' } },
  ]) {
    t.throws(() => machine.apply(encodeValue(later)), {
      instanceOf: FarkvError,
      code: 'ERR_PROTOCOL_VERSION',
      message: /upgrade this server/,
    });
  }
  t.is(machine.state, before);
  t.notThrows(() => machine.apply(encodeValue(entry)));
});

test('malformed entries are refused field by field', (t) => {
  const entry = { format: 1, proposer: PROPOSER, sequence: 9, command: join('s1', 1) };
  const bad: unknown[] = [
    null,
    5,
    {},
    { ...entry, format: 0 },
    { ...entry, proposer: 'x' },
    { ...entry, sequence: -1 },
    { ...entry, command: null },
    { ...entry, command: { t: 5 } },
    { ...entry, command: { t: '__proto__' } },
    { ...entry, command: { ...entry.command, id: '' } },
    { ...entry, command: { ...entry.command, incarnation: 'ABCDEF' } },
    { ...entry, command: { ...entry.command, control: [5] } },
    { ...entry, command: { ...entry.command, fabric: [{ provider: 'pigeon', address: '', worker: 0 }] } },
    { ...entry, command: { ...entry.command, memoryBytes: 2 ** 60 } },
    { ...entry, command: { ...bootstrap, shards: 1e6 } },
  ];
  for (const value of bad)
    t.throws(() => decodeProposal(encodeValue(value)), { instanceOf: FarkvError }, JSON.stringify(value));
});

/** Commands that mostly make sense in the present state. */
function randomCommand(random: Random, machine: MetadataMachine, next: () => number): Command {
  const { state } = machine;
  const id = random.pick(['s1', 's2', 's3', 's4']);
  const present = state.members.get(id);
  const shard = state.shards.length === 0 ? undefined : random.pick(state.shards);
  const stale = random.below(10) === 0 ? 1 : 0;
  switch (random.below(8)) {
    case 0:
      return bootstrap;
    case 1:
      return { ...join(id, next()), ...(present === undefined || stale ? {} : { replaces: present.incarnation }) };
    case 2:
      return { t: 'assign-shards' };
    case 3: {
      const owner = state.members.get(shard?.owner ?? '');
      if (shard === undefined || owner === undefined) return { t: 'no-op' };
      return {
        t: 'shards-taken',
        id: owner.id,
        incarnation: owner.incarnation,
        shards: [
          {
            ...{ shard: shard.shard, epoch: Math.max(0, shard.epoch - stale), to: id },
            config: state.copySets[shard.shard]?.config ?? 0,
          },
        ],
      };
    }
    case 4:
    case 5: {
      if (shard?.owner === undefined) return { t: 'no-op' };
      const memberIncarnation = state.members.get(shard.owner)?.incarnation ?? incarnation(0);
      return { ...opened(shard, next(), 0), memberIncarnation, epoch: Math.max(0, shard.epoch - stale) };
    }
    default: {
      if (shard?.incarnation === undefined) return { t: 'no-op' };
      const remove =
        random.below(2) === 0 && shard.regions[0] !== undefined
          ? [{ provider: 'shm' as const, kind: 'heap' as const, segment: shard.regions[0].segment }]
          : [];
      return {
        t: 'shard-layout',
        shard: shard.shard,
        incarnation: shard.incarnation,
        from: shard.layoutEpoch - stale + stale,
        layoutEpoch: shard.layoutEpoch + 1,
        buckets: shard.buckets + 1,
        add: [region(random.below(40))],
        remove,
      };
    }
  }
}

test('machines that applied the same entries are equal, also by way of a snapshot, and epochs name one incarnation', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let round = 0; round < 20; round++) {
    const a = new MetadataMachine();
    const b = new MetadataMachine();
    let counter = 0;
    const named = new Map<string, string>();
    let outcomes = 0;
    for (let i = 1; i <= 300; i++) {
      const sequence = random.below(8) === 0 ? Math.max(1, i - random.below(20)) : i;
      const bytes = encodeProposal({
        proposer: PROPOSER,
        sequence,
        command: randomCommand(random, a, () => ++counter),
      });
      const before = a.state;
      const applied = a.apply(bytes);
      t.deepEqual(b.apply(bytes).outcome, applied.outcome);
      if (applied.outcome !== 'duplicate' && applied.outcome.ok) outcomes += 1;
      for (const [n, s] of a.state.shards.entries()) {
        t.true(s.epoch >= (before.shards[n]?.epoch ?? 0));
        if (s.incarnation === undefined) continue;
        const name = `${n}/${s.epoch}`;
        t.is(named.get(name) ?? s.incarnation, s.incarnation);
        named.set(name, s.incarnation);
        t.is(a.state.members.get(s.owner ?? '') === undefined, false, 'an open shard has an owner that is a member');
      }
      if (i % 97 === 0) b.restore(a.snapshot());
    }
    t.deepEqual(b.state, a.state);
    t.deepEqual(b.snapshot(), a.snapshot());
    t.true(outcomes > 50);
  }
});

test('damaged entries and snapshots are refused and change nothing', (t) => {
  const random = seeded(t, import.meta.filename);
  const log = new Log().do(bootstrap, join('s1', 1), { t: 'assign-shards' });
  log.do(opened(log.shard(0), 50, 1));
  const { machine } = log;
  const good = [
    machine.snapshot(),
    encodeProposal({ proposer: PROPOSER, sequence: 400, command: join('s2', 5) }),
  ] as const;
  for (let i = 0; i < 3000; i++) {
    const which = random.below(2);
    const bytes = Uint8Array.from(good[which]!);
    for (let j = 1 + random.below(3); j > 0; j--) bytes[random.below(bytes.length)] = random.next() & 0xff;
    const cut = random.below(3) === 0 ? bytes.subarray(0, random.below(bytes.length)) : bytes;
    const before = machine.state;
    try {
      if (which === 0) new MetadataMachine().restore(cut);
      else decodeProposal(cut);
    } catch (e) {
      t.true(e instanceof FarkvError, String(e));
      t.is(machine.state, before);
    }
  }
});
