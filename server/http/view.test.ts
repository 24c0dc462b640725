import test from 'ava';
import type { ClusterStatus } from '../status.js';
import { HISTOGRAM_BOUNDS } from '../../core/exposition.js';
import { CHANGES } from '../../native/data-plane-stats.js';
import { requestsOf } from '../../test/support/request-counts.js';
import { topScreen } from '../cli/top-screen.js';
import { viewOf } from './view.js';

/** Each of between 2 and 4 us. */
const latency = (count: number): object => ({
  ...{ count, p50: 3000, p99: 3000, max: 3000 },
  below: Array.from({ length: HISTOGRAM_BOUNDS }, (_, i) => (i < 2 ? 0 : count)),
});
/** Of each kind of change another number. */
const changes = (put: number): Record<string, number> =>
  Object.fromEntries(CHANGES.map((kind, i) => [kind, (i + 1) * put]));
const worker = (put: number, readsServed: number): object => ({
  requests: requestsOf(changes(put)),
  readsServed,
  reported: { hits: put, misses: put, reads: 3 * put, readBytes: 0, twoSidedGets: 0 },
  latencyNs: { get: { ...latency(0), below: [] }, put: latency(put) },
});
const HOUR_MS = 3_600_000;
const status = (put: number, more: { processId?: number; uptimeMs?: number; id?: string } = {}): ClusterStatus =>
  ({
    clusterId: 'ab'.repeat(16),
    leader: 's1',
    term: 3,
    mapEpoch: 1,
    answeredBy: 's1',
    members: [
      {
        id: more.id ?? 's1',
        state: 'up',
        leader: true,
        role: 'voter',
        draining: false,
        memoryBytes: 1 << 30,
        node: {
          group: { diskFull: false },
          processId: more.processId ?? 1,
          version: '1',
          uptimeMs: more.uptimeMs ?? HOUR_MS,
          clients: 2,
          leaseHeld: true,
          dataPlane: { workers: [worker(put, 2 * put)], shards: [] },
        },
      },
      { id: 's2', state: 'unreachable', leader: false, role: 'voter', draining: false, memoryBytes: 0 },
    ],
    shards: [
      { shard: 0, owner: 's1', state: 'serving', entries: 5, memory: { live: 7 }, pages: { small: 9 } },
      { shard: 1, owner: 's2', state: 'unreachable' },
    ],
    moves: [],
    replication: [],
    moveErrors: [],
    failovers: [],
    tenants: [{ name: 'blue', firstShard: 1, shards: 1 }],
  }) as unknown as ClusterStatus;

test('rates are those between two looks at the same process', (t) => {
  const before = { atMs: 1000, status: status(100) };
  t.like(viewOf(before).rates, { put: 0 }, 'the first look has none');
  const view = viewOf({ atMs: 3000, status: status(300) }, before);
  t.deepEqual<object, object>(view.rates, { ...changes(100), get: 0, scan: 0, read: 200 });
  t.like(view.servers[0], { rates: { put: 100 }, getUsP99: 0, syncUsP99: 0, shards: 1, entries: 5, leaseHeld: true });
  const { putUsP50 = 0, putUsP99 = 0 } = view.servers[0] ?? {};
  t.true(putUsP50 > 2.9 && putUsP50 < 3.2 && putUsP99 > 4 && putUsP99 < 4.1, `${putUsP50}, ${putUsP99}`);
  t.is(viewOf({ atMs: 4000, status: status(300) }, { atMs: 3000, status: status(300) }).servers[0]?.putUsP99, 0);
  t.like(view.shards[1], { tenant: 'blue', owner: 's2', state: 'unreachable' });
  t.like(view, { memory: { live: 7 }, pages: { small: 9 } });
  t.deepEqual(view.gets, { perSecond: 200, hitRatio: 0.5, readsPerGet: 1.5 });
  t.deepEqual(viewOf(before).gets, { perSecond: 0, hitRatio: 0, readsPerGet: 0 });
  t.like(viewOf({ atMs: 3000, status: status(300, { processId: 2 }) }, before).rates, { put: 0 });
  t.true(view.attention.some((line) => line.startsWith('s2 does not answer')));
  t.deepEqual(view.underWay, []);
  const fresh = { ...status(0), shards: [{ shard: 0, state: 'unassigned' }] } as unknown as ClusterStatus;
  t.regex(viewOf({ atMs: 0, status: fresh }).underWay.join(), /^shard 0: no server has it yet: /);
});

test('a server that has started again counts anew, also under the same process id, and takes nothing from the others', (t) => {
  const look = (atMs: number, ...servers: ReturnType<typeof status>[]) => ({
    atMs,
    status: { ...status(0), members: servers.flatMap(({ members }) => members.slice(0, 1)) },
  });
  const before = look(
    1000,
    status(100, { id: 's1' }),
    status(5000, { id: 's2' }),
    status(40, { id: 's3', uptimeMs: 1000 }),
  );
  const s1 = status(400, { id: 's1', uptimeMs: HOUR_MS + 10_000 });
  // s2 has fewer than before, s3 has more, and has not been up for as long as it should.
  const again = [status(10, { id: 's2', uptimeMs: 6000 }), status(50, { id: 's3', uptimeMs: 6000 })];
  const view = viewOf(look(11_000, s1, ...again), before);
  t.deepEqual(view.gets, { perSecond: 60, hitRatio: 0.5, readsPerGet: 1.5 });
  t.deepEqual(
    view.servers.map(({ rates, putUsP99 }) => [rates.put, putUsP99 > 0]),
    [
      [30, true],
      [0, false],
      [0, false],
    ],
  );
  const lost = look(11_000, s1, status(10, { id: 's2', uptimeMs: HOUR_MS + 10_000 }));
  t.is(viewOf(lost, before).gets.perSecond, 60, 'and so where a start cannot be told');
});

