import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import type { Command, ShardCopy, ShardOpened } from '../../core/metadata/commands.js';
import { Log } from '../log.js';
import { bootstrap, incarnation, join, other, two, World } from '../../test/support/shard-world.js';
import type { ShardDriverOptions } from './driver.js';

const openedByOther: ShardOpened = {
  t: 'shard-opened',
  shard: 0,
  owner: 's2',
  memberIncarnation: incarnation(50),
  epoch: 2,
  incarnation: incarnation(7),
  layoutEpoch: 1,
  buckets: 64,
  regions: [],
};
const copyOf = (phase: 'last' | 'copied', name = 7): ShardCopy => ({
  t: 'shard-copy',
  shard: 0,
  epoch: 1,
  to: 's2',
  memberIncarnation: incarnation(50),
  phase,
  worker: 0,
  copy: incarnation(name),
  planned: 0,
});

async function seen(world: World, event: string): Promise<void> {
  while (!world.events.includes(event)) await new Promise((resolve) => setImmediate(resolve));
}
/** It is never too late. */
const patient = (ms: number): Promise<void> => (ms === 3000 ? new Promise<void>(() => undefined) : Promise.resolve());

test('a release that was lost is proposed again', async (t) => {
  const world = await two(t, { sleep: patient });
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' }, copyOf('last'), copyOf('copied'));
  await seen(world, 'pause 0');
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
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' }, copyOf('last'));
  await seen(world, 'leases of 100 ms');
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
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
      answers.push((error) => (error === undefined ? resolve({ workers: [], shards: [] }) : reject(error))),
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
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' });
  await world.quiet();
  t.deepEqual(world.events, [`open 0 epoch 1 memory ${16 << 20}`]);
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
  world.apply({ ...openedByOther, epoch: 3 });
  await world.quiet();
  t.deepEqual(world.events.slice(-3), ['close 0', 'closed 0', 'leases of 2000 ms']);
});

test('a shard that is copied is served until its copy is nearly done, read until it is done, and only then closed', async (t) => {
  const world = await two(t, { sleep: patient });
  const before = world.events.length;
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' });
  await world.quiet();
  t.deepEqual(world.events.slice(before), []);
  world.apply(copyOf('last'));
  await seen(world, 'seal 0');
  t.deepEqual(world.events.slice(before, before + 2), ['leases of 100 ms', 'seal 0']);
  t.false(world.events.includes('close 0'));
  world.apply(copyOf('copied'));
  await seen(world, 'propose shard-released');
  await world.quiet();
  t.deepEqual(world.events.slice(before), [
    'leases of 100 ms',
    'seal 0',
    'pause 0',
    'paused 0',
    'propose shard-released',
  ]);
  t.like(world.machine.state.shards[0], { owner: 's1', epoch: 1 });
  world.apply(openedByOther);
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
      world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' }, copyOf('last'), copyOf('copied'));
      await seen(world, 'pause 0');
      if (released) {
        paused();
        await seen(world, 'propose shard-released');
        await world.quiet();
      }
      t.is(world.machine.state.moves[0]?.phase, released ? 'released' : 'copied');
      world.apply(
        restart
          ? { ...join(51, 50), id: 's2', instance: incarnation(98) }
          : { t: 'shard-move', shard: 0, epoch: 1, to: 's1', lost: incarnation(50) },
      );
      paused();
      await seen(world, 'unseal 0');
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
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' }, copyOf('last'));
  await seen(world, 'seal 0');
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  await world.quiet();
  t.is(world.events.at(-2), 'unseal 0');
  t.deepEqual(world.life.serving, [0, 1]);
  t.false(world.events.includes('close 0'));
});

test('a move that is called off and planned anew while its last part is copied is another one: the shard is sealed anew, for its copy', async (t) => {
  const world = await two(t, { sleep: patient });
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' }, copyOf('last'));
  await seen(world, 'seal 0');
  t.is(world.dataPlane.sealedFor, 7n);
  const [stay, again] = [
    { t: 'shard-move', shard: 0, epoch: 1, to: 's1' },
    { t: 'shard-move', shard: 0, epoch: 1, to: 's2' },
  ] as const;
  world.apply(stay, again, copyOf('last', 8));
  await seen(world, 'unseal 0');
  while (world.dataPlane.sealedFor !== 8n) await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(
    world.events.filter((e) => e.endsWith('seal 0')),
    ['seal 0', 'unseal 0', 'seal 0'],
  );
});

