/** Moves of shards: who plans them, what they need, and what ends them. The handover itself is in promotions.test.ts. */
import test from 'ava';
import { CopyLog } from '../../test/support/copy-log.js';
import { hexOf, joinOf } from '../../test/support/metadata-log.js';
import type { ShardMove } from './commands.js';
import { MetadataMachine } from './machine.js';

const CACHE = { level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' } as const;
const moveTo = (log: CopyLog, to: string): ShardMove => ({ t: 'shard-move', shard: 0, epoch: log.shard(0).epoch, to });

/** A cache, whose shard is on its way to `a`. */
function moving(): { log: CopyLog; a: string; b: string; from: string } {
  const log = new CopyLog(CACHE);
  const [a = '', b = ''] = log.others;
  return { log: log.do(moveTo(log, a)), a, b, from: log.owner! };
}

test("a cache's shard is moved as any other: to a copy in sync, and nobody else keeps one then", (t) => {
  const { log, a } = moving();
  log.arrive(0, 60);
  t.like(log.shard(0), { owner: a, epoch: 2, incarnation: hexOf(60) });
  t.deepEqual(log.state.moves, []);
  t.deepEqual(
    log.set.copies.map(({ member, state }) => [member, state]),
    [[a, 'in-sync']],
  );
});

test('a shard that came with its values is not new, whatever the policy is by then', (t) => {
  const { log, a } = moving();
  log.do({ t: 'policy-set', tenant: 0, level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' });
  log.arrive(0, 60);
  t.is(log.owner, a);
  t.is(log.copy(a)?.state, 'in-sync');
});

test('a move ends with the copy that it needs, which cannot be made or whose server ends; one that is called off elsewhere ends none', (t) => {
  const { log, a, b, from } = moving();
  const add = (id: string): CopyLog =>
    log.do({ t: 'copies-add', copies: [{ ...log.name, member: id, start: log.start(id), rank: 1 }] });
  const fails = (id: string): CopyLog =>
    log.do({ t: 'copies-removed', copies: [{ ...log.removal(id, false), failed: true }] });
  add(b);
  fails(b);
  t.like(log.state.moves, [{ shard: 0, to: a }]);
  add(a).without(a, false);
  t.is(log.state.moves.length, 1, 'its owner begins it again');
  const { mapEpoch } = log.state;
  add(a);
  fails(a);
  t.deepEqual(log.state.moves, []);
  t.true(log.state.mapEpoch > mapEpoch);
  t.like(log.shard(0), { owner: from, epoch: 1 });
  log.do(moveTo(log, a)).with(a);
  log.do({ t: 'copies-removed', copies: [log.removal(a, false)] });
  t.deepEqual(log.state.moves, [], 'its server ends');
});

test('a move is called off as the one that was seen, and not if another has taken its place', (t) => {
  const { log, b, from } = moving();
  const seen = (): number => log.state.moves[0]!.planned;
  const first = seen();
  log.do(moveTo(log, b));
  t.not(seen(), first);
  t.regex(log.try({ ...moveTo(log, from), planned: first }), /^ERR_BUSY: the move of shard 0 .* is another now$/);
  t.is(log.state.moves[0]?.to, b);
  t.is(log.try({ ...moveTo(log, from), planned: seen() }), 'ok');
  t.deepEqual(log.state.moves, []);
  t.regex(log.try({ ...moveTo(log, b), planned: first }), /is over/);
});

test('a move ends when either server starts again', (t) => {
  for (const who of ['a', 'from'] as const) {
    const { log, ...ids } = moving();
    const id = ids[who];
    log.do(joinOf(id, 90, Number(id.slice(1))));
    t.deepEqual(log.state.moves, []);
  }
});

test('a snapshot keeps moves', (t) => {
  const { log } = moving();
  const again = new MetadataMachine();
  again.restore(log.machine.snapshot());
  t.deepEqual(again.state, log.state);
});
