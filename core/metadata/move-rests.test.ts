import test from 'ava';
import { hexOf, joinOf, LEASE, MetadataLog } from '../../test/support/metadata-log.js';
import { MoveRests } from './move-rests.js';
import { nextLookMs, nextMove } from './leader-policy.js';
import { GrantedLeases, heldMs } from './owner-leases.js';

const HELD = heldMs(LEASE);
const FAR_MS = 1e9;

/** A server that is drained, with the others there. */
class Draining {
  readonly log: MetadataLog;
  readonly moveRests = new MoveRests();
  readonly leases = new GrantedLeases(LEASE, 0);
  nowMs = HELD;

  constructor(ids: readonly string[], shards: number) {
    this.log = MetadataLog.cluster(shards, ids);
    this.log.do({ t: 'server-drain', id: 's1', draining: true });
    for (const s of this.log.state.shards) this.log.open(s.shard, 100 + s.shard);
    this.see();
  }

  see(): ReturnType<MoveRests['observe']> {
    return this.moveRests.observe(this.log.state, this.nowMs);
  }

  next(): ReturnType<typeof nextMove> {
    for (const { id } of this.log.state.members.values()) this.leases.grant(id, this.nowMs);
    return nextMove(this.log.state, this.leases, this.nowMs, this.moveRests);
  }

  /** What is due is planned. */
  plan(): { readonly shard: number; readonly to: string } {
    const command = this.next()!;
    this.log.do(command);
    this.see();
    return command;
  }

  callOff(shard: number): ReturnType<MoveRests['observe']> {
    this.log.do({ t: 'shard-move', shard, epoch: this.log.shard(shard).epoch, to: 's1' });
    return this.see();
  }

  /** The shard has come to where it was on its way. */
  arrive(shard: number): void {
    this.log.arrive(shard, 900 + shard);
    this.see();
  }
}

test('a shard that a drained server cannot give to one goes to another, and so does what follows it', (t) => {
  const world = new Draining(['s1', 's2', 's3'], 12);
  const first = world.plan();
  t.like(world.callOff(first.shard), [{ shard: first.shard, from: 's1', to: first.to, times: 1 }]);
  const other = first.to === 's2' ? 's3' : 's2';
  t.like(world.plan(), { shard: first.shard, to: other });
  const second = world.plan();
  t.not(second.shard, first.shard);
  t.is(second.to, other);
});

test('where there is no other server a shard rests, each time for twice as long, and does not hold up those behind it', (t) => {
  const world = new Draining(['s1', 's2'], 8);
  const { shard } = world.plan();
  let restMs = 10_000;
  for (let times = 1; times <= 8; times++) {
    t.like(world.callOff(shard), [{ shard, to: 's2', times, restMs }]);
    t.not(world.next()?.shard, shard);
    t.not(world.next(), undefined);
    t.true((nextLookMs(world.log.state, world.leases, world.nowMs, world.moveRests) ?? FAR_MS) <= world.nowMs + restMs);
    world.nowMs += restMs - 1;
    t.not(world.next()?.shard, shard);
    world.nowMs += 1;
    t.is(world.plan().shard, shard);
    restMs = Math.min(300_000, restMs * 2);
  }
});

test('the leader looks again when a rest is over, though nothing else happens', (t) => {
  const world = new Draining(['s1', 's2'], 2);
  const { shard } = world.plan();
  world.callOff(shard);
  t.is(world.next(), undefined);
  const leases = new GrantedLeases(LEASE, FAR_MS);
  t.is(nextLookMs(world.log.state, leases, world.nowMs, world.moveRests), world.nowMs + 10_000);
});

test('what was called off is forgotten when either server starts again, when another shard has come, and when the drain is undone', (t) => {
  const called = (): { readonly world: Draining; readonly shard: number } => {
    const world = new Draining(['s1', 's2'], 8);
    const { shard } = world.plan();
    world.callOff(shard);
    t.true(world.moveRests.rests(shard, 's2', world.nowMs) && world.moveRests.troubled('s1', 's2'));
    return { world, shard };
  };
  for (const id of ['s1', 's2']) {
    const { world, shard } = called();
    world.log.do(joinOf(id, 70, Number(BigInt(`0x${world.log.state.members.get(id)!.incarnation}`))));
    t.deepEqual(world.see(), []);
    t.false(world.moveRests.rests(shard, 's2', world.nowMs));
  }
  const moved = called();
  const next = moved.world.plan();
  t.not(next.shard, moved.shard);
  moved.world.arrive(next.shard);
  t.false(
    moved.world.moveRests.rests(moved.shard, 's2', moved.world.nowMs) || moved.world.moveRests.troubled('s1', 's2'),
  );
  const undone = called();
  undone.world.log.do({ t: 'server-drain', id: 's1', draining: false });
  undone.world.see();
  t.false(undone.world.moveRests.rests(undone.shard, 's2', undone.world.nowMs));
});

test('a move that ends because its shard is taken, or a server starts again, was not called off', (t) => {
  const taken = new Draining(['s1', 's2', 's3'], 4);
  const { shard, to } = taken.plan();
  taken.log.do({
    t: 'shards-taken',
    id: 's1',
    incarnation: hexOf(1),
    shards: [{ shard, epoch: 1, to: to === 's2' ? 's3' : 's2' }],
  });
  t.deepEqual(taken.see(), []);
  const restarted = new Draining(['s1', 's2', 's3'], 4);
  const move = restarted.plan();
  restarted.log.do(joinOf(move.to, 70, Number(move.to.slice(1))));
  t.deepEqual(restarted.log.state.moves, []);
  t.deepEqual(restarted.see(), []);
});

test('a move that was called off and planned anew between two looks was called off', (t) => {
  const world = new Draining(['s1', 's2'], 4);
  const { shard, to } = world.plan();
  const { epoch } = world.log.shard(shard);
  world.log.do({ t: 'shard-move', shard, epoch, to: 's1' }, { t: 'shard-move', shard, epoch, to });
  t.like(world.see(), [{ shard, to, times: 1 }]);
});
