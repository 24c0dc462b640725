import test from 'ava';
import { raftIdOf } from '../../core/metadata/placement.js';
import type { MemberProgress, RaftStatus } from '../../core/raft/index.js';
import { MetadataLog } from '../../test/support/metadata-log.js';
import { prepareRemoval } from './removal.js';

const NAMES = ['s1', 's2', 's3'];

/** At s1, which leads the voters: those in `near` have its log. */
function removal(
  id: string,
  voters: readonly string[],
  near: readonly string[],
  gone: readonly string[] = [],
  applied = 100,
) {
  const { state } = MetadataLog.cluster(1, NAMES);
  const handed: number[] = [];
  const progress = NAMES.map((name) => {
    const isNear = near.includes(name);
    return { id: raftIdOf(name), state: isNear ? 'replicate' : 'probe', match: 100, active: isNear };
  }) as unknown as MemberProgress[];
  const config = { voters: voters.map(raftIdOf), outgoing: [], learners: [] };
  const status = { id: raftIdOf('s1'), config, progress, applied, lastIndex: 100 } as unknown as RaftStatus;
  const servers = state.servers.filter((s) => !gone.includes(s.id));
  const driver = { status: () => status, state: { ...state, servers }, handOver: (to: number) => void handed.push(to) };
  return { handed, ask: () => prepareRemoval(driver, { t: 'server-remove', id, raftId: raftIdOf(id) }) };
}

test('a voter is removed while most of the others answer, and one that does not vote at any time', (t) => {
  for (const near of [NAMES, ['s1', 's2']]) t.notThrows(removal('s3', NAMES, near).ask);
  t.notThrows(removal('s2', ['s1', 's2'], NAMES).ask);
  t.notThrows(removal('s3', ['s1'], ['s1']).ask);
  const tooFew = removal('s2', NAMES, ['s1', 's2']);
  t.throws(tooFew.ask, {
    code: 'ERR_BUSY',
    message:
      /^s2 votes in the metadata group, and of the 2 voters that would be left too few .*\(not s3\): start those again, or remove them first$/,
  });
  // Its vote is still there, and out of reach.
  t.throws(removal('s2', NAMES, NAMES, ['s3']).ask, { code: 'ERR_BUSY', message: /not one that was removed/ });
});

test('a voter is not removed while the removal of another may be under way', (t) => {
  const early = removal('s3', NAMES, NAMES, [], 99);
  t.throws(early.ask, {
    code: 'ERR_BUSY',
    message: /^s3 votes in the metadata group, and other changes are under way/,
  });
});

test('a leader hands over before it is removed, to a voter that has its log', (t) => {
  const { handed, ask } = removal('s1', ['s1', 's2'], ['s1', 's2']);
  t.throws(ask, { code: 'ERR_NO_LEADER', message: /^s1 leads the metadata group, and hands that over/ });
  t.deepEqual(handed, [raftIdOf('s2')]);
  const alone = removal('s1', ['s1', 's2'], ['s1']);
  t.throws(alone.ask, { code: 'ERR_BUSY', message: /not s2/ });
  t.deepEqual(alone.handed, []);
});
