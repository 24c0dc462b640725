/**
 * What the metadata says of a shard that is copied before it changes hands: in which order, by whom, and what calls it
 * off.
 */
import test from 'ava';
import { joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import type { ShardCopy, ShardMove, ShardOpened, ShardReleased } from './commands.js';
import { MetadataMachine } from './machine.js';

const hex = (n: number): string => n.toString(16).padStart(16, '0');

/** Shard 0 is open at s1 and moves to s2. */
function moving(): {
  log: MetadataLog;
  copy: (phase: 'last' | 'copied', name?: number) => ShardCopy;
  move: (to: string) => ShardMove;
  released: ShardReleased;
} {
  const log = MetadataLog.cluster(2, ['s1', 's2', 's3']);
  const shard = log.state.shards.find((s) => s.owner === 's1')!.shard;
  log.open(shard, 7);
  const { epoch } = log.shard(shard);
  const incarnation = (id: string): string => log.state.members.get(id)!.incarnation;
  const s2 = incarnation('s2');
  const move = (to: string): ShardMove => ({ t: 'shard-move', shard, epoch, to });
  log.do(move('s2'));
  return {
    log,
    move,
    copy: (phase, name = 1) => {
      const { planned } = log.state.moves.find((m) => m.shard === shard) ?? { planned: 0 };
      return {
        t: 'shard-copy',
        shard,
        epoch,
        to: 's2',
        memberIncarnation: s2,
        phase,
        worker: 0,
        copy: hex(name),
        planned,
      };
    },
    released: { t: 'shard-released', shard, owner: 's1', memberIncarnation: incarnation('s1'), epoch, copy: hex(1) },
  };
}

/** s2 opens the shard with that copy. */
function openedWith(log: MetadataLog, { shard, epoch }: ShardReleased, name: number): ShardOpened {
  const memberIncarnation = log.state.members.get('s2')!.incarnation;
  return {
    t: 'shard-opened',
    shard,
    owner: 's2',
    memberIncarnation,
    epoch: epoch + 1,
    incarnation: hex(name),
    layoutEpoch: 1,
    buckets: 64,
    regions: [],
  };
}

test('a copy is nearly done, then done; then nothing calls the move off, and the owner gives the shard up', (t) => {
  const { log, copy, move, released } = moving();
  t.regex(log.try(copy('copied')), /ERR_BUSY/);
  log.do(copy('last'));
  t.regex(log.try(copy('last', 2)), /ERR_BUSY/);
  log.do(copy('copied'));
  for (const to of ['s1', 's3']) t.regex(log.try(move(to)), /has been copied to s2/);
  log.do(released);
  t.like(log.shard(released.shard), { owner: 's1', epoch: released.epoch });
  for (const to of ['s1', 's3']) t.regex(log.try(move(to)), /has been copied to s2/);
  log.do(openedWith(log, released, 1));
  t.like(log.shard(released.shard), { owner: 's2', epoch: released.epoch + 1, incarnation: hex(1) });
  t.deepEqual(log.state.moves, []);
});

test('a shard is given for the copy that there is, and to nobody who opens it with another', (t) => {
  const { log, copy, move, released } = moving();
  log.do(copy('last'));
  t.regex(log.try(released), /not to be given up/);
  log.do(copy('copied'));
  t.regex(log.try({ ...released, copy: hex(2) }), /not to be given up/);
  t.regex(log.try(openedWith(log, released, 1)), /ERR_NOT_OWNER/);
  log.do(released);
  t.regex(log.try(openedWith(log, released, 2)), /ERR_NOT_OWNER/);
  log.do({ ...move('s1'), lost: hex(2) });
  t.regex(log.try(openedWith(log, released, 1)), /ERR_NOT_OWNER/);
  // What the owner said of the copy that was lost is not for the next one.
  log.do(move('s2'));
  log.do(copy('last', 3), copy('copied', 3));
  t.regex(log.try(released), /not to be given up/);
  t.is(log.state.moves[0]?.phase, 'copied');
});

test('a copy that is done is called off when it is lost, and then only', (t) => {
  for (const given of [false, true]) {
    const { log, copy, move, released } = moving();
    log.do(copy('last'), copy('copied'));
    if (given) log.do(released);
    t.regex(log.try({ ...move('s1'), lost: hex(7) }), /has been copied/);
    t.regex(log.try({ ...move('s3'), lost: hex(2) }), /has been copied/);
    log.do({ ...move('s1'), lost: hex(2) });
    t.deepEqual(log.state.moves, []);
    t.like(log.shard(released.shard), { owner: 's1', epoch: released.epoch, incarnation: hex(7) });
  }
});

test('an owner that starts again after it gave a shard up for a copy has not lost what is in it, and nobody changes workers for it', (t) => {
  const { log, copy, released } = moving();
  log.do(copy('last'), copy('copied'), released, joinOf('s1', 9, 1));
  t.like(log.shard(released.shard), { owner: 's2', epoch: released.epoch + 1, incarnation: undefined });
  log.do(joinOf('s3', 8, 3), openedWith(log, released, 1));
  t.like(log.shard(released.shard), { owner: 's2', incarnation: hex(1) });
});

test('the copy that a shard was given with is known until its new owner opens it, whatever with', (t) => {
  const { log, copy, move, released } = moving();
  const { shard, epoch } = released;
  log.do(copy('last'), copy('copied'), {
    t: 'shards-taken',
    id: 's1',
    incarnation: released.memberIncarnation,
    shards: [{ shard, epoch, to: 's2' }],
  });
  t.like(log.state.moves[0], { shard, to: 's2', phase: 'released', copy: hex(1) });
  for (const to of ['s1', 's2', 's3']) t.regex(log.try({ ...move(to), epoch: epoch + 1 }), /ERR_BUSY/);
  for (const phase of ['last', 'copied'] as const) t.regex(log.try({ ...copy(phase), epoch: epoch + 1 }), /ERR_BUSY/);
  const again = new MetadataMachine();
  again.restore(log.machine.snapshot());
  t.deepEqual(again.state, log.state);
  log.open(shard, 9);
  t.deepEqual(log.state.moves, []);
});

test('what was copied when its owner died is known in the same way, until its new owner starts again', (t) => {
  for (const [end, left] of [
    [joinOf('s2', 9, 2), 0],
    [{ t: 'no-op' }, 1],
  ] as const) {
    const { log, copy, released } = moving();
    const { shard, epoch, memberIncarnation } = released;
    log.do(copy('last'), copy('copied'), {
      t: 'shards-taken',
      id: 's1',
      incarnation: memberIncarnation,
      shards: [{ shard, epoch, to: 's2' }],
    });
    t.like(log.state.moves[0], { phase: 'released', copy: hex(1) });
    log.do(end);
    t.is(log.state.moves.length, left);
  }
  const {
    log,
    copy,
    released: { shard, epoch, memberIncarnation },
  } = moving();
  log.do(copy('last'), {
    t: 'shards-taken',
    id: 's1',
    incarnation: memberIncarnation,
    shards: [{ shard, epoch, to: 's2' }],
  });
  t.deepEqual(log.state.moves, []);
});

test('a move is called off as the one that was seen, and not if another has taken its place', (t) => {
  const { log, move } = moving();
  const seen = (): number => log.state.moves[0]!.planned;
  const first = seen();
  log.do(move('s3'));
  t.not(seen(), first);
  t.regex(log.try({ ...move('s1'), planned: first }), /^ERR_BUSY: the move of shard \d+ .* is another now$/);
  t.is(log.state.moves[0]?.to, 's3');
  t.is(log.try({ ...move('s1'), planned: seen() }), 'ok');
  t.deepEqual(log.state.moves, []);
  t.regex(log.try({ ...move('s3'), planned: first }), /is over/);
});

test('a move that is called off knows nothing of its copy, also when it is planned again', (t) => {
  const { log, copy, move } = moving();
  const late = copy('last');
  log.do(copy('last'), move('s1'));
  t.regex(log.try(copy('copied')), /does not move/);
  log.do(move('s2'));
  t.regex(log.try(late), /planned anew/);
  t.regex(log.try(copy('copied')), /at its beginning/);
  log.do(copy('last', 2));
  t.regex(log.try(copy('copied', 1)), /copied anew/);
  log.do(copy('copied', 2));
});

test('a new owner that starts again has lost its copy, and the move is withdrawn', (t) => {
  for (const steps of [[], ['last'], ['last', 'copied']] as const) {
    const { log, copy, move } = moving();
    log.do(...steps.map((phase) => copy(phase)), joinOf('s2', 9, 2));
    t.deepEqual(log.state.moves, []);
    t.regex(log.try(copy('last')), /ERR_BUSY/);
    log.do(move('s2'));
    t.regex(log.try(copy('last')), /started again/);
  }
});

test('a snapshot keeps how far copies are', (t) => {
  const { log, copy } = moving();
  log.do(copy('last'));
  const again = new MetadataMachine();
  again.restore(log.machine.snapshot());
  t.deepEqual(again.state, log.state);
});
