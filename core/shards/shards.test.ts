/**
 * The rules of index.ts one by one: what is asked for, and what is not. All of it over a data plane is in
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
  t.deepEqual(rig.see(rig.announce(hexOf(101))), ['configure 3 []']);
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
  const take = (rig: Rig, id: 's1' | 's2', to: string): Command => {
    const { config } = rig.log.state.copySets[0]!;
    const incarnation = rig.log.state.members.get(id)!.incarnation;
    return { t: 'shards-taken', id, incarnation, shards: [{ shard: 0, epoch: rig.epoch, config, to }] };
  };
  const taken = serving();
  t.deepEqual(taken.see(take(taken, 's1', 's2')), ['close']);
  const back = serving();
  back.log.do(take(back, 's1', 's2'));
  t.deepEqual(back.see(take(back, 's2', 's1')), ['close'], 'it came back in another epoch');
  t.deepEqual(back.done('close'), ['open']);
});
