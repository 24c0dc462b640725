/** Faults that went beyond what values are promised to survive are seen in what was written down, and so are losses. */
import test from 'ava';
import type { Epoch } from './epochs.js';
import { FaultLog } from './fault-log.js';
import { judge, type Evidence } from './judge.js';
import type { Operation } from './operation.js';
import { outagesOf } from './outages.js';
import { brokenPromises, isWhole, type Look } from './promise.js';
import { emptyRecord } from './recorded.js';

const NS = 1e6;
type Event = readonly [atMs: number, what: (log: FaultLog) => void];

/** What is done to three servers, s1 to s3, in this order. */
function logOf(...events: readonly Event[]): FaultLog {
  let atMs = 0;
  const log = new FaultLog(['s1', 's2', 's3'], () => atMs * NS);
  for (const [at, what] of events) {
    atMs = at;
    what(log);
  }
  return log;
}

/** Shard 0 is at s1 and s2, shard 1 at s2 and s3; the first of them is the owner. */
const IN_SYNC = [
  ['s1', 's2'],
  ['s2', 's3'],
];
const SEEN = { fromNs: 990 * NS, inSync: IN_SYNC, owners: ['s1', 's2'], epochs: [1, 1], stopped: [], beyond: false };
const AGAIN = { atNs: 1000 * NS, epochs: [1, 1], owners: ['s1', 's2'] };
const look = (ended: readonly string[], more: Partial<Look> = {}): ((log: FaultLog) => void) => {
  return (log) => void log.look({ ...SEEN, again: AGAIN, ended, ...more });
};
const begin = (server: string, kind: 'dead' | 'stopped'): ((log: FaultLog) => void) => {
  return (log) => void log.begin({ server, kind });
};
const broken = (...events: readonly Event[]): string => brokenPromises(logOf(...events), 2, 0).join('\n');

test('a server that is ended after a look at its copies keeps within the promise', (t) => {
  t.is(broken([1000, look(['s2'])], [1010, begin('s2', 'dead')]), '');
});

test('a server that is ended without a look is told', (t) => {
  t.regex(broken([1010, begin('s2', 'dead')]), /s2 was ended at 1\.010 s, and nobody had looked/);
  t.regex(broken([1000, look(['s1'])], [1010, begin('s2', 'dead')]), /nobody had looked/, 'the look is of another one');
});

test('the end of all copies of a shard is told, unless it was meant', (t) => {
  const both = (more: Partial<Look>): string =>
    broken([1000, look(['s1', 's2'], more)], [1010, begin('s1', 'dead')], [1011, begin('s2', 'dead')]);
  t.regex(both({}), /all copies of shards 0 were ended/);
  t.is(both({ beyond: true }), '');
});

test('as many copies at once as there are to be are told, though more are left', (t) => {
  const inSync = [['s1', 's2', 's3']];
  t.regex(
    broken([1000, look(['s1', 's2'], { inSync })], [1010, begin('s1', 'dead')], [1011, begin('s2', 'dead')]),
    /2 copies of a shard were ended at once/,
  );
});

test('another fault between the look and the end is told, unless it is of the same kind', (t) => {
  const stopped = (more: Partial<Look>): string =>
    broken([1000, look(['s2'], more)], [1005, begin('s3', 'stopped')], [1010, begin('s2', 'dead')]);
  t.regex(stopped({}), /s2 was ended at 1\.010 s while another fault was under way/);
  t.is(stopped({ stopped: ['s3'] }), '');
  t.regex(
    broken([1000, look(['s2'], { stopped: ['s3'] })], [1005, begin('s3', 'stopped')], [2000, begin('s2', 'dead')]),
    /another fault was under way/,
    'the backup may have been removed meanwhile',
  );
  const cut = (log: FaultLog): void => void log.begin({ from: 's1', to: 's3' });
  t.regex(broken([500, cut], [1000, look(['s2'])], [1010, begin('s2', 'dead')]), /another fault was under way/);
});

test('a server that is ended is looked at again right before', (t) => {
  const ended = (again: Look['again'], server = 's1'): string =>
    broken([1000, look([server], { again })], [1010, begin(server, 'dead')]);
  t.regex(ended(undefined), /s1 was ended at 1\.010 s, and nobody had looked again right before/);
  t.regex(ended({ ...AGAIN, atNs: 200 * NS }), /nobody had looked again/, 'long before');
  t.regex(ended({ ...AGAIN, atNs: 1011 * NS }), /nobody had looked again/, 'afterwards');
  const promoted = { ...AGAIN, epochs: [2, 1], owners: ['s2', 's2'] };
  t.is(ended(promoted), '', 'another one has it now');
  t.regex(ended(promoted, 's2'), /at 1\.010 s the copies of shards 0 were ended that were left/);
  t.regex(ended({ ...promoted, owners: [undefined, 's2'] }), /shards 0 were ended/, 'nobody is known to have it');
  t.is(ended({ ...AGAIN, epochs: [0, 0], owners: [undefined, undefined] }), '', 'what the maps do not say yet');
});

type Status = Parameters<typeof isWhole>[0];
function statusOf(states: readonly ('in-sync' | 'joining')[], term = 3): Status {
  const members = ['s1', 's2', 's3'].map((id, i) => ({
    id,
    state: 'up',
    node: { term: i === 2 ? term : 3, role: 'x' },
  }));
  const copies = states.map((state, i) => ({ member: `s${i + 1}`, state }));
  const inSync = states.filter((one) => one === 'in-sync').length;
  const shards = [{ shard: 0, owner: 's1', state: 'serving', copies: { config: 1, inSync, wanted: 2, copies } }];
  return { leader: 's1', answeredBy: 's1', term: 3, members, shards } as unknown as Status;
}

