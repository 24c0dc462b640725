import test from 'ava';
import { bootstrap, incarnation, join, segment, serving, World } from '../../test/support/shard-world.js';
import { layoutDelta } from './layout-delta.js';
import { FarkvError } from '../../core/errors.js';
import { toHex64 } from '../../core/hex64.js';

test('a shard is opened under its epoch, told, and served only when the old leases are over', async (t) => {
  const world = new World();
  world.apply(bootstrap(1), join(1), { t: 'assign-shards' });
  await world.quiet();
  const told = 'configure 0 epoch 1 config 3 at least 1 []';
  t.deepEqual(world.events, [`open 0 epoch 1 memory ${1 << 26}`, 'propose shard-opened', told]);
  t.false(world.driver.settled);
  world.leasesOver();
  await world.driver.until(() => world.driver.settled);
  t.deepEqual(world.events.slice(3), ['marked', 'serve 0']);
  t.like(world.machine.state.shards[0], { incarnation: toHex64(1001n), layoutEpoch: 1, buckets: 64 });
  t.deepEqual(world.driver.serving, [0]);
});

test('the start is marked once, before the first shard is served, and memory has its limit', async (t) => {
  const world = await serving(t, 4);
  t.is(world.events.filter((e) => e === 'marked').length, 1);
  t.true(world.events.indexOf('marked') < world.events.findIndex((e) => e.startsWith('serve')));
  t.is(world.events.filter((e) => e.endsWith(`memory ${16 << 20}`)).length, 4);
  t.deepEqual(world.driver.serving, [0, 1, 2, 3]);
});

test('a start that cannot be marked ends the server in order, and serves nothing', async (t) => {
  const world = new World({
    beforeServing: () => {
      throw new FarkvError('ERR_DATA_DIR', 'serving.json cannot be written');
    },
  });
  world.apply(bootstrap(1), join(1), { t: 'assign-shards' });
  await world.quiet();
  world.leasesOver();
  await world.quiet();
  t.deepEqual(
    world.failures.map(({ code }) => code),
    ['ERR_DATA_DIR'],
  );
  t.false(world.events.some((event) => event.startsWith('serve')));
});

test('nothing is opened before the metadata names this start of the server', async (t) => {
  const world = new World();
  world.apply(bootstrap(1), join(7), { t: 'assign-shards' });
  await world.quiet();
  t.deepEqual(world.events, []);
  world.apply(join(1, 7));
  await world.quiet();
  t.is(world.events[0], `open 0 epoch 2 memory ${1 << 26}`);
});

test('tables may have more when a server joins, and none has less than the least', async (t) => {
  const world = new World();
  world.apply(bootstrap(32, ['s1', 's2']), join(1), { t: 'assign-shards' });
  await world.quiet();
  t.is(world.events.filter((e) => e.endsWith(`memory ${4 << 20}`)).length, 32);
  t.deepEqual(world.dataPlane.limits, [4 << 20]);
  world.apply({ ...join(50), id: 's2', instance: incarnation(98), memoryBytes: 1 << 28 });
  await world.quiet();
  t.deepEqual(world.dataPlane.limits, [4 << 20, (2 ** 26 + 2 ** 28) / 32]);
  t.deepEqual(world.failures, []);
});

test('an announcement that was lost, or whose outcome is unknown, is made again until the metadata has it', async (t) => {
  const world = new World();
  world.instead.push('lost', 'unknown', { ok: false, code: 'ERR_BUSY', message: 'later' });
  world.apply(bootstrap(1), join(1), { t: 'assign-shards' });
  world.leasesOver();
  await world.driver.until(() => world.driver.settled);
  t.is(world.events.filter((e) => e === 'propose shard-opened').length, 4);
});

test('new segments are told as differences, those of one moment together', async (t) => {
  const world = await serving(t);
  world.dataPlane.grow(0, [segment(0), segment(1)]);
  world.driver.layoutChanged(0);
  world.dataPlane.grow(0, [segment(0), segment(1), segment(2)]);
  world.driver.layoutChanged(0);
  await world.quiet();
  t.deepEqual(
    world.machine.state.shards[0]?.regions.map((r) => r.segment),
    [0, 1, 2],
  );
  t.is(world.machine.state.shards[0]?.layoutEpoch, 3);
  const told = world.events.length;
  world.dataPlane.grow(0, [segment(2), segment(3)]);
  world.driver.layoutChanged(0);
  await world.quiet();
  t.deepEqual(world.events.slice(told), ['propose shard-layout +1 -2']);
  t.deepEqual(
    world.machine.state.shards[0]?.regions.map((r) => r.segment),
    [2, 3],
  );
});