test('a frame says first what needs a person, fits its screen, and has no control characters', (t) => {
  const view = viewOf({ atMs: 3000, status: status(300, { id: 's\u001b[2J' }) });
  const frame = topScreen(view, { columns: Infinity, rows: Infinity });
  t.regex(frame, /^farkv abababab {2}00:00:03 UTC {2}leader s1, term 3 {2}1 of 2 shards served/);
  t.regex(frame.split('\n')[1] ?? '', /^needs attention: s2 does not answer/);
  t.regex(frame, /^s\\x1b\[2J +up, leader +held/m);
  t.regex(frame, /^advice: the metadata group has two voters, .*\n/m);
  t.regex(frame, /^shard 1: unreachable at s2/m);
  const small = topScreen(view, { columns: 20, rows: 3 }).split('\n');
  t.is(small.length, 3);
  t.true(small.every((line) => line.length <= 20));
});

test('how many copies are in sync is said at any width, and more at one shard make up for none at another', (t) => {
  const { shards, ...more } = status(0);
  const copies = [
    ...[3, 1, 0].map((inSync) => ({ inSync, wanted: 2, copies: [] })),
    { inSync: 2, wanted: 2, lag: 7, copies: [] },
  ];
  const many = copies.map((one, shard) => ({ ...shards[0], shard, copies: one })) as unknown as ClusterStatus['shards'];
  const view = viewOf({ atMs: 3000, status: { ...more, shards: many } });
  t.regex(
    topScreen(view, { columns: Infinity, rows: 24 }),
    /^farkv .* 4 of 4 shards served {2}copies 5\/8 in sync {2}lag 7$/m,
  );
  for (const columns of [80, 60, 40, 26]) {
    const lines = topScreen(view, { columns, rows: 24 }).split('\n');
    t.true(lines.every((line) => line.length <= columns));
    t.regex(lines.join('\n'), /(^| {2})copies 5\/8 in sync( {2}|$)/m, String(columns));
  }
});

test('copies of servers that do not answer are not counted as in sync', (t) => {
  const { shards, ...more } = status(0);
  const copies = {
    ...{ inSync: 2, wanted: 3 },
    copies: [
      { member: 's1', state: 'in-sync' },
      { member: 's2', state: 'in-sync', away: true },
      { member: 's3', state: 'joining', away: true },
    ],
    notCopied: [{ member: 's4', times: 2, full: true }],
  };
  const one = { ...more, shards: [{ ...shards[0], copies }] } as unknown as ClusterStatus;
  const view = viewOf({ atMs: 3000, status: one });
  t.like(view.shards[0], { inSync: 1, wanted: 3 });
  t.deepEqual(
    view.shards[0]?.copies,
    [
      { member: 's1', lacks: '' },
      { member: 's2', lacks: 'away' },
      { member: 's3', lacks: 'joining, away' },
      { member: 's4', lacks: 'full' },
    ],
    'as farkv status has them',
  );
  t.regex(topScreen(view, { columns: Infinity, rows: 24 }), / copies 1\/3 in sync /);
});

test('a narrow screen has fewer columns, and whole ones', (t) => {
  const view = viewOf({ atMs: 3000, status: status(1_234_567) }, { atMs: 1000, status: status(0) });
  const lines = topScreen(view, { columns: 80, rows: 24 }).split('\n');
  t.true(lines.every((line) => line.length <= 80));
  const titles = lines.find((line) => line.startsWith('SERVER'));
  t.regex(titles ?? '', /^SERVER +STATE .*USED +READS\/S +PUTS\/S .*PUT P99/);
  t.regex(lines.find((line) => line.startsWith('s1 ')) ?? '', / 1,234,567 +617,284 +4\.\d+ µs$/);
  const wide = topScreen(view, { columns: 200, rows: 24 });
  for (const title of ['LEASE', 'MEMORY', 'LIMIT', 'COPIES', 'ENTRIES', 'OTHER/S', 'PUT P50', 'CLIENTS'])
    t.true(wide.includes(title), title);
});

test('advice that is wider than the screen goes on in the next line, and its commands stay whole', (t) => {
  const view = viewOf({ atMs: 3000, status: status(300) });
  const attention = [
    ...view.attention,
    's1 uses 95 % of its --memory, and changes fail: add a server (farkv server --join), then farkv shard rebalance; or start s1 again',
    's1 has no lease: look at its log: farkv status --connect 10.0.0.1:7400 shows which servers it reaches',
  ];
  const lines = topScreen({ ...view, attention, advice: [] }, { columns: 80, rows: 24 }).split('\n');
  t.true(lines.every((line) => line.length <= 80));
  for (const command of [
    'farkv member remove s2',
    'farkv server --join',
    'farkv shard rebalance',
    'farkv status --connect 10.0.0.1:7400',
  ])
    t.is(lines.filter((line) => line.includes(command)).length, 1, command);
  const text = lines.join('\n').replaceAll('\n  ', ' ');
  for (const line of attention) t.true(text.includes(`needs attention: ${line}\n`), line);
  const wide = topScreen({ ...view, attention }, { columns: Infinity, rows: 24 });
  for (const line of attention) t.true(wide.includes(`needs attention: ${line}\n`), line);
});
