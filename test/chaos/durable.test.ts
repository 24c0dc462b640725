/** Of durable values nothing may be lost, whatever was killed; and which kills had nobody but the disks left. */
import test from 'ava';
import { allEnded, underLoad } from './all-ended.js';
import type { Epoch } from './epochs.js';
import { FaultLog } from './fault-log.js';
import { judge, type Evidence } from './judge.js';
import type { Operation } from './operation.js';
import { outagesOf } from './outages.js';
import { emptyRecord, type Recorded } from './recorded.js';

const NS = 1e6;
const SERVERS = ['s1', 's2', 's3'];
const EPOCHS: readonly Epoch[] = [
  { shard: 0, epoch: 1, owner: 's1', toldNs: 0, sinceNs: 0 },
  { shard: 0, epoch: 2, owner: 's2', toldNs: 2500 * NS, sinceNs: 2500 * NS },
];
const put = (call: number, value: string): Operation => ({
  kind: 'put',
  call: call * NS,
  end: (call + 10) * NS,
  by: 'tcp1.0 put text',
  value,
  outcome: 'stored',
});
const get = (call: number, value: string | undefined): Operation => ({
  kind: 'get',
  call: call * NS,
  end: (call + 1) * NS,
  by: 'tcp1.0 get text',
  value,
});
const open = (o: Operation): Operation => ({ ...o, end: Infinity, outcome: 'open' }) as Operation;

/** Each server is dead from the one moment to the other. */
function killed(...spans: readonly (readonly [server: string, fromMs: number, toMs: number])[]): FaultLog {
  let atMs = 0;
  const log = new FaultLog(SERVERS, () => atMs * NS);
  for (const [server, fromMs, toMs] of spans) {
    atMs = fromMs;
    const back = log.begin({ server, kind: 'dead' });
    atMs = toMs;
    back();
  }
  return log;
}
const ALL = killed(['s1', 1000, 2000], ['s2', 1001, 2000], ['s3', 1002, 2000]);

function recordOf(operations: readonly Operation[]): Recorded {
  const record = emptyRecord();
  record.keys.set('0:g0-0', { shard: 0, operations: [...operations] });
  return record;
}
const evidence = (operations: readonly Operation[], faults: FaultLog): Evidence => ({
  record: recordOf(operations),
  epochsOf: () => EPOCHS,
  kept: new Set(),
  led: [],
  faults,
  ownerLeaseMs: 1500,
  beganNs: 0,
  replicas: 2,
  durable: true,
});

/** What every log has that answers before its sync: the last change before the kill is gone. */
const TAIL_LOST = [put(100, 'a'), put(900, 'b'), get(3000, 'a')];
/** Its writer was not told, and somebody has READ it. */
const READ_LOST = [put(100, 'a'), open(put(900, 'b')), get(950, 'b'), get(3000, 'a')];
const EMPTIED = [put(900, 'a'), get(3000, undefined)];

test('a durable value that was acknowledged or READ and is gone is a violation, though all servers were killed', async (t) => {
  for (const history of [TAIL_LOST, READ_LOST, EMPTIED]) {
    const { violations, permittedLosses } = await judge(evidence(history, ALL));
    t.is(permittedLosses, 0);
    t.is(violations.length, 1);
    t.regex(violations[0]!, /0:g0-0 of shard 0 is not linearizable/);
  }
  t.deepEqual((await judge(evidence([put(100, 'a'), open(put(900, 'b')), get(3000, 'a')], ALL))).violations, []);
});

test('no look excuses the loss of a durable value, and none is needed', async (t) => {
  const beyond = killed(['s1', 1000, 2000], ['s2', 1000, 2000]);
  beyond.look({
    fromNs: 990 * NS,
    inSync: [['s1', 's2']],
    owners: ['s1'],
    epochs: [1],
    ended: ['s1', 's2'],
    stopped: [],
    beyond: true,
  });
  t.is((await judge(evidence(EMPTIED, beyond))).violations.length, 1);
  t.is((await judge({ ...evidence(EMPTIED, beyond), durable: false })).violations.length, 0, 'of replicated values');
  t.deepEqual((await judge(evidence([put(900, 'a'), get(3000, 'a')], ALL))).violations, []);
});

test('the moments from which on nobody ran, and those of them with a change acknowledged right before', (t) => {
  t.deepEqual(allEnded(ALL), [1002 * NS]);
  t.deepEqual(allEnded(killed(['s1', 1000, 2000], ['s2', 1000, 2000])), [], 'one was there');
  t.deepEqual(allEnded(killed(['s1', 1000, 1500], ['s2', 1400, 2000], ['s3', 1450, 1600], ['s1', 1550, 1700])), [
    1450 * NS,
    1550 * NS,
  ]);
  const loaded = (operations: readonly Operation[]): number => underLoad(allEnded(ALL), recordOf(operations)).length;
  t.is(loaded([put(900, 'a')]), 1);
  t.is(loaded([put(100, 'a'), open(put(900, 'b')), get(950, 'a')]), 0, 'nothing was acknowledged');
  t.is(loaded([put(1100, 'a')]), 0, 'afterwards');
});

test('how long changes waited after all servers were killed', (t) => {
  const { unanswered } = outagesOf(recordOf([put(900, 'a'), put(2500, 'b')]), ALL);
  t.deepEqual(unanswered, [1508]);
});
