/** Moves as the server sees them that a shard comes to; moves.test.ts has the owner that gives it away. */
import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import type { Command } from '../../core/metadata/commands.js';
import {
  bootstrap,
  copyTo,
  incarnation,
  join,
  MOVE,
  openedByOther,
  other,
  TAKEN,
  World,
} from '../../test/support/shard-world.js';
import { Log } from '../log.js';
import type { ShardDriverOptions } from './driver.js';

/** Shard 0 is s2's and open there; it is to move here. */
function coming(options: Partial<ShardDriverOptions> = {}): World {
  const world = new World(options);
  world.apply(bootstrap(1, ['s1', 's2']), other, { t: 'assign-shards' }, join(1));
  world.apply(openedByOther(1));
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

/** When the copy is finished here, its proposal is under way: `then` is applied first, and the proposal's outcome is lost. */
function whenFinished(world: World, then: (copy: string) => void): void {
  const finish = world.dataPlane.finishCopy.bind(world.dataPlane);
  world.dataPlane.finishCopy = async (shard) => {
    world.instead.push('lost');
    const stats = await finish(shard);
    const copy = world.machine.state.moves[0]!.copy!;
    setImmediate(() => then(copy));
    return stats;
  };
}

test('a shard that comes is opened under the next epoch, copied, and served as it is when it is given up', async (t) => {
  const world = coming();
  world.apply({ ...MOVE, to: 's1' });
  while (world.machine.state.moves[0]?.phase !== 'copied') await world.quiet();
  world.apply(releasedFor(world.machine.state.moves[0].copy!));
  await world.life.until(() => world.life.settled && world.life.serving.length === 1);
  t.deepEqual(
    world.events.filter((e) => /^(open|copy|finish|serve|close|propose)/.test(e)),
    [
      `open 0 epoch 2 memory ${2 << 26}`,
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
  world.apply({ ...MOVE, to: 's1' });
  whenFinished(world, (copy) => {
    world.apply(copyTo('s1', 'copied', copy));
    world.apply(releasedFor(copy));
  });
  await world.life.until(() => world.life.settled && world.machine.state.shards[0]!.owner === 's1');
  t.deepEqual(world.steps('open', 'close', 'closed', 'serve'), ['open', 'serve']);
});

test('what was copied is kept when its new owner applies the end of the copy and the change of owner at once', async (t) => {
  for (const taken of [false, true]) {
    const world = coming();
    world.apply({ ...MOVE, to: 's1' });
    whenFinished(world, (copy) => world.apply(copyTo('s1', 'copied', copy), taken ? TAKEN : releasedFor(copy)));
    await world.quiet();
    t.is(world.machine.state.shards[0]!.owner, 's1');
    t.deepEqual(world.steps('open', 'close', 'closed', 'serve'), ['open', 'serve']);
    t.deepEqual(world.machine.state.moves, []);
  }
});

test('a copy that was not said to be complete is not served when the shard is taken from its owner', async (t) => {
  const world = coming();
  world.apply({ ...MOVE, to: 's1' });
  whenFinished(world, () => world.apply(TAKEN));
  await world.life.until(() => world.life.settled && world.machine.state.shards[0]!.owner === 's1');
  t.deepEqual(world.steps('open', 'close', 'closed', 'serve'), ['open', 'close', 'closed', 'open', 'serve']);
});

test('a server whose copy is not there any more calls the move off', async (t) => {
  const world = coming();
  world.applyUnseen(
    { ...MOVE, to: 's1' },
    copyTo('s1', 'last', incarnation(9)),
    copyTo('s1', 'copied', incarnation(9)),
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
  world.apply({ ...MOVE, to: 's1' });
  await world.seen('copy 0');
  world.apply(TAKEN);
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
  world.apply({ ...MOVE, to: 's1' });
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
  world.apply({ ...MOVE, to: 's1' });
  while (world.machine.state.moves[0]?.phase !== 'copied') await world.quiet();
  t.deepEqual(world.life.moveErrors, []);
});

test("a dead owner's shard that could not be copied from it comes up empty at once, not when the pause between two attempts is over", async (t) => {
  const world = coming({ sleep: (ms) => (ms >= 1000 ? new Promise<void>(() => undefined) : Promise.resolve()) });
  world.dataPlane.copyShard = unreached;
  world.apply({ ...MOVE, to: 's1' });
  await world.seen('closed 0');
  await world.quiet();
  world.apply(TAKEN);
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
  world.apply({ ...MOVE, to: 's1' });
  await world.seen('copy 0');
  world.apply({ ...MOVE, to: 's2' });
  await world.quiet();
  t.true(world.events.includes('stop 0'));
  t.false(world.events.includes('close 0'));
  stopped();
  await world.seen('closed 0');
  t.deepEqual(world.life.moveErrors, []);
});

test('a copy that fails is thrown away and made anew', async (t) => {
  const world = coming();
  const copy = world.dataPlane.copyShard.bind(world.dataPlane);
  world.dataPlane.copyShard = async (o) => {
    await copy(o);
    world.dataPlane.copyShard = copy;
    throw new FarkvError('ERR_TIMEOUT', 'lost');
  };
  world.apply({ ...MOVE, to: 's1' });
  while (world.machine.state.moves[0]?.phase !== 'copied') await world.quiet();
  t.deepEqual(world.steps('open', 'copy', 'close', 'closed', 'finish'), [
    'open',
    'copy',
    'close',
    'closed',
    'open',
    'copy',
    'finish',
  ]);
});

test("what does not fit in this server's memory is not copied again and again: its move is called off, and rests when it is planned anew", async (t) => {
  let rested: () => void = () => undefined;
  const rest = new Promise<void>((resolve) => (rested = resolve));
  const world = coming({ sleep: (ms) => (ms === 10_000 ? rest : Promise.resolve()) });
  const copies = (): number => world.events.filter((e) => e === 'copy 0').length;
  world.dataPlane.copying = Promise.reject(new FarkvError('ERR_TABLE_FULL', 'full'));
  world.apply({ ...MOVE, to: 's1' });
  await world.quiet();
  t.deepEqual(world.machine.state.moves, []);
  t.like(world.machine.state.shards[0], { owner: 's2', epoch: 1 });
  t.deepEqual(world.events.filter((e) => !e.startsWith('stop')).slice(-3), [
    'close 0',
    'closed 0',
    'propose shard-move',
  ]);
  world.dataPlane.copying = Promise.resolve();
  world.apply({ ...MOVE, to: 's1' });
  await world.quiet();
  t.is(copies(), 1);
  rested();
  while (world.machine.state.moves[0]?.phase !== 'copied') await world.quiet();
  t.is(copies(), 2);
});
