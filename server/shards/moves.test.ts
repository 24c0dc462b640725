/** Moves as the owner sees them that gives a shard away; arrivals.test.ts has the server that it comes to. */
import test from 'ava';
import type { ShardCopy } from '../../core/metadata/commands.js';
import {
  bootstrap,
  copyTo,
  incarnation,
  join,
  MOVE,
  openedByOther,
  other,
  two,
  World,
} from '../../test/support/shard-world.js';

const copyOf = (phase: 'last' | 'copied', name = 7): ShardCopy => copyTo('s2', phase, incarnation(name));
/** It is never too late. */
const patient = (ms: number): Promise<void> => (ms === 3000 ? new Promise<void>(() => undefined) : Promise.resolve());

test('a release that was lost is proposed again', async (t) => {
  const world = await two(t, { sleep: patient });
  world.apply({ ...MOVE, to: 's2' }, copyOf('last'), copyOf('copied'));
  await world.seen('pause 0');
  world.instead.push('lost', 'unknown');
  await world.quiet();
  t.is(world.events.filter((e) => e === 'propose shard-released').length, 3);
  t.is(world.machine.state.moves[0]?.phase, 'released');
});

test('a move that is called off in time changes nothing', async (t) => {
  let shortened: () => void = () => undefined;
  const leases = new Promise<void>((resolve) => (shortened = resolve));
  const world = await two(t, { sleep: (ms) => (ms === 2014 ? leases : patient(ms)) });
  const before = world.events.length;
  world.apply({ ...MOVE, to: 's2' }, copyOf('last'));
  await world.seen('leases of 100 ms');
  world.apply({ ...MOVE, to: 's1' });
  shortened();
  await world.quiet();
  t.deepEqual(world.events.slice(before), ['leases of 100 ms', 'leases of 2000 ms']);
  t.deepEqual(world.life.serving, [0, 1]);
});

