/**
 * A shard that comes, empty, to a server whose own copy of it still joins (backup.ts): what there is of the copy goes, and
 * the shard is opened.
 */
import test from 'ava';
import { backup, following, inSync, type Copies } from '../../test/support/copies-rig.js';
import type { Command } from '../metadata/commands.js';

const FAILED = { full: false, error: 'no answer' };
const EMPTY = { onLoss: 'empty' } as const;

/** The leader gives the shard, whose owner is dead, to this server: nobody has a copy in sync. */
function emptied({ log, shards }: Copies): Command {
  const { shard, epoch, config } = log.name;
  const owner = log.owner!;
  const to = shards.memberId;
  return { t: 'shards-taken', id: owner, incarnation: log.start(owner), shards: [{ shard, epoch, config, to }] };
}

test('a copy that joins again is thrown away, and the shard is opened', (t) => {
  const rig = inSync(EMPTY);
  rig.see(rig.removed(rig.shards.memberId));
  t.deepEqual(
    rig.see(emptied(rig)),
    ['stop'],
    'and nothing is asked of the metadata, which removes no copy of the owner',
  );
  t.deepEqual(rig.done('stop'), ['close']);
  t.deepEqual(rig.done('close'), ['open']);
});

test('a copy that joins for the first time is, too', (t) => {
  const rig = following(EMPTY);
  t.deepEqual(rig.see(emptied(rig)), ['stop']);
  t.deepEqual(rig.done('stop'), ['close']);
  t.deepEqual(rig.done('close'), ['open']);
});

test('a copy that failed does not rest before the shard is opened', (t) => {
  const rig = backup(EMPTY);
  t.deepEqual(rig.done('open', FAILED), ['stop']);
  t.deepEqual(rig.see(emptied(rig)), []);
  t.deepEqual(rig.done('stop'), ['open']);
  const resting = backup(EMPTY);
  resting.done('open', FAILED);
  resting.done('stop');
  t.deepEqual(resting.see(emptied(resting)), ['open']);
});