test('all copies are in sync only when a leader that all servers follow says so', (t) => {
  t.true(isWhole(statusOf(['in-sync', 'in-sync'])));
  t.false(isWhole(statusOf(['in-sync', 'joining'])), 'one joins');
  t.false(isWhole(statusOf(['in-sync'])), 'one is missing');
  t.false(isWhole(statusOf(['in-sync', 'in-sync'], 4)), 'a server has heard of a later term');
});

// ---------------------------------------------------------------- what the judge makes of it

const version = (epoch: number, n: number): bigint => (BigInt(epoch) << 44n) | BigInt(n);
const change = (call: number, value: string): Operation => ({
  kind: 'put',
  call: call * NS,
  end: (call + 1) * NS,
  by: 'tcp1.0 put text',
  value,
  outcome: 'stored',
});
const get = (call: number, value: string | undefined, given?: bigint): Operation => ({
  kind: 'get',
  call: call * NS,
  end: (call + 1) * NS,
  by: 'tcp1.0 get text',
  value,
  version: given,
});
const EPOCHS: readonly Epoch[] = [
  { shard: 0, epoch: 1, owner: 's1', toldNs: 0, sinceNs: 0 },
  { shard: 0, epoch: 2, owner: 's2', toldNs: 2500 * NS, sinceNs: 2500 * NS },
];
function evidence(operations: readonly Operation[], faults: FaultLog): Evidence {
  const record = emptyRecord();
  record.keys.set('0:g0-0', { shard: 0, operations: [...operations] });
  return {
    record,
    epochsOf: () => EPOCHS,
    kept: new Set(),
    led: [],
    faults,
    ownerLeaseMs: 1500,
    beganNs: 0,
    replicas: 2,
  };
}
const killed = (ended: readonly string[], more: Partial<Look> = {}): FaultLog => {
  let ends: (() => void)[] = [];
  return logOf(
    [1000, (log) => void (ends = [log.look({ ...SEEN, again: AGAIN, ended, ...more })])],
    [1010, (log) => void ends.push(...ended.map((server) => log.begin({ server, kind: 'dead' })))],
    [
      3000,
      () => {
        for (const end of ends) end();
      },
    ],
  );
};

/** An owner that answers before its backup has the change; or a copy that was promoted and lacks it. */
const ACKNOWLEDGED_AND_GONE = [
  change(100, 'tcp1-1'),
  get(200, 'tcp1-1', version(1, 1)),
  change(300, 'tcp1-2'),
  get(4000, 'tcp1-1', version(1, 1)),
];
/** Nobody was told of the write, but somebody has READ its value. */
const READ_AND_GONE = [
  change(100, 'tcp1-1'),
  { ...change(300, 'tcp1-2'), end: Infinity, outcome: 'open' } as Operation,
  get(400, 'tcp1-2'),
  get(4000, 'tcp1-1', version(1, 1)),
];
const EMPTIED = [
  change(100, 'tcp1-1'),
  get(4000, undefined),
  change(4100, 'tcp1-2'),
  get(4200, 'tcp1-2', version(2, 1)),
];

test('a value that was acknowledged, or READ, and is gone with its owner is a violation', async (t) => {
  for (const history of [ACKNOWLEDGED_AND_GONE, READ_AND_GONE, EMPTIED]) {
    const { violations, permittedLosses } = await judge(evidence(history, killed(['s1'])));
    t.is(permittedLosses, 0);
    t.is(violations.length, 1);
    t.regex(violations[0]!, /0:g0-0 of shard 0 is not linearizable/);
  }
  t.deepEqual(
    (await judge({ ...evidence(EMPTIED, killed(['s1'])), replicas: undefined })).violations,
    [],
    'a cache may lose it',
  );
});

test('values are lost with all copies, while that fault lasts, and older ones never come back', async (t) => {
  const all = killed(['s1', 's2'], { beyond: true });
  const lost = await judge(evidence(EMPTIED, all));
  t.deepEqual(lost.violations, []);
  t.is(lost.permittedLosses, 1);
  t.is((await judge(evidence(ACKNOWLEDGED_AND_GONE, all))).violations.length, 1, 'an older value');
  const other = killed(['s2', 's3'], { beyond: true });
  t.is((await judge(evidence(EMPTIED, other))).violations.length, 1, 'a copy of the shard was left');
  const early = logOf([10, look(['s1', 's2'], { fromNs: 0, beyond: true })]);
  const ended = new FaultLog(['s1', 's2', 's3'], () => 20 * NS);
  for (const one of early.looks) ended.look(one)();
  t.is((await judge(evidence(EMPTIED, ended))).violations.length, 1, 'it was over long before');
});

test('a run whose faults went beyond the promise proves nothing, and fails', async (t) => {
  const { violations } = await judge(evidence([change(100, 'tcp1-1')], killed(['s1', 's2'])));
  t.regex(violations.join('\n'), /the run proves nothing: at 1\.010 s all copies of shards 0 were ended/);
});

test('how long changes waited for another owner, and for the end of a backup', (t) => {
  const operations = [
    change(800, 'a'),
    { ...change(1005, 'b'), end: 1200 * NS },
    { ...change(1100, 'c'), end: 2600 * NS },
  ];
  const { record, faults } = evidence(operations, killed(['s1']));
  t.deepEqual(outagesOf(record, faults), { unanswered: [1590], paused: [], before: [] });
  t.deepEqual(outagesOf(record, killed(['s2'])), { unanswered: [], paused: [1500], before: [1] });
});
