/**
 * The rules of index.ts one by one: what is asked for, and what is not. The whole life over a data plane is in
 * server/shards/*.test.ts, and under faults in test/sim.
 */
import test from 'ava';
import { bootstrapOf, hexOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import { Rig } from '../../test/support/shards-rig.js';
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
});
