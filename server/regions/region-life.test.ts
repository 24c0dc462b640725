import test, { type ExecutionContext } from 'ava';
import { FarkvError } from '../../core/errors.js';
import { encodeProposal, type Bootstrap, type Command, type MemberJoin } from '../../core/metadata/commands.js';
import { MetadataMachine } from '../../core/metadata/machine.js';
import type { CopyOptions, CopyStats, DataPlane, DataPlaneStats, NativeRegion, ShardLayout } from '../../native/addon.js';
import { Log } from '../log.js';
import type { Outcome } from '../metadata/proposer.js';
import { hex64, layoutDelta, RegionLife, type RegionLifeOptions } from './region-life.js';

const incarnation = (n: number): string => hex64(BigInt(n));
const join = (n: number, replaces?: number): MemberJoin => ({
  t: 'member-join', id: 's1', incarnation: incarnation(n), ...(replaces === undefined ? {} : { replaces: incarnation(replaces) }),
  instance: incarnation(99), control: ['127.0.0.1:7400'], fabric: [{ provider: 'tcp', address: '127.0.0.1:1', group: 0 }], memoryBytes: 1 << 26,
});
const segment = (n: number, rkey = 1n): NativeRegion => ({ provider: 'tcp', kind: 'heap', segment: n, tag: n + 1, bytes: 4096, remoteAddress: 4096n, rkey });

/** A data plane that remembers what was asked of it. */
class FakeDataPlane implements Pick<DataPlane, 'openShard' | 'serveShard' | 'closeShard' | 'layout' | 'stats' | 'setLeaseMs' | 'sealShard' | 'copyShard' | 'finishCopy' | 'stopCopy'> {
  readonly events: string[];
  readonly layouts = new Map<number, ShardLayout>();
  /** Holds closeShard back until it is called. */
  closing: Promise<void> = Promise.resolve();
  /** Holds copyShard back, or makes it fail. */
  copying: Promise<void> = Promise.resolve();

  constructor(events: string[]) {
    this.events = events;
  }

  openShard(o: { readonly shard: number; readonly group: number; readonly epoch: number; readonly incarnation: bigint; readonly memoryBytes: number }): Promise<ShardLayout> {
    this.events.push(`open ${o.shard} epoch ${o.epoch} memory ${o.memoryBytes}`);
    const layout = { shard: o.shard, epoch: o.epoch, incarnation: o.incarnation, layoutEpoch: 1, buckets: 64, regions: [segment(0)] };
    this.layouts.set(o.shard, layout);
    return Promise.resolve(layout);
  }

  serveShard(shard: number): Promise<void> {
    this.events.push(`serve ${shard}`);
    return Promise.resolve();
  }

  async closeShard(shard: number): Promise<void> {
    this.events.push(`close ${shard}`);
    await this.closing;
    this.events.push(`closed ${shard}`);
  }

  layout(shard: number): Promise<ShardLayout> {
    return Promise.resolve(this.layouts.get(shard)!);
  }

  stats(): Promise<DataPlaneStats> {
    this.events.push('stats');
    return Promise.resolve({ groups: [], shards: [] });
  }

  sealShard(shard: number, sealed: boolean): Promise<void> {
    this.events.push(`${sealed ? 'seal' : 'unseal'} ${shard}`);
    return Promise.resolve();
  }

  copyShard({ shard }: CopyOptions): Promise<void> {
    this.events.push(`copy ${shard}`);
    return this.copying;
  }

  finishCopy(shard: number): Promise<CopyStats> {
    this.events.push(`finish ${shard}`);
    return Promise.resolve({ entries: 1, bytes: 1, reads: 1, twoSidedGets: 0 });
  }

  stopCopy(shard: number): void {
    this.events.push(`stop ${shard}`);
  }

  setLeaseMs(ms: number): void {
    this.events.push(`leases of ${ms} ms`);
  }

  grow(shard: number, regions: readonly NativeRegion[]): void {
    const before = this.layouts.get(shard)!;
    this.layouts.set(shard, { ...before, layoutEpoch: before.layoutEpoch + 1, regions });
  }
}

class World {
  readonly machine = new MetadataMachine();
  readonly events: string[] = [];
  readonly dataPlane = new FakeDataPlane(this.events);
  readonly failures: FarkvError[] = [];
  /** Outcomes to give instead of applying, oldest first. */
  readonly instead: (Outcome | 'lost')[] = [];
  leasesOver: () => void = () => undefined;
  life: RegionLife;
  #sequence = 0;