test('the fence is behind every close that was told, and costs nothing when there was none', async (t) => {
  const world = await two(t);
  await world.life.fence();
  t.false(world.events.includes('stats'));
  world.apply({ t: 'shards-taken', id: 's1', incarnation: incarnation(1), shards: [{ shard: 1, epoch: 1, to: 's2' }] });
  await world.life.fence();
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
  world.apply({ t: 'shards-taken', id: 's1', incarnation: incarnation(1), shards: [{ shard: 1, epoch: 1, to: 's2' }] });
  const passed: string[] = [];
  const ask = (who: string): Promise<void> =>
    world.life.fence().then(
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
  world.apply({ ...MOVE, to: 's2' });
  await world.quiet();
  t.deepEqual(world.events, [`open 0 epoch 1 memory ${2 << 26}`]);
  open();
  await world.quiet();
  t.deepEqual(world.events.slice(1), ['close 0', 'closed 0']);
});

test('a shard that is to move before the leases of the last run are over is given up only then', async (t) => {
  const world = new World({ sleep: patient });
  world.apply(bootstrap(1, ['s1', 's2']), join(7), { t: 'assign-shards' }, other, join(1, 7));
  await world.quiet();
  world.apply(
    { t: 'shard-move', shard: 0, epoch: 2, to: 's2' },
    { ...copyOf('last'), epoch: 2 },
    { ...copyOf('copied'), epoch: 2 },
  );
  await world.quiet();
  t.is(world.machine.state.moves[0]?.phase, 'copied');
  t.false(world.events.includes('propose shard-released'));
  world.leasesOver();
  await world.quiet();
  t.is(world.machine.state.moves[0]?.phase, 'released');
  t.like(world.machine.state.shards[0], { owner: 's1', epoch: 2 });
  world.apply(openedByOther(3, 7));
  await world.quiet();
  t.deepEqual(world.events.slice(-3), ['close 0', 'closed 0', 'leases of 2000 ms']);
});

test('a shard that is copied is served until its copy is nearly done, read until it is done, and only then closed', async (t) => {
  const world = await two(t, { sleep: patient });
  const before = world.events.length;
  world.apply({ ...MOVE, to: 's2' });
  await world.quiet();
  t.deepEqual(world.events.slice(before), []);
  world.apply(copyOf('last'));
  await world.seen('seal 0');
  t.deepEqual(world.events.slice(before, before + 2), ['leases of 100 ms', 'seal 0']);
  t.false(world.events.includes('close 0'));
  world.apply(copyOf('copied'));
  await world.seen('propose shard-released');
  await world.quiet();
  t.deepEqual(world.events.slice(before), [
    'leases of 100 ms',
    'seal 0',
    'pause 0',
    'paused 0',
    'propose shard-released',
  ]);
  t.like(world.machine.state.shards[0], { owner: 's1', epoch: 1 });
  world.apply(openedByOther(2, 7));
  await world.quiet();
  t.deepEqual(world.events.slice(before + 5), ['close 0', 'closed 0', 'leases of 2000 ms']);
  t.like(world.machine.state.shards[0], { owner: 's2', epoch: 2 });
});

for (const released of [false, true]) {
  for (const restart of [false, true]) {
    const copy = released ? 'that is to open the shard' : 'that has all of it';
    test(`a new owner ${copy} ${restart ? 'starts again' : 'dies'}: the old one goes on with all that it had`, async (t) => {
      const world = await two(t, { sleep: patient });
      let paused: () => void = () => undefined;
      world.dataPlane.closing = new Promise((resolve) => (paused = resolve));
      world.apply({ ...MOVE, to: 's2' }, copyOf('last'), copyOf('copied'));
      await world.seen('pause 0');
      if (released) {
        paused();
        await world.seen('propose shard-released');
        await world.quiet();
      }
      t.is(world.machine.state.moves[0]?.phase, released ? 'released' : 'copied');
      world.apply(
        restart
          ? { ...join(51, 50), id: 's2', instance: incarnation(98) }
          : { ...MOVE, to: 's1', lost: incarnation(50) },
      );
      paused();
      await world.seen('unseal 0');
      await world.quiet();
      t.deepEqual(world.life.serving, [0, 1]);
      t.like(world.machine.state.shards[0], {
        owner: 's1',
        epoch: 1,
        incarnation: world.machine.state.shards[0]?.incarnation,
      });
      t.deepEqual(
        world.events.filter((e) => e.endsWith(' 0')),
        ['serve 0', 'seal 0', 'pause 0', 'paused 0', 'serve 0', 'unseal 0'],
      );
      t.is(world.events.includes('propose shard-released'), released);
    });
  }
}

test('a move that is called off while the last of it is copied leaves the shard as it was, without its seal', async (t) => {
  const world = await two(t, { sleep: patient });
  world.apply({ ...MOVE, to: 's2' }, copyOf('last'));
  await world.seen('seal 0');
  world.apply({ ...MOVE, to: 's1' });
  await world.quiet();
  t.is(world.events.at(-2), 'unseal 0');
  t.deepEqual(world.life.serving, [0, 1]);
  t.false(world.events.includes('close 0'));
});

test('a move that is called off and planned anew while its last part is copied is another one: the shard is sealed anew, for its copy', async (t) => {
  const world = await two(t, { sleep: patient });
  world.apply({ ...MOVE, to: 's2' }, copyOf('last'));
  await world.seen('seal 0');
  t.is(world.dataPlane.sealedFor, 7n);
  const [stay, again] = [
    { ...MOVE, to: 's1' },
    { ...MOVE, to: 's2' },
  ] as const;
  world.apply(stay, again, copyOf('last', 8));
  await world.seen('unseal 0');
  while (world.dataPlane.sealedFor !== 8n) await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(
    world.events.filter((e) => e.endsWith('seal 0')),
    ['seal 0', 'unseal 0', 'seal 0'],
  );
});

test('an owner that is sealed and hears nothing more calls the move off itself', async (t) => {
  const world = await two(t);
  world.apply({ ...MOVE, to: 's2' }, copyOf('last'));
  await world.seen('unseal 0');
  t.true(world.events.indexOf('seal 0') < world.events.indexOf('propose shard-move'));
  t.true(world.events.indexOf('propose shard-move') < world.events.indexOf('unseal 0'));
  t.deepEqual(world.machine.state.moves, []);
  t.is(world.machine.state.shards[0]!.epoch, 1);
  t.like(world.life.moveErrors, [{ shard: 0, from: 's1', to: 's2', calledOff: true }]);
});

test('leases are short for those shards only whose end here is near: a move that gets nowhere does not keep them so', async (t) => {
  const world = await two(t, { sleep: patient });
  const before = world.events.length;
  const planned = { t: 'shard-move', epoch: 1, to: 's2' } as const;
  world.apply({ ...planned, shard: 1 }, { ...planned, shard: 0 }, copyOf('last'), copyOf('copied'));
  await world.seen('propose shard-released');
  await world.quiet();
  world.apply(openedByOther(2, 7));
  await world.quiet();
  t.is(world.machine.state.moves[0]?.shard, 1);
  t.deepEqual(
    world.events.slice(before).filter((e) => e.startsWith('leases')),
    ['leases of 100 ms', 'leases of 2000 ms'],
  );
});
