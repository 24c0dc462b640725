/**
 * Copies of shards over a data plane that is only remembered; the rules are in core/shards/backup.test.ts,
 * promotion.test.ts and progress.test.ts.
 */
import test, { type ExecutionContext } from 'ava';
import type { Command } from '../../core/metadata/commands.js';
import type { ShardName } from '../../core/metadata/copy-commands.js';
import { bootstrap, incarnation, join, openedByOther, other, World } from '../../test/support/shard-world.js';
import { Log } from '../log.js';

const POLICY: Command = { t: 'policy-set', tenant: 0, level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' };
const OTHER = incarnation(50);

/** Of this server, s1, and s2; the shard is the first one's that joins. `lines`: what is written to the log. */
function made(first: 's1' | 's2', lines: string[] = [], sleep = (): Promise<void> => Promise.resolve()): World {
  const log = new Log('info', (_level, line) => lines.push(line));
  const world = new World({ log, sleep });
  const joins = [join(1), other];
  if (first === 's2') joins.reverse();
  world.applyUnseen(bootstrap(1, ['s1', 's2']));
  world.apply(joins[0]!, { t: 'assign-shards' }, joins[1]!, POLICY);
  world.leasesOver();
  return world;
}

function name(world: World): ShardName {
  const [s] = world.machine.state.shards;
  return { shard: 0, epoch: s!.epoch, config: world.machine.state.copySets[0]!.config };
}

const never = (): Promise<void> => new Promise(() => undefined);

/** s1 follows s2, and its copy is in sync. */
async function kept(t: ExecutionContext, lines: string[] = []): Promise<World> {
  const world = made('s2', lines, never);
  world.apply(openedByOther(1));
  world.apply({ t: 'copies-add', copies: [{ ...name(world), member: 's1', start: incarnation(1), rank: 1 }] });
  await world.seen('follow 0');
  await world.quiet();
  const copy = world.machine.state.copySets[0]!.copies.find((c) => c.member === 's1')!;
  t.is(copy.state, 'joining');
  const by = { owner: 's2', memberIncarnation: OTHER };
  const about = { member: 's1', start: incarnation(1), copy: copy.id!, worker: 0, lsn: 5 };
  world.apply({ t: 'copies-in-sync', ...name(world), ...by, ...about });
  return world;
}

test('a copy is made, named and followed; when its owner is dead the shard is served with it', async (t) => {
  const lines: string[] = [];
  const world = await kept(t, lines);
  t.deepEqual(world.steps('open', 'copy', 'propose', 'follow'), ['open', 'copy', 'propose', 'follow']);
  t.true(world.events.includes('propose copy-named'));
  const { id = '' } = world.machine.state.copySets[0]!.copies.find((c) => c.member === 's1')!;
  const { epoch, config } = name(world);
  world.apply({
    t: 'shards-taken',
    id: 's2',
    incarnation: OTHER,
    shards: [{ shard: 0, epoch, config, to: 's1', copy: id }],
  });
  await world.driver.until(() => world.driver.settled);
  t.deepEqual(world.events.slice(-4), [
    `lead 0 epoch 2 config ${config + 1} at least 1 []`,
    'propose shard-opened',
    'marked',
    'serve 0',
  ]);
  t.deepEqual(world.failures, []);
  t.true(lines.some((line) => line.includes('comes to this server in epoch 2, with the copy that is here')));
});

test('a copy that cannot be made says why, and is tried again', async (t) => {
  const lines: string[] = [];
  const world = made('s2', lines, never);
  const failure = Promise.reject(new Error('nobody answers'));
  failure.catch(() => undefined);
  world.dataPlane.copying = failure;
  world.apply(openedByOther(1));
  world.apply({ t: 'copies-add', copies: [{ ...name(world), member: 's1', start: incarnation(1), rank: 1 }] });
  await world.seen('closed 0');
  t.deepEqual(world.steps('open', 'copy', 'stop', 'close').slice(0, 4), ['open', 'copy', 'stop', 'close']);
  t.true(
    lines.some((line) => line.includes('no copy could be made here of what s2 has') && line.includes('nobody answers')),
  );
});

test('an owner requires a copy that has joined and proposes it, then serves; one that is late is removed', async (t) => {
  const lines: string[] = [];
  const world = made('s1', lines, never);
  await world.quiet();
  t.false(world.driver.settled, 'no other server has what will be written');
  const start = OTHER;
  world.apply({ t: 'copies-add', copies: [{ ...name(world), member: 's2', start, rank: 1 }] });
  world.apply({ t: 'copy-named', ...name(world), member: 's2', start, copy: incarnation(7), worker: 0 });
  world.driver.copyNoticed(0, 7n, 'joined');
  await world.driver.until(() => world.driver.settled);
  const set = () => world.machine.state.copySets[0]!;
  t.deepEqual(
    set().copies.map((c) => c.state),
    ['in-sync', 'in-sync'],
  );
  t.deepEqual(set().barrier, { epoch: 1, lsn: 12 });
  t.deepEqual(world.events.slice(world.events.indexOf('require 0 7')), [
    'require 0 7',
    'propose copies-in-sync',
    `configure 0 epoch 1 config ${set().config - 1} at least 1 [7]`,
    'marked',
    'propose copies-in-sync',
    `configure 0 epoch 1 config ${set().config} at least 1 [7]`,
    'serve 0',
  ]);
  world.driver.copyNoticed(0, 7n, 'late');
  await world.quiet();
  t.deepEqual(
    set().copies.map((c) => c.state),
    ['in-sync', 'joining'],
  );
  t.is(world.events.at(-1), `configure 0 epoch 1 config ${set().config} at least 1 []`);
  t.true(lines.some((line) => line.includes('s2 does not acknowledge changes: its copy is removed; 1 stay in sync')));
});
