/** Copies that are late again and again, at their owner (rejoin-backoff.ts). */
import test from 'ava';
import { kept, owner, type Copies } from '../../test/support/copies-rig.js';
import { hexOf } from '../../test/support/metadata-log.js';
import type { Command } from '../metadata/commands.js';

const ID = hexOf(2001);

/** The copy is late, and is removed for that. */
function lateCounts(rig: Copies): void {
  rig.notices(ID, 'late');
  rig.applied();
}

/** It is back; what is asked for then. */
function returns(rig: Copies): string[] {
  return rig.notices(ID, 'joined');
}

function isInSyncAgain(rig: Copies): void {
  rig.done('require', undefined, 9);
  rig.applied();
}

test('a copy that was late is required as soon as it is back, and later and later when it is late again', (t) => {
  const rig = kept();
  const member = rig.log.others[0]!;
  lateCounts(rig);
  t.deepEqual(returns(rig), [`require ${ID}`], 'the first time');
  const waits = [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
  waits.forEach((ms, i) => {
    isInSyncAgain(rig);
    lateCounts(rig);
    rig.notes.length = 0;
    t.deepEqual(returns(rig), [`wait ${ms}`]);
    t.deepEqual(rig.notes, [{ of: 'copy held back', shard: 0, member, times: i + 2, ms }]);
    t.deepEqual(rig.shards.heldBack, [{ shard: 0, member, times: i + 2 }]);
    const keep: Command = { t: 'copies-keep', ...rig.log.name, ...rig.log.byOwner };
    t.deepEqual(rig.see(keep), [`configure ${rig.log.set.config} []`], 'it is held back in every config');
    t.deepEqual(rig.waited(ms), [`require ${ID}`]);
    t.deepEqual(rig.shards.heldBack, []);
  });
});

test('a copy that was in time for a minute is as good as any', (t) => {
  const rig = kept();
  lateCounts(rig);
  returns(rig);
  isInSyncAgain(rig);
  t.deepEqual(rig.waited(60_000), []);
  lateCounts(rig);
  t.deepEqual(returns(rig), [`require ${ID}`]);
});

test('a copy without which changes are refused is not held back', (t) => {
  const rig = kept({ minInSync: 2 });
  for (let i = 0; i < 3; i++) {
    lateCounts(rig);
    t.regex(rig.log.copies, /eligible/);
    t.deepEqual(returns(rig), [`require ${ID}`]);
    isInSyncAgain(rig);
  }
  const other = kept();
  lateCounts(other);
  returns(other);
  isInSyncAgain(other);
  lateCounts(other);
  t.deepEqual(returns(other), ['wait 1000']);
  const more: Command = { t: 'policy-set', tenant: 0, level: 'replicated', replicas: 3, minInSync: 2, onLoss: 'wait' };
  t.deepEqual(other.see(more).at(-1), `require ${ID}`);
});

test('what a server makes anew is held back as what it had', (t) => {
  const rig = owner();
  const [member = ''] = rig.log.others;
  rig.notices(ID, 'joined');
  rig.done('require', undefined, 7);
  rig.applied();
  lateCounts(rig);
  returns(rig);
  isInSyncAgain(rig);
  lateCounts(rig);
  rig.see(rig.freed(member));
  rig.see(rig.add(member));
  rig.see({ t: 'copy-named', ...rig.log.name, member, start: rig.log.start(member), copy: hexOf(2009), worker: 1 });
  t.deepEqual(rig.notices(hexOf(2009), 'joined').at(-1), 'wait 1000');
});

test('a copy that joins again is not late for what was sent before the data plane had that config', (t) => {
  const rig = kept();
  const member = rig.log.others[0]!;
  t.deepEqual(rig.notices(ID, 'unlinked'), ['probe']);
  t.deepEqual(rig.done('probe', { full: false, error: 'nobody listens' }), ['wait 60000', 'copies-removed']);
  t.deepEqual(rig.applied(), [`configure ${rig.log.set.config} []`]);
  t.deepEqual(rig.notices(ID, 'late'), [], 'it was, until it was removed');
  t.is(rig.log.copy(member)?.state, 'joining', 'it keeps what it has');
  t.deepEqual(returns(rig), [`require ${ID}`], 'and was late once');
  isInSyncAgain(rig);
  t.deepEqual(rig.notices(ID, 'late'), ['wait 60000', 'copies-removed'], 'what comes later counts');
});