test('while a table fills its changes are told with a pause after each, and those of a pause together', async (t) => {
  const pauses: (() => void)[] = [];
  const world = new World({ sleep: () => new Promise((resolve) => pauses.push(resolve)) });
  world.apply(bootstrap(1), join(1), { t: 'assign-shards' });
  world.leasesOver();
  await world.driver.until(() => world.driver.settled);
  const told = world.events.length;
  for (const count of [2, 3, 4]) {
    world.dataPlane.grow(
      0,
      Array.from({ length: count }, (_, i) => segment(i)),
    );
    world.driver.layoutChanged(0);
    await world.quiet();
  }
  t.deepEqual(world.events.slice(told), ['propose shard-layout +1 -0']);
  pauses.shift()?.();
  await world.quiet();
  t.deepEqual(world.events.slice(told), ['propose shard-layout +1 -0', 'propose shard-layout +2 -0']);
  t.deepEqual(
    world.machine.state.shards[0]?.regions.map((r) => r.segment),
    [0, 1, 2, 3],
  );
});

test('a layout change that was lost is told again', async (t) => {
  const world = await serving(t);
  world.instead.push('lost', 'unknown');
  world.dataPlane.grow(0, [segment(0), segment(1)]);
  world.driver.layoutChanged(0);
  await world.quiet();
  t.is(world.machine.state.shards[0]?.layoutEpoch, 2);
});

test('what came between opening and serving is told without a new sign', async (t) => {
  const world = new World();
  world.apply(bootstrap(1), join(1), { t: 'assign-shards' });
  await world.quiet();
  world.dataPlane.grow(0, [segment(0), segment(1)]);
  world.leasesOver();
  await world.quiet();
  t.is(world.machine.state.shards[0]?.layoutEpoch, 2);
});

test('a shard that the metadata takes away is closed, and opened again under the epoch in which it comes back', async (t) => {
  const world = await serving(t);
  let closed: () => void = () => undefined;
  world.dataPlane.closing = new Promise((resolve) => (closed = resolve));
  const before = world.events.length;
  world.apply(join(2, 1));
  await world.quiet();
  t.deepEqual(world.events.slice(before), ['close 0']);
  t.deepEqual(world.driver.serving, []);
  // The same start cannot come back; a machine that names it again stands for a shard that moved away and returned.
  world.apply(join(1, 2));
  await world.quiet();
  t.deepEqual(world.events.slice(before), ['close 0'], 'not before the old one is gone');
  closed();
  await world.driver.until(() => world.driver.settled);
  t.deepEqual(world.events.slice(before, before + 4), [
    'close 0',
    'closed 0',
    `open 0 epoch 3 memory ${1 << 26}`,
    'propose shard-opened',
  ]);
});

test('closing waits for the leases, but not longer than it was told to', async (t) => {
  const world = await serving(t, 2);
  t.true(await world.driver.close(10_000));
  t.deepEqual(world.events.slice(-4), ['close 0', 'close 1', 'closed 0', 'closed 1']);
  const stuck = await serving(t);
  stuck.dataPlane.closing = new Promise(() => undefined);
  t.false(await stuck.driver.close(1));
  await t.throwsAsync(
    stuck.driver.until(() => false),
    { code: 'ERR_CLOSED' },
  );
});

test('a start that ends before the leases of the last run are over does not say that nobody relies on it', async (t) => {
  const world = new World();
  world.apply(bootstrap(1), join(1), { t: 'assign-shards' });
  await world.quiet();
  t.false(await world.driver.close(10_000));
});

test('a difference replaces a segment whose rkey changed and names what is gone', (t) => {
  const known = {
    shard: 0,
    worker: 0,
    epoch: 1,
    incarnation: incarnation(9),
    layoutEpoch: 3,
    buckets: 1,
    regions: [0, 1].map((n) => ({ ...segment(n), remoteAddress: '4096', rkey: '1' })),
  };
  const delta = layoutDelta(known, {
    shard: 0,
    epoch: 1,
    incarnation: 9n,
    layoutEpoch: 5,
    buckets: 2,
    regions: [segment(1, 2n), segment(2)],
  });
  t.like(delta, { from: 3, layoutEpoch: 5, buckets: 2 });
  t.deepEqual(
    delta.add.map((r) => [r.segment, r.rkey]),
    [
      [1, '2'],
      [2, '1'],
    ],
  );
  t.deepEqual(delta.remove, [{ provider: 'tcp', kind: 'heap', segment: 0 }]);
});
