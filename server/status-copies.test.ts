/** What operators see of copies, and what they may ask for. */
import test from 'ava';
import { CopyLog } from '../test/support/copy-log.js';
import { policyFrom, renderReplication } from './cli/commands/replication.js';
import { copiesStatus, copiesText, replicationStatus } from './status-copies.js';

const text = (log: CopyLog, lag?: number, answers: (id: string) => boolean = () => true): string =>
  copiesText(copiesStatus(log.state, 0, lag, answers));

test('copies in sync are counted, with the servers that have them and what is wrong', (t) => {
  const log = new CopyLog({ replicas: 2, minInSync: 2 });
  const owner = log.owner!;
  const [a = ''] = log.others;
  t.is(text(log), `1/2 ${owner} TOO FEW`);
  log.do({ t: 'policy-set', tenant: 0, level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' });
  t.is(text(log), `1/2 ${owner} DEGRADED`);
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: a, start: log.start(a), rank: 1 }] });
  t.is(text(log), `1/2 ${owner} ${a} (joining) DEGRADED`);
  log.do(log.inSync(a, '0000000000000009'));
  t.is(text(log, 3), `2/2 ${owner} ${a} lag 3`);
  t.is(text(log, 0), `2/2 ${owner} ${a}`);
});

test('a shard is lost when no server with a copy in sync answers', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const owner = log.owner!;
  const [a = '', b = ''] = log.others;
  log.with(a);
  t.is(
    text(log, 0, (id) => id === a),
    `2/2 ${owner} ${a}`,
  );
  t.is(
    text(log, 0, (id) => id === b),
    `2/2 ${owner} ${a} LOST`,
  );
});

test('a cache says nothing of copies', (t) => {
  const log = new CopyLog();
  log.do({ t: 'policy-set', tenant: 0, level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' });
  t.is(text(log), '-');
  t.deepEqual(replicationStatus(log.state), [{ level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' }]);
  t.is(replicationStatus({ ...log.state, copySets: undefined } as never), undefined);
});

test('what an operator does not say has a default by level; what does not fit is refused', (t) => {
  const given = { replicas: undefined, minInSync: undefined, onLoss: undefined };
  const replicated = policyFrom({ ...given, level: 'replicated' });
  t.deepEqual(replicated, { level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' });
  t.deepEqual(policyFrom({ ...given, level: 'cache' }), { level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' });
  for (const wrong of [{ replicas: 6 }, { replicas: 0 }, { replicas: 1.5 }, { minInSync: 3 }])
    t.throws(() => policyFrom({ ...given, level: 'replicated', ...wrong }), { code: 'ERR_CONFIG' });
  t.throws(() => policyFrom({ ...given, level: 'cache', replicas: 2 }), { code: 'ERR_CONFIG' });
  t.regex(renderReplication([{ tenant: 'blue', ...replicated }]), /blue +replicated +2 +1 +wait/);
});