test('an owner that is sealed and hears nothing more calls the move off itself', async (t) => {
  const world = await two(t);
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' }, copyOf('last'));
  await seen(world, 'unseal 0');
  t.true(world.events.indexOf('seal 0') < world.events.indexOf('propose shard-move'));
  t.true(world.events.indexOf('propose shard-move') < world.events.indexOf('unseal 0'));
  t.deepEqual(world.machine.state.moves, []);
  t.is(world.machine.state.shards[0]!.epoch, 1);
  t.like(world.life.moveErrors, [{ shard: 0, from: 's1', to: 's2', calledOff: true }]);
});

/** Shard 0 is s2's and open there; it is to move here. */
function coming(options: Partial<ShardDriverOptions> = {}): World {
  const world = new World(options);
  world.apply(bootstrap(1, ['s1', 's2']), other, { t: 'assign-shards' }, join(1));
  world.apply({
    t: 'shard-opened',
    shard: 0,
    owner: 's2',
    memberIncarnation: incarnation(50),
    epoch: 1,
    incarnation: incarnation(77),
    layoutEpoch: 1,
    buckets: 64,
    regions: [],
  });
  world.leasesOver();
  return world;
}
const releasedFor = (copy: string): Command => ({
  t: 'shard-released',
  shard: 0,
  owner: 's2',
  memberIncarnation: incarnation(50),
  epoch: 1,
  copy,
});

test('a shard that comes is opened under the next epoch, copied, and served as it is when it is given up', async (t) => {
  const world = coming();
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  while (world.machine.state.moves[0]?.phase !== 'copied') await world.quiet();
  world.apply(releasedFor(world.machine.state.moves[0].copy!));
  await world.life.until(() => world.life.settled && world.life.serving.length === 1);
  t.deepEqual(
    world.events.filter((e) => /^(open|copy|finish|serve|close|propose)/.test(e)),
    [
      `open 0 epoch 2 memory ${16 << 20}`,
      'copy 0',
      'propose shard-copy',
      'finish 0',
      'propose shard-copy',
      'propose shard-opened',
      'serve 0',
    ],
  );
  t.is(world.machine.state.shards[0]!.owner, 's1');
});

test('what was copied is kept when the shard changes hands before the outcome of saying so is known', async (t) => {
  const world = coming();
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  const finish = world.dataPlane.finishCopy.bind(world.dataPlane);
  world.dataPlane.finishCopy = async (shard) => {
    world.instead.push('lost');
    const stats = await finish(shard);
    const copy = world.machine.state.moves[0]!.copy!;
    // The proposal is under way by then: it is applied, and its outcome is lost.
    setImmediate(() => {
      world.apply({
        t: 'shard-copy',
        shard: 0,
        epoch: 1,
        to: 's1',
        memberIncarnation: incarnation(1),
        phase: 'copied',
        worker: 0,
        copy,
        planned: 0,
      });
      world.apply(releasedFor(copy));
    });
    return stats;
  };
  await world.life.until(() => world.life.settled && world.machine.state.shards[0]!.owner === 's1');
  t.deepEqual(
    world.events.filter((e) => /^(open|close|serve)/.test(e)).map((e) => e.split(' ')[0]),
    ['open', 'serve'],
  );
});

test('what was copied is kept when its new owner applies the end of the copy and the change of owner at once', async (t) => {
  for (const taken of [false, true]) {
    const world = coming();
    world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
    const finish = world.dataPlane.finishCopy.bind(world.dataPlane);
    world.dataPlane.finishCopy = async (shard) => {
      world.instead.push('lost');
      const stats = await finish(shard);
      const copy = world.machine.state.moves[0]!.copy!;
      setImmediate(() =>
        world.apply(
          {
            t: 'shard-copy',
            shard: 0,
            epoch: 1,
            to: 's1',
            memberIncarnation: incarnation(1),
            phase: 'copied',
            worker: 0,
            copy,
            planned: 0,
          },
          taken
            ? { t: 'shards-taken', id: 's2', incarnation: incarnation(50), shards: [{ shard: 0, epoch: 1, to: 's1' }] }
            : releasedFor(copy),
        ),
      );
      return stats;
    };
    await world.quiet();
    t.is(world.machine.state.shards[0]!.owner, 's1');
    t.deepEqual(
      world.events.filter((e) => /^(open|close|serve)/.test(e)).map((e) => e.split(' ')[0]),
      ['open', 'serve'],
    );
    t.deepEqual(world.machine.state.moves, []);
  }
});

