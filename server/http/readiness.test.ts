import test from 'ava';
import type { OwnReadiness } from '../own-readiness.js';
import { notReady, Readiness } from './readiness.js';

const READY: OwnReadiness = {
  ...{ role: 'follower', hasLeader: true, stopping: false, leaseHeld: true },
  ...{ waiting: [], lacking: [], dataPlaneSilentMs: 0 },
};
const own = (more: Partial<OwnReadiness>): OwnReadiness => ({ ...READY, ...more });

test('a server is ready when it has a lease, knows a leader and serves what it owns', (t) => {
  t.is(notReady(READY), undefined);
  t.is(notReady(own({ role: 'starting' })), 'this server is starting');
  t.regex(notReady(own({ role: 'starting', hasLeader: false })) ?? '', /is starting, and knows no leader/);
  t.is(notReady(own({ stopping: true })), 'this server is stopping');
  t.regex(notReady(own({ hasLeader: false })) ?? '', /no leader/);
  t.regex(notReady(own({ leaseHeld: false })) ?? '', /no lease/);
  t.regex(notReady(own({ recovering: { bytes: 1, all: 2 } })) ?? '', /1 of 2 bytes/);
  t.is(notReady(own({ dataPlaneSilentMs: 1999 })), undefined);
  t.is(notReady(own({ dataPlaneSilentMs: 3000 })), 'a thread of the data plane has not answered for 3 s');
  t.is(notReady(own({ waiting: [3] })), 'shard 3 of this server is not served');
  t.is(notReady(own({ waiting: [3, 4] })), 'shards 3, 4 of this server are not served');
});

test('a start is over when every shard has the copies that it is to have, or after a minute; later a lack is no matter', (t) => {
  const lacks = own({ lacking: [7] });
  let now = 0;
  const begun = new Readiness(() => now);
  t.regex(begun.why(lacks) ?? '', /shard 7 has fewer copies/);
  t.false(begun.began);
  t.is(begun.why(READY), undefined);
  t.true(begun.began);
  t.is(begun.why(lacks), undefined);
  t.is(begun.why(own({ role: 'starting' })), 'this server is starting');
  const lonely = new Readiness(() => now);
  t.regex(lonely.why(lacks) ?? '', /another server should not be stopped/);
  now = 59_999;
  t.regex(lonely.why(lacks) ?? '', /fewer copies/);
  now = 60_000;
  t.is(lonely.why(lacks), undefined);
});
