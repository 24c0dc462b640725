/** What is behind the close of a shard that was taken, and a close that comes while the shard is being opened. */
import test from 'ava';
import type { Command } from '../../core/metadata/commands.js';
import { bootstrap, incarnation, join, other, two, World } from '../../test/support/shard-world.js';

/** Shard 1 goes from s1 to s2. */
const taken = ({ machine }: World): Command => {
  const { config } = machine.state.copySets[1]!;
  return {
    t: 'shards-taken',
    id: 's1',
    incarnation: incarnation(1),
    shards: [{ shard: 1, epoch: 1, config, to: 's2' }],
  };
};

test('the fence is behind every close that was told, and costs nothing when there was none', async (t) => {
  const world = await two(t);
  await world.driver.fence();
  t.false(world.events.includes('stats'));
  world.apply(taken(world));
  await world.driver.fence();
  t.true(world.events.indexOf('stats') > world.events.indexOf('close 1'));
});

test('nobody passes the fence while another still waits for it, nor when that one fails', async (t) => {
  const world = await two(t);
  const answers: ((error?: Error) => void)[] = [];
  world.dataPlane.stats = () =>
    new Promise((resolve, reject) =>
      answers.push((error) =>
        error === undefined
          ? resolve({ pages: 'small', descriptorsMissed: 0, tenants: [], workers: [], shards: [] })
          : reject(error),
      ),
    );
  world.apply(taken(world));
  const passed: string[] = [];
  const ask = (who: string): Promise<void> =>
    world.driver.fence().then(
      () => void passed.push(who),
      () => void passed.push(`${who} failed`),
    );
  const both = [ask('first'), ask('second')];
  await world.quiet();
  t.deepEqual(passed, []);
  answers.shift()?.(new Error('no answer'));
  await Promise.all(both);
  t.deepEqual(passed, ['first failed', 'second failed']);
  const third = ask('third');
  await world.quiet();
  t.is(passed.length, 2);
  answers.shift()?.();
  await third;
  t.is(passed[2], 'third');
});

test('a shard that is taken away while it is being opened is closed when it is open', async (t) => {
  const world = new World();
  let open: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (open = resolve));
  const openShard = world.dataPlane.openShard.bind(world.dataPlane);
  world.dataPlane.openShard = async (o) => {
    const layout = openShard(o);
    await held;
    return await layout;
  };
  world.apply(bootstrap(1, ['s1', 's2']), join(1), { t: 'assign-shards' }, other);
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' });
  await world.quiet();
  t.deepEqual(world.events, [`open 0 epoch 1 memory ${2 << 26}`]);
  open();
  await world.quiet();
  t.deepEqual(world.events.slice(1), ['close 0', 'closed 0']);
});