test('a copy that was not said to be complete is not served when the shard is taken from its owner', async (t) => {
  const world = coming();
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  const finish = world.dataPlane.finishCopy.bind(world.dataPlane);
  world.dataPlane.finishCopy = async (shard) => {
    world.instead.push('lost');
    const stats = await finish(shard);
    setImmediate(() =>
      world.apply({
        t: 'shards-taken',
        id: 's2',
        incarnation: incarnation(50),
        shards: [{ shard: 0, epoch: 1, to: 's1' }],
      }),
    );
    return stats;
  };
  await world.life.until(() => world.life.settled && world.machine.state.shards[0]!.owner === 's1');
  t.deepEqual(
    world.events.filter((e) => /^(open|close|serve)/.test(e)).map((e) => e.split(' ')[0]),
    ['open', 'close', 'closed', 'open', 'serve'],
  );
});

test('a server whose copy is not there any more calls the move off', async (t) => {
  const world = coming();
  const copy = {
    t: 'shard-copy',
    shard: 0,
    epoch: 1,
    to: 's1',
    memberIncarnation: incarnation(1),
    worker: 0,
    copy: incarnation(9),
    planned: 0,
  } as const;
  world.applyUnseen(
    { t: 'shard-move', shard: 0, epoch: 1, to: 's1' },
    { ...copy, phase: 'last' },
    { ...copy, phase: 'copied' },
  );
  t.is(world.machine.state.moves.length, 1);
  world.life.stateChanged();
  await world.quiet();
  t.deepEqual(world.machine.state.moves, []);
  t.is(world.machine.state.shards[0]!.owner, 's2');
  t.deepEqual(
    world.events.filter((e) => e.startsWith('propose')),
    ['propose shard-move'],
  );
});

test('a shard that is taken from its owner before the copy was complete comes up empty', async (t) => {
  const world = coming();
  world.dataPlane.copying = new Promise((_, reject) => {
    world.dataPlane.stopCopy = () => {
      reject(new FarkvError('ERR_ABORTED', 'stopped'));
      return Promise.resolve();
    };
  });
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  await seen(world, 'copy 0');
  world.apply({
    t: 'shards-taken',
    id: 's2',
    incarnation: incarnation(50),
    shards: [{ shard: 0, epoch: 1, to: 's1' }],
  });
  await world.life.until(() => world.life.settled);
  t.deepEqual(
    world.events.filter((e) => /^(open|close|serve)/.test(e)).map((e) => e.slice(0, 14)),
    ['open 0 epoch 2', 'close 0', 'closed 0', 'open 0 epoch 2', 'serve 0'],
  );
});

/** A copy of which nothing comes, as where nobody answers. */
const unreached = (): Promise<void> => Promise.reject(new FarkvError('ERR_TIMEOUT', 'nobody answers'));

test('an owner that cannot be reached is tried again later and later, and then the move is called off: the owner goes on, and it is told why', async (t) => {
  const slept: number[] = [];
  const said: string[] = [];
  const sleep = (ms: number): Promise<void> => {
    slept.push(ms);
    return Promise.resolve();
  };
  const world = coming({ sleep, log: new Log('warn', (_, text) => said.push(text)) });
  const moveErrors: unknown[] = [];
  world.dataPlane.copyShard = ({ shard }) => {
    world.events.push(`copy ${shard}`);
    moveErrors.push(...world.life.moveErrors.map(({ attempts, calledOff }) => ({ attempts, calledOff })));
    return unreached();
  };
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  await world.quiet();
  t.is(world.events.filter((e) => e === 'copy 0').length, 4);
  t.deepEqual(
    slept.filter((ms) => ms >= 1000),
    [1000, 2000, 4000],
  );
  t.deepEqual(
    moveErrors,
    [1, 2, 3].map((attempts) => ({ attempts, calledOff: false })),
  );
  t.deepEqual(world.machine.state.moves, []);
  t.like(world.machine.state.shards[0], { owner: 's2', epoch: 1, incarnation: incarnation(77) });
  t.deepEqual(world.events.slice(-4), ['stop 0', 'close 0', 'closed 0', 'propose shard-move']);
  t.like(world.life.moveErrors, [{ shard: 0, from: 's2', to: 's1', attempts: 4, calledOff: true }]);
  t.regex(world.life.moveErrors[0]!.reason, /nobody answers \(s2 was asked at tcp 127\.0\.0\.1:1\)/u);
  t.is(said.length, 4);
  t.regex(
    said[0]!,
    /could not be copied from s2, which goes on to serve it; it is tried again in 1000 ms \(attempt 1 of 4\)/u,
  );
  t.regex(said[3]!, /could not be copied from s2 in 4 attempts: its move is called off, and s2 goes on to serve it/u);
  // Planned anew it is tried anew.
  world.dataPlane.copyShard = () => Promise.resolve();
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  while (world.machine.state.moves[0]?.phase !== 'copied') await world.quiet();
  t.deepEqual(world.life.moveErrors, []);
});

