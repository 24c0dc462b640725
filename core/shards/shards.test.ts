/**
 * The rules of index.ts one by one: what is asked for, and what is not. The whole life over a data plane is in
 * server/shards/*.test.ts, and under faults in test/sim.
 */
import test from 'ava';
import { bootstrapOf, hexOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import { COPY, Rig } from '../../test/support/shards-rig.js';
import type { Command } from '../metadata/commands.js';

/** Shard 0 is s1's, and is served. */
function serving(): Rig {
  const rig = new Rig(
    new MetadataLog().do(bootstrapOf(1, ['s1', 's2']), joinOf('s1', 1), { t: 'assign-shards' }, joinOf('s2', 2)),
  );
  rig.see();
  rig.done('open');
  rig.shards.lastRunOver();
  rig.see(rig.announce(hexOf(101)));
  rig.done('announce');
  rig.done('serve');
  return rig;
}

/** It moves to s2, and is sealed. */
function sealed(): Rig {
  const rig = serving();
  rig.see(rig.move('s2'));
  rig.see(rig.copy('last'));
  rig.done('wait');
  rig.done('seal');
  return rig;
}

/** Shard 0 is s2's and open there, and moves to s1. */
function coming(): Rig {
  const log = new MetadataLog()
    .do(bootstrapOf(1, ['s1', 's2']), joinOf('s2', 2), { t: 'assign-shards' }, joinOf('s1', 1))
    .open(0, 77);
  const rig = new Rig(log);
  rig.see({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  return rig;
}

/** All of it was copied once. */
function nearly(): Rig {
  const rig = coming();
  rig.done('open');
  rig.done('copy');
  return rig;
}

test('a shard is opened, announced, and served when the last run is over, each when the one before is done', (t) => {
  const rig = new Rig(new MetadataLog().do(bootstrapOf(1, ['s1', 's2']), joinOf('s1', 1), { t: 'assign-shards' }));
  t.deepEqual(rig.see(), ['open']);
  t.deepEqual(rig.done('open'), ['announce']);
  t.deepEqual(rig.done('announce'), ['announce'], 'the metadata does not have it');
  t.deepEqual(rig.see(rig.announce(hexOf(101))), []);
  t.deepEqual(rig.done('announce'), []);
  rig.shards.lastRunOver();
  t.deepEqual(rig.asked(), ['serve']);
  t.deepEqual(rig.shards.serving, []);
  t.deepEqual(rig.done('serve'), []);
  t.deepEqual(rig.shards.serving, [0]);
});

test('nothing is opened before the metadata names this start of the server', (t) => {
  const rig = new Rig(new MetadataLog().do(bootstrapOf(1, ['s1', 's2']), joinOf('s1', 9), { t: 'assign-shards' }));
  t.deepEqual(rig.see(), []);
  t.deepEqual(rig.see(joinOf('s1', 1, 9)), ['open']);
});

test('a shard that moves is sealed for its copy when leases are short, paused when the copy is complete, and given up when the pause is done', (t) => {
  const rig = serving();
  t.deepEqual(rig.see(rig.move('s2')), []);
  t.deepEqual(rig.see(rig.copy('last')), ['leases 100', 'wait 1010']);
  t.deepEqual(rig.done('wait'), [`seal ${COPY}`]);
  t.deepEqual(rig.done('seal'), ['wait 3000']);
  t.deepEqual(rig.see({ t: 'server-drain', id: 's1', draining: true }), [], 'it is not complete');
  t.deepEqual(rig.see(rig.copy('copied')), ['pause']);
  t.deepEqual(rig.shards.serving, []);
  t.deepEqual(rig.see({ t: 'server-drain', id: 's1', draining: false }), [], 'somebody may rely on it');
  t.deepEqual(rig.done('pause'), ['shard-released']);
  t.deepEqual(rig.done('propose'), ['shard-released'], 'it was lost');
});

test('a shard that is sealed for too long has its move called off, and takes changes when that is so', (t) => {
  const rig = sealed();
  t.deepEqual(rig.done('wait'), ['shard-move']);
  t.deepEqual(rig.done('propose'), ['shard-move'], 'it was lost');
  t.deepEqual(rig.see(rig.move('s1')), ['seal none']);
  t.deepEqual(rig.done('seal'), ['leases 1000']);
  t.deepEqual(rig.done('propose'), []);
});

test('what was waited for in an earlier seal says nothing about a later one', (t) => {
  const rig = sealed();
  rig.see(rig.move('s1'));
  rig.done('seal');
  rig.see(rig.move('s2'));
  rig.see(rig.copy('last', hexOf(8)));
  // The first is of the seal before.
  t.true(rig.under('wait'));
  t.deepEqual(rig.done('wait'), []);
  t.deepEqual(rig.done('wait'), [`seal ${hexOf(8)}`]);
});

test('a seal for a copy that is no more ends, also when another copy is about to take its place', (t) => {
  const rig = sealed();
  rig.log.do(rig.move('s1'), rig.move('s2'));
  t.deepEqual(rig.see(rig.copy('last', hexOf(8))), ['seal none']);
  t.deepEqual(rig.done('seal').slice(-2), ['leases 100', 'wait 1010']);
});

test('a shard that is paused stays so until its copy is lost, and is then served before it takes changes', (t) => {
  for (const released of [false, true]) {
    const rig = sealed();
    rig.see(rig.copy('copied'));
    rig.done('pause');
    if (released)
      t.deepEqual(
        rig.see({ t: 'shard-released', shard: 0, owner: 's1', memberIncarnation: hexOf(1), epoch: 1, copy: COPY }),
        [],
      );
    t.deepEqual(rig.see({ t: 'no-op' }), []);
    t.deepEqual(rig.see({ t: 'shard-move', shard: 0, epoch: 1, to: 's1', lost: hexOf(2) }), ['serve']);
    t.deepEqual(rig.done('serve'), ['seal none']);
    t.deepEqual(rig.done('seal'), ['leases 1000']);
    t.deepEqual(rig.shards.serving, [0]);
  }
});

test('what is taken is closed at once, whatever is under way', (t) => {
  const taken: Command = {
    t: 'shards-taken',
    id: 's1',
    incarnation: hexOf(1),
    shards: [{ shard: 0, epoch: 1, to: 's2' }],
  };
  t.deepEqual(serving().see(taken), ['close']);
  const back = serving();
  back.log.do(taken);
  t.deepEqual(
    back.see({ t: 'shards-taken', id: 's2', incarnation: hexOf(2), shards: [{ shard: 0, epoch: 2, to: 's1' }] }),
    ['close'],
    'it came back in another epoch',
  );
  t.deepEqual(back.done('close'), ['open']);
  const sealing = serving();
  sealing.see(sealing.move('s2'));
  sealing.see(sealing.copy('last'));
  t.deepEqual(sealing.done('wait'), [`seal ${COPY}`]);
  t.deepEqual(sealing.see(taken), ['close']);
  t.deepEqual(sealing.done('seal'), [], 'it is of a state that is over');
  const pausing = sealed();
  pausing.see(pausing.copy('copied'));
  t.deepEqual(pausing.see(taken), ['close']);
  t.deepEqual(pausing.done('pause'), []);
});

test('a copy is finished after `last`, complete after `finish`, and used when it is given', (t) => {
  const rig = coming();
  const copy = hexOf(101);
  t.deepEqual(rig.done('open'), ['copy']);
  t.deepEqual(rig.done('copy'), ['shard-copy']);
  t.deepEqual(rig.see({ t: 'no-op' }), []);
  t.deepEqual(rig.see(rig.copy('last', copy)), ['finish']);
  t.deepEqual(rig.done('propose'), [], 'what was proposed before says nothing about what is under way now');
  t.deepEqual(rig.done('finish'), ['shard-copy']);
  t.deepEqual(rig.see(rig.copy('copied', copy)), ['stop']);
  t.deepEqual(rig.done('stop'), []);
  t.deepEqual(rig.see({ t: 'shard-released', shard: 0, owner: 's2', memberIncarnation: hexOf(2), epoch: 1, copy }), [
    'announce',
  ]);
});

test('a copy that its move is over for is stopped, then closed, also when the move was planned anew', (t) => {
  t.deepEqual(
    nearly().see({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' }, { t: 'shard-move', shard: 0, epoch: 1, to: 's1' }),
    ['stop'],
  );
  const rig = nearly();
  t.deepEqual(rig.see(rig.move('s2')), ['stop']);
  t.deepEqual(rig.done('stop'), ['close']);
  t.deepEqual(rig.done('close'), []);
});

test('a copy that fails is stopped and closed, and made anew after a while', (t) => {
  const rig = coming();
  rig.done('open');
  t.deepEqual(rig.done('copy', { full: false, error: 'no answer' }), ['stop']);
  t.deepEqual(rig.done('stop'), ['close']);
  t.deepEqual(rig.done('close'), ['wait 1000']);
  t.deepEqual(rig.done('wait'), ['open']);
});

test("a shard that could not be copied and is this server's, empty, is opened at once", (t) => {
  const rig = coming();
  rig.done('open');
  rig.done('copy', { full: false, error: 'no answer' });
  rig.done('stop');
  t.deepEqual(rig.done('close'), ['wait 1000']);
  t.deepEqual(
    rig.see({ t: 'shards-taken', id: 's2', incarnation: hexOf(2), shards: [{ shard: 0, epoch: 1, to: 's1' }] }),
    ['open'],
  );
});