  constructor(options: Partial<RegionLifeOptions> = {}) {
    let counter = 1000n;
    this.life = new RegionLife({
      memberId: 's1', incarnation: incarnation(1), leaseMs: 2000, leaseOverMs: 2014, memoryBytes: 16 << 20, shardMemoryMin: 4 << 20, dataPlane: this.dataPlane,
      state: () => this.machine.state,
      propose: (command) => this.#propose(command),
      leasesOver: new Promise((resolve) => (this.leasesOver = resolve)),
      beforeServing: () => this.events.push('marked'),
      here: { providers: ['tcp'], host: undefined },
      random64: () => ++counter,
      sleep: () => Promise.resolve(),
      log: new Log('error', () => undefined),
      fatal: (error) => this.failures.push(error),
      ...options,
    });
  }

  apply(...commands: Command[]): void {
    for (const command of commands) {
      const { outcome } = this.machine.apply(encodeProposal({ proposer: incarnation(5), sequence: ++this.#sequence, command }));
      if (outcome === 'duplicate' || !outcome.ok) throw new Error(`refused: ${JSON.stringify(command)}`);
    }
    this.life.stateChanged();
  }

  async #propose(command: Command): Promise<Outcome> {
    this.events.push(command.t === 'shard-layout' ? `propose ${command.t} +${command.add.length} -${command.remove.length}` : `propose ${command.t}`);
    // As a change takes its time.
    await new Promise((resolve) => setImmediate(resolve));
    const instead = this.instead.shift();
    if (instead === 'lost') throw new FarkvError('ERR_TIMEOUT', 'lost');
    if (instead !== undefined) return instead;
    const { outcome } = this.machine.apply(encodeProposal({ proposer: incarnation(5), sequence: ++this.#sequence, command }));
    this.life.stateChanged();
    return outcome === 'duplicate' ? 'unknown' : outcome;
  }

  /** Everything that can happen without outside help has happened. */
  async quiet(): Promise<void> {
    for (let before = -1; before !== this.events.length; ) {
      before = this.events.length;
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

const bootstrap = (shards: number): Bootstrap => ({ t: 'bootstrap', clusterId: '1f'.repeat(16), hashSeed: '2f'.repeat(16), ticketSecret: '3f'.repeat(16), shards, voters: ['s1'] });

async function serving(t: ExecutionContext, shards = 1): Promise<World> {
  const world = new World();
  world.apply(bootstrap(shards), join(1), { t: 'assign-shards' });
  world.leasesOver();
  await world.life.until(() => world.life.settled);
  await world.quiet();
  t.deepEqual(world.failures, []);
  return world;
}

test('a shard is opened under its epoch, told, and served only when the old leases are over', async (t) => {
  const world = new World();
  world.apply(bootstrap(1), join(1), { t: 'assign-shards' });
  await world.quiet();
  t.deepEqual(world.events, [`open 0 epoch 1 memory ${16 << 20}`, 'propose shard-opened']);
  t.false(world.life.settled);
  world.leasesOver();
  await world.life.until(() => world.life.settled);
  t.deepEqual(world.events.slice(2), ['marked', 'serve 0']);
  t.like(world.machine.state.shards[0], { incarnation: hex64(1001n), layoutEpoch: 1, buckets: 64 });
  t.deepEqual(world.life.serving, [0]);
});

test('the start is marked once, before the first shard is served, and memory is shared out', async (t) => {
  const world = await serving(t, 4);
  t.is(world.events.filter((e) => e === 'marked').length, 1);
  t.true(world.events.indexOf('marked') < world.events.findIndex((e) => e.startsWith('serve')));
  t.is(world.events.filter((e) => e.endsWith(`memory ${4 << 20}`)).length, 4);
  t.deepEqual(world.life.serving, [0, 1, 2, 3]);
});

test('nothing is opened before the metadata names this start of the server', async (t) => {
  const world = new World();
  world.apply(bootstrap(1), join(7), { t: 'assign-shards' });
  await world.quiet();
  t.deepEqual(world.events, []);
  world.apply(join(1, 7));
  await world.quiet();
  t.is(world.events[0], `open 0 epoch 2 memory ${16 << 20}`);
});

test('shards that come later have their limit too, and none has less than the least', async (t) => {
  const world = await serving(t, 5);
  t.is(world.events.filter((e) => e.endsWith(`memory ${4 << 20}`)).length, 5);
  t.deepEqual(world.failures, []);
});

test('an announcement that was lost, or whose outcome is unknown, is made again until the metadata has it', async (t) => {
  const world = new World();
  world.instead.push('lost', 'unknown', { ok: false, code: 'ERR_BUSY', message: 'later' });
  world.apply(bootstrap(1), join(1), { t: 'assign-shards' });
  world.leasesOver();
  await world.life.until(() => world.life.settled);
  t.is(world.events.filter((e) => e === 'propose shard-opened').length, 4);
});

test('new segments are told as differences, those of one moment together', async (t) => {
  const world = await serving(t);
  world.dataPlane.grow(0, [segment(0), segment(1)]);
  world.life.layoutChanged(0);
  world.dataPlane.grow(0, [segment(0), segment(1), segment(2)]);
  world.life.layoutChanged(0);
  await world.quiet();
  t.deepEqual(world.machine.state.shards[0]?.regions.map((r) => r.segment), [0, 1, 2]);
  t.is(world.machine.state.shards[0]?.layoutEpoch, 3);
  const told = world.events.length;
  world.dataPlane.grow(0, [segment(2), segment(3)]);
  world.life.layoutChanged(0);
  await world.quiet();
  t.deepEqual(world.events.slice(told), ['propose shard-layout +1 -2']);
  t.deepEqual(world.machine.state.shards[0]?.regions.map((r) => r.segment), [2, 3]);
});

test('while a table fills its changes are told with a pause after each, and those of a pause together', async (t) => {
  const pauses: (() => void)[] = [];
  const world = new World({ sleep: () => new Promise((resolve) => pauses.push(resolve)) });
  world.apply(bootstrap(1), join(1), { t: 'assign-shards' });
  world.leasesOver();
  await world.life.until(() => world.life.settled);
  const told = world.events.length;
  for (const count of [2, 3, 4]) {
    world.dataPlane.grow(0, Array.from({ length: count }, (_, i) => segment(i)));
    world.life.layoutChanged(0);
    await world.quiet();
  }
  t.deepEqual(world.events.slice(told), ['propose shard-layout +1 -0']);
  pauses.shift()?.();
  await world.quiet();
  t.deepEqual(world.events.slice(told), ['propose shard-layout +1 -0', 'propose shard-layout +2 -0']);
  t.deepEqual(world.machine.state.shards[0]?.regions.map((r) => r.segment), [0, 1, 2, 3]);
});

test('a layout change that was lost is told again', async (t) => {
  const world = await serving(t);
  world.instead.push('lost', 'unknown');
  world.dataPlane.grow(0, [segment(0), segment(1)]);
  world.life.layoutChanged(0);
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
  t.deepEqual(world.life.serving, []);
  // The same start cannot come back; a machine that names it again stands for a shard that moved away and returned.
  world.apply(join(1, 2));
  await world.quiet();
  t.deepEqual(world.events.slice(before), ['close 0'], 'not before the old one is gone');
  closed();
  await world.life.until(() => world.life.settled);
  t.deepEqual(world.events.slice(before, before + 4), ['close 0', 'closed 0', `open 0 epoch 3 memory ${16 << 20}`, 'propose shard-opened']);
});

test('closing waits for the leases, but not longer than it was told to', async (t) => {
  const world = await serving(t, 2);
  t.true(await world.life.close(10_000));
  t.deepEqual(world.events.slice(-4), ['close 0', 'close 1', 'closed 0', 'closed 1']);
  const stuck = await serving(t);
  stuck.dataPlane.closing = new Promise(() => undefined);
  t.false(await stuck.life.close(1));
  await t.throwsAsync(stuck.life.until(() => false), { code: 'ERR_CLOSED' });
});

test('a start that ends before the leases of the last run are over does not say that nobody relies on it', async (t) => {
  const world = new World();
  world.apply(bootstrap(1), join(1), { t: 'assign-shards' });
  await world.quiet();
  t.false(await world.life.close(10_000));
});

test('a difference replaces a segment whose rkey changed and names what is gone', (t) => {
  const known = { shard: 0, group: 0, epoch: 1, incarnation: incarnation(9), layoutEpoch: 3, buckets: 1, regions: [0, 1].map((n) => ({ ...segment(n), remoteAddress: '4096', rkey: '1' })) };
  const delta = layoutDelta(known, { shard: 0, epoch: 1, incarnation: 9n, layoutEpoch: 5, buckets: 2, regions: [segment(1, 2n), segment(2)] });
  t.like(delta, { from: 3, layoutEpoch: 5, buckets: 2 });
  t.deepEqual(delta.add.map((r) => [r.segment, r.rkey]), [[1, '2'], [2, '1']]);
  t.deepEqual(delta.remove, [{ provider: 'tcp', kind: 'heap', segment: 0 }]);
});

const format2: Command = { t: 'raise-format', format: 2, votersMax: 3, ownerLease: { leaseMs: 1000, driftPpm: 0 } };

/** s2, which only has to be there. */
const other: Command = { ...join(50), id: 's2', instance: incarnation(98) };

async function two(t: ExecutionContext, options: Partial<RegionLifeOptions> = {}): Promise<World> {
  const world = new World(options);
  world.apply({ ...bootstrap(2), voters: ['s1', 's2'] }, join(1), { t: 'assign-shards' }, format2, other);
  world.leasesOver();
  await world.life.until(() => world.life.settled);
  await world.quiet();
  t.deepEqual(world.life.serving, [0, 1]);
  return world;
}

test('a shard that is to move is closed, its leases run out, and only then is it given up', async (t) => {
  const world = await two(t);
  let closed: () => void = () => undefined;
  world.dataPlane.closing = new Promise((resolve) => (closed = resolve));
  const before = world.events.length;
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' });
  await world.quiet();
  t.deepEqual(world.events.slice(before), ['leases of 100 ms', 'close 0']);
  t.deepEqual(world.life.serving, [1]);
  t.is(world.machine.state.shards[0]?.owner, 's1');
  closed();
  await world.quiet();
  t.deepEqual(world.events.slice(before), ['leases of 100 ms', 'close 0', 'closed 0', 'propose shard-released', 'leases of 2000 ms']);
  t.like(world.machine.state.shards[0], { owner: 's2', epoch: 2 });
});

test('a release that was lost is proposed again', async (t) => {
  const world = await two(t);
  world.instead.push('lost', 'unknown');
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' });
  await world.quiet();
  t.is(world.events.filter((e) => e === 'propose shard-released').length, 3);
  t.is(world.machine.state.shards[0]?.owner, 's2');
});

test('a shard whose move was called off too late is opened anew by its owner', async (t) => {
  const world = await two(t);
  let closed: () => void = () => undefined;
  world.dataPlane.closing = new Promise((resolve) => (closed = resolve));
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' });
  await world.quiet();
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  closed();
  await world.life.until(() => world.life.settled);
  t.like(world.machine.state.shards[0], { owner: 's1', epoch: 2 });
  t.deepEqual(world.life.serving, [0, 1]);
});

test('a move that is called off in time changes nothing', async (t) => {
  const world = await two(t);
  const before = world.events.length;
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' });
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
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
  world.dataPlane.stats = () => new Promise((resolve, reject) => answers.push((error) => (error === undefined ? resolve({ groups: [], shards: [] }) : reject(error))));
  world.apply({ t: 'shards-taken', id: 's1', incarnation: incarnation(1), shards: [{ shard: 1, epoch: 1, to: 's2' }] });
  const passed: string[] = [];
  const ask = (who: string): Promise<void> => world.life.fence().then(() => void passed.push(who), () => void passed.push(`${who} failed`));
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
  world.apply({ ...bootstrap(1), voters: ['s1', 's2'] }, join(1), { t: 'assign-shards' }, format2, other);
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's2' });
  await world.quiet();
  t.deepEqual(world.events, [`open 0 epoch 1 memory ${16 << 20}`]);
  open();
  await world.quiet();
  t.deepEqual(world.events.slice(1), ['close 0', 'closed 0']);
});

test('a shard that is to move before the leases of the last run are over is given up only then', async (t) => {
  const world = new World();
  world.apply({ ...bootstrap(1), voters: ['s1', 's2'] }, join(7), { t: 'assign-shards' }, format2, other, join(1, 7));
  await world.quiet();
  world.apply({ t: 'shard-move', shard: 0, epoch: 2, to: 's2' });
  await world.quiet();
  t.is(world.machine.state.shards[0]?.owner, 's1');
  t.false(world.events.includes('propose shard-released'));
  world.leasesOver();
  await world.quiet();
  t.like(world.machine.state.shards[0], { owner: 's2', epoch: 3 });
});

const format4: Command = { ...format2, format: 4 };
const copyOf = (phase: 'last' | 'copied'): Command => ({ t: 'shard-copy', shard: 0, epoch: 1, to: 's2', memberIncarnation: incarnation(50), phase, group: 0, copy: incarnation(7) });

async function seen(world: World, event: string): Promise<void> {
  while (!world.events.includes(event)) await new Promise((resolve) => setImmediate(resolve));
}
/** It is never too late. */
const patient = (ms: number): Promise<void> => (ms === 3000 ? new Promise<void>(() => undefined) : Promise.resolve());

test('a shard that is copied is served until its copy is nearly done, read until it is done, and only then closed', async (t) => {
  const world = await two(t, { sleep: patient });
  const before = world.events.length;
  world.apply(format4, { t: 'shard-move', shard: 0, epoch: 1, to: 's2' });
  await world.quiet();
  t.deepEqual(world.events.slice(before), []);
  world.apply(copyOf('last'));
  await seen(world, 'seal 0');
  t.deepEqual(world.events.slice(before, before + 2), ['leases of 100 ms', 'seal 0']);
  t.false(world.events.includes('close 0'));
  world.apply(copyOf('copied'));
  await world.life.until(() => world.machine.state.shards[0]!.owner === 's2');
  await world.quiet();
  t.deepEqual(world.events.slice(before), ['leases of 100 ms', 'seal 0', 'close 0', 'closed 0', 'propose shard-released', 'leases of 2000 ms']);
});

test('a move that is called off while the last of it is copied leaves the shard as it was, without its seal', async (t) => {
  const world = await two(t, { sleep: patient });
  world.apply(format4, { t: 'shard-move', shard: 0, epoch: 1, to: 's2' }, copyOf('last'));
  await seen(world, 'seal 0');
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  await world.quiet();
  t.is(world.events.at(-2), 'unseal 0');
  t.deepEqual(world.life.serving, [0, 1]);
  t.false(world.events.includes('close 0'));
});

test('an owner that is sealed and hears nothing more calls the move off itself', async (t) => {
  const world = await two(t);
  world.apply(format4, { t: 'shard-move', shard: 0, epoch: 1, to: 's2' }, copyOf('last'));
  await seen(world, 'unseal 0');
  t.true(world.events.indexOf('seal 0') < world.events.indexOf('propose shard-move'));
  t.true(world.events.indexOf('propose shard-move') < world.events.indexOf('unseal 0'));
  t.deepEqual(world.machine.state.moves, []);
  t.is(world.machine.state.shards[0]!.epoch, 1);
});

/** Shard 0 is s2's and open there; it is to move here. */
function coming(options: Partial<RegionLifeOptions> = {}): World {
  const world = new World(options);
  world.apply({ ...bootstrap(1), voters: ['s1', 's2'] }, other, { t: 'assign-shards' }, format2, format4, join(1));
  world.apply({ t: 'shard-opened', shard: 0, owner: 's2', memberIncarnation: incarnation(50), epoch: 1, incarnation: incarnation(77), layoutEpoch: 1, buckets: 64, regions: [] });
  world.leasesOver();
  return world;
}
const released: Command = { t: 'shard-released', shard: 0, owner: 's2', memberIncarnation: incarnation(50), epoch: 1 };

test('a shard that comes is opened under the next epoch, copied, and served as it is when it is given up', async (t) => {
  const world = coming();
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  while (world.machine.state.moves[0]?.phase !== 'copied') await world.quiet();
  world.apply(released);
  await world.life.until(() => world.life.settled);
  t.deepEqual(world.events.filter((e) => /^(open|copy|finish|serve|close|propose)/.test(e)), [
    `open 0 epoch 2 memory ${16 << 20}`, 'copy 0', 'propose shard-copy', 'finish 0', 'propose shard-copy', 'propose shard-opened', 'serve 0',
  ]);
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
      world.apply({ t: 'shard-copy', shard: 0, epoch: 1, to: 's1', memberIncarnation: incarnation(1), phase: 'copied', group: 0, copy });
      world.apply(released);
    });
    return stats;
  };
  await world.life.until(() => world.life.settled && world.machine.state.shards[0]!.owner === 's1');
  t.deepEqual(world.events.filter((e) => /^(open|close|serve)/.test(e)).map((e) => e.split(' ')[0]), ['open', 'serve']);
});

test('a shard that is taken from its owner before the copy was complete comes up empty', async (t) => {
  const world = coming();
  world.dataPlane.copying = new Promise((_, reject) => (world.dataPlane.stopCopy = () => reject(new FarkvError('ERR_ABORTED', 'stopped'))));
  world.apply({ t: 'shard-move', shard: 0, epoch: 1, to: 's1' });
  await seen(world, 'copy 0');
  world.apply({ t: 'shards-taken', id: 's2', incarnation: incarnation(50), shards: [{ shard: 0, epoch: 1, to: 's1' }] });
  await world.life.until(() => world.life.settled);
  t.deepEqual(world.events.filter((e) => /^(open|close|serve)/.test(e)).map((e) => e.slice(0, 14)), ['open 0 epoch 2', 'close 0', 'closed 0', 'open 0 epoch 2', 'serve 0']);
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
  t.deepEqual(world.events.filter((e) => /^(open|copy|close|finish)/.test(e)).map((e) => e.split(' ')[0]), ['open', 'copy', 'close', 'closed', 'open', 'copy', 'finish']);
});