test("a dead owner's shard that could not be copied from it comes up empty at once, not when the pause between two attempts is over", async (t) => {
  const world = coming({ sleep: (ms) => (ms >= 1000 ? new Promise<void>(() => undefined) : Promise.resolve()) });
  world.dataPlane.copyShard = unreached;
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  await seen(world, 'closed 0');
  await world.quiet();
  world.apply({
    t: 'shards-taken',
    id: 's2',
    incarnation: incarnation(50),
    shards: [{ shard: 0, epoch: 1, to: 's1' }],
  });
  await world.life.until(() => world.life.settled);
  t.deepEqual(world.life.serving, [0]);
  t.deepEqual(world.life.moveErrors, []);
});

test('a table that is copied into is closed when the copy has ended, and not when it is told to end', async (t) => {
  const world = coming();
  let stopped: () => void = () => undefined;
  const stopping = new Promise<void>((resolve) => (stopped = resolve));
  world.dataPlane.copying = new Promise((_, reject) => {
    world.dataPlane.stopCopy = async (shard) => {
      world.events.push(`stop ${shard}`);
      reject(new FarkvError('ERR_ABORTED', 'stopped'));
      await stopping;
    };
  });
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  await seen(world, 'copy 0');
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' });
  await world.quiet();
  t.true(world.events.includes('stop 0'));
  t.false(world.events.includes('close 0'));
  stopped();
  await seen(world, 'closed 0');
  t.deepEqual(world.life.moveErrors, []);
});

test('leases are short for those shards only whose end here is near: a move that gets nowhere does not keep them so', async (t) => {
  const world = await two(t, { sleep: patient });
  const before = world.events.length;
  const planned = { t: 'shard-move', epoch: 1, to: 's2' } as const;
  world.apply({ ...planned, shard: 1 }, { ...planned, shard: 0 }, copyOf('last'), copyOf('copied'));
  await seen(world, 'propose shard-released');
  await world.quiet();
  world.apply(openedByOther);
  await world.quiet();
  t.is(world.machine.state.moves[0]?.shard, 1);
  t.deepEqual(
    world.events.slice(before).filter((e) => e.startsWith('leases')),
    ['leases of 100 ms', 'leases of 2000 ms'],
  );
});

test('a copy that fails is thrown away and made anew', async (t) => {
  const world = coming();
  const copy = world.dataPlane.copyShard.bind(world.dataPlane);
  world.dataPlane.copyShard = async (o) => {
    await copy(o);
    world.dataPlane.copyShard = copy;
    throw new FarkvError('ERR_TIMEOUT', 'lost');
  };
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  while (world.machine.state.moves[0]?.phase !== 'copied') await world.quiet();
  t.deepEqual(
    world.events.filter((e) => /^(open|copy|close|finish)/.test(e)).map((e) => e.split(' ')[0]),
    ['open', 'copy', 'close', 'closed', 'open', 'copy', 'finish'],
  );
});

test("what does not fit in this server's memory is not copied again and again: its move is called off, and rests when it is planned anew", async (t) => {
  let rested: () => void = () => undefined;
  const rest = new Promise<void>((resolve) => (rested = resolve));
  const world = coming({ sleep: (ms) => (ms === 10_000 ? rest : Promise.resolve()) });
  const copies = (): number => world.events.filter((e) => e === 'copy 0').length;
  world.dataPlane.copying = Promise.reject(new FarkvError('ERR_TABLE_FULL', 'full'));
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  await world.quiet();
  t.deepEqual(world.machine.state.moves, []);
  t.like(world.machine.state.shards[0], { owner: 's2', epoch: 1 });
  t.deepEqual(world.events.filter((e) => !e.startsWith('stop')).slice(-3), [
    'close 0',
    'closed 0',
    'propose shard-move',
  ]);
  world.dataPlane.copying = Promise.resolve();
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  await world.quiet();
  t.is(copies(), 1);
  rested();
  while (world.machine.state.moves[0]?.phase !== 'copied') await world.quiet();
  t.is(copies(), 2);
});
