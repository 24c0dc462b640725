import test from 'ava';
import { FarkvError, type ErrorCode } from '../../core/errors.js';
import type { Command } from '../../core/metadata/commands.js';
import { planRebalance } from '../../core/metadata/plan.js';
import { MetadataLog } from '../../test/support/metadata-log.js';
import { seeded } from '../../test/support/random.js';
import type { MoveAsked } from '../operator-calls.js';
import type { MoveError } from '../shards/move-errors.js';
import type { ClusterStatus } from '../status.js';
import { lookAt, moveOne, planText, spread, type Cluster } from './rebalance.js';

/** Real metadata whose moves go on by one each time the status is asked for. */
class Stage implements Cluster {
  readonly log: MetadataLog;
  readonly moved: string[] = [];
  /** No copy can be made at these servers: moves there are called off. */
  readonly refuses = new Set<string>();
  /** These servers use so much of their memory of 100 bytes beside shards, which have 10 each then. */
  readonly used = new Map<string, number>();
  /** What else happens, once each, before the status is told. */
  readonly meanwhile: (() => void)[] = [];
  readonly calledOff: MoveError[] = [];
  #incarnation = 1000;
  #looks = 0;

  constructor(shards: number, servers: readonly string[]) {
    this.log = MetadataLog.cluster(shards, servers);
    for (const s of this.log.state.shards) this.log.open(s.shard, ++this.#incarnation);
  }

  /** Somebody else's, without being waited for. */
  begin(shard: number, to: string): void {
    this.#do({ t: 'shard-move', shard, epoch: this.log.shard(shard).epoch, to });
  }

  call(method: string, args: unknown): Promise<unknown> {
    if (method === 'shard-plan')
      return Promise.resolve(planRebalance(this.log.state, [...this.log.state.members.values()]));
    const { shard, to, epoch } = args as MoveAsked;
    if (method !== 'shard-move') return Promise.reject(new Error(method));
    return new Promise((resolve) => {
      if (epoch !== undefined && epoch !== this.log.shard(shard).epoch) throw new FarkvError('ERR_BUSY', 'epoch');
      this.begin(shard, to);
      resolve({});
    });
  }

  status(): Promise<ClusterStatus> {
    if (++this.#looks > 5000) throw new Error('it looks without end');
    this.meanwhile.shift()?.();
    this.goOn();
    const { shards, moves, members } = this.log.state;
    return Promise.resolve({
      moves,
      moveErrors: [...this.calledOff],
      replication: [],
      members: [...members.keys()].map((id) => ({
        ...{ id, state: 'up', memoryBytes: 100, draining: false },
        node: { dataPlane: { shards: [{ shard: 9999, usedBytes: this.#usedAt(id) }] } },
      })),
      shards: shards.map(({ shard, owner, epoch }) => ({
        ...{ shard, owner, epoch, state: 'serving', memory: { live: this.used.size > 0 ? 10 : 0 } },
      })),
    } as unknown as ClusterStatus);
  }

  #usedAt(id: string): number {
    const used = this.used.get(id);
    return used === undefined ? 0 : used + 10 * this.log.ownedBy(id).length;
  }

  async until(condition: (status: ClusterStatus) => boolean, _waitMs: number, what: string): Promise<ClusterStatus> {
    for (let looks = 0; looks < 1000; looks++) {
      const status = await this.status();
      if (condition(status)) return status;
    }
    throw new FarkvError('ERR_ABORTED', what);
  }

  /** The first move under way ends. */
  goOn(): void {
    const [move] = this.log.state.moves;
    if (move === undefined) return;
    const { owner = '', epoch } = this.log.shard(move.shard);
    if (this.refuses.has(move.to)) {
      this.#do({ t: 'shard-move', shard: move.shard, epoch, to: owner });
      const { shard, to } = move;
      this.calledOff.push({ shard, from: owner, to, attempts: 4, reason: 'no room', calledOff: true, agoMs: 0 });
      return;
    }
    this.log.arrive(move.shard, ++this.#incarnation);
    this.moved.push(`${move.shard} ${owner} ${move.to}`);
  }

  #do(command: Command): void {
    const outcome = this.log.try(command);
    const [, code = 'ERR_INTERNAL', message = outcome] = /^(\w+): (.*)$/.exec(outcome) ?? [];
    if (outcome !== 'ok') throw new FarkvError(code as ErrorCode, message);
  }

  get counts(): number[] {
    return [...this.log.state.members.keys()].map((id) => this.log.ownedBy(id).length);
  }
}

const rebalance = async (stage: Stage): Promise<number> => await spread(stage, await lookAt(stage), 1000);

/** Everything is the first server's. */
async function onOne(stage: Stage): Promise<Stage> {
  for (const s of stage.log.state.shards)
    if (s.owner !== 's1') await moveOne(stage, { shard: s.shard, to: 's1' }, 1000);
  stage.moved.length = 0;
  return stage;
}

test('the shards are spread, and their number is told', async (t) => {
  const stage = await onOne(new Stage(6, ['s1', 's2', 's3']));
  t.is(await rebalance(stage), 4);
  t.deepEqual(stage.counts, [2, 2, 2]);
  t.is(await rebalance(stage), 0);
});

test('a server whose part of the shards is none is named', async (t) => {
  const stage = new Stage(2, ['s1', 's2', 's3']);
  const { plan, status } = await lookAt(stage);
  t.is(stage.counts.filter((count) => count === 0).length, 1);
  t.regex(
    planText(plan, status),
    /^the shards are balanced: nothing to move\ns\d owns no shard: by its --memory, 100 B of 300 B of all servers, its part of 2 shards is less than one\n$/,
  );
  // One that is away owns nothing for another reason.
  const members = status.members.map((m) => ({ ...m, state: 'unreachable' as const }));
  t.is(planText(plan, { ...status, members }), 'the shards are balanced: nothing to move\n');
});

test('moves that somebody else has begun are waited for, and are not made again', async (t) => {
  const stage = await onOne(new Stage(4, ['s1', 's2']));
  stage.begin(0, 's2');
  stage.begin(1, 's2');
  const { plan, status } = await lookAt(stage);
  t.deepEqual(plan, []);
  t.regex(
    planText(plan, status),
    /shard 1 is moving \(s1 -> s2\).*\nthe shards will be balanced when these moves are done/,
  );
  t.is(await spread(stage, { plan, status }, 1000), 0);
  t.deepEqual(stage.counts, [2, 2]);
  t.deepEqual(stage.moved, ['0 s1 s2', '1 s1 s2']);
});

test('a shard that is on its way to where the plan has it is joined; one that went there alone is no failure', async (t) => {
  const stage = await onOne(new Stage(4, ['s1', 's2']));
  const first = await lookAt(stage);
  const [one, other] = first.plan;
  stage.begin(one!.shard, one!.to);
  await moveOne(stage, other!, 1000);
  t.is(await spread(stage, first, 1000), 2);
  t.deepEqual(stage.counts, [2, 2]);
});

test('a move that was called off is not tried twice, the others are made, and what stayed is named', async (t) => {
  const stage = await onOne(new Stage(6, ['s1', 's2', 's3']));
  stage.refuses.add('s3');
  const error = await t.throwsAsync(rebalance(stage), { instanceOf: FarkvError, code: 'ERR_BUSY' });
  t.regex(
    error.message,
    /not balanced: the move of shard \d to s3 was cancelled: s1 owns it\. move of shard \d .* after 4 attempts; s1 keeps serving it: no room; the move of shard \d to s3 was cancelled/,
  );
  t.deepEqual(stage.counts, [4, 2, 0]);
});

test('nothing is moved to a server that would be nearly full', async (t) => {
  const full = await onOne(new Stage(6, ['s1', 's2', 's3']));
  full.used.set('s3', 81);
  const { plan, status } = await lookAt(full);
  const text = planText(plan, status);
  t.regex(text, /^shard \d is not moved to s3, which would be nearly full: its values take 10 B, and s3 uses 81 B of/m);
  t.is(text.match(/^ *\d +s1 +s2 +-$/gm)?.length, 2);
  t.notRegex(text, /^ *\d +s1 +s3 /m);
  const error = await t.throwsAsync(spread(full, { plan, status }, 1000), { instanceOf: FarkvError, code: 'ERR_BUSY' });
  t.regex(
    error.message,
    /not balanced: shard \d is not moved to s3, .*; add a server \(farkv server --join\), or start s3/,
  );
  t.deepEqual(full.counts, [4, 2, 0]);

  full.used.set('s3', 80);
  const last = await t.throwsAsync(rebalance(full), { instanceOf: FarkvError, code: 'ERR_BUSY' });
  t.regex(last.message, /s3 uses 90 B of its --memory of 100 B, with what is moved there before/);
  t.deepEqual(full.counts, [3, 2, 1], 'of 100 bytes 90 are not nearly all');
  full.used.set('s3', 70);
  t.is(await rebalance(full), 1);
});

test('a shard that has had another owner since it was planned is planned anew, and not moved from there', async (t) => {
  const stage = await onOne(new Stage(4, ['s1', 's2', 's3']));
  const first = await lookAt(stage);
  const { shard, to } = first.plan.at(-1)!;
  const other = to === 's2' ? 's3' : 's2';
  await moveOne(stage, { shard, to: other }, 1000);
  stage.moved.length = 0;
  await spread(stage, first, 1000);
  t.notRegex(stage.moved.join(), new RegExp(`${shard} ${other} `));
});

test('a shard that somebody else has moved back meanwhile is planned anew', async (t) => {
  const stage = await onOne(new Stage(2, ['s1', 's2']));
  const first = await lookAt(stage);
  const { shard } = first.plan[0]!;
  const lookForRoom = (): void => undefined;
  stage.meanwhile.push(lookForRoom, () => {
    stage.goOn();
    stage.begin(shard, 's1');
  });
  t.is(await spread(stage, first, 1000), 1);
  t.deepEqual(stage.moved, [`${shard} s1 s2`, `${shard} s2 s1`, `${shard} s1 s2`]);
});

test('random moves of others meanwhile: in the end the shards are spread, and no shard is moved to where it is', async (t) => {
  const random = seeded(t, import.meta.filename);
  for (let i = 0; i < 100; i++) {
    const servers = ['s1', 's2', 's3'].slice(0, 2 + random.below(2));
    const stage = await onOne(new Stage(2 + random.below(20), servers));
    for (let n = random.below(8); n > 0; n--) {
      stage.meanwhile.push(() => {
        const { shard, owner } = random.pick(stage.log.state.shards);
        const to = random.pick(servers);
        if (to !== owner && !stage.log.state.moves.some((m) => m.shard === shard)) stage.begin(shard, to);
      });
    }
    await rebalance(stage);
    while (stage.meanwhile.length > 0) await stage.status();
    await rebalance(stage);
    t.true(Math.max(...stage.counts) - Math.min(...stage.counts) <= 1, String(stage.counts));
    t.true(stage.moved.every((line) => line.split(' ')[1] !== line.split(' ')[2]));
  }
});
