/** A copy that was promoted for the first half of a fault, and killed by the second: that and nothing else is excused. */
import test from 'ava';
import { ledIn, type Epoch } from './epochs.js';
import { FaultLog } from './fault-log.js';
import { judge, type Evidence } from './judge.js';
import type { Operation } from './operation.js';
import { overtakenIn, type Led } from './overtaken.js';
import type { Look } from './promise.js';
import { emptyRecord } from './recorded.js';

const NS = 1e6;

/** Of which shard 0 was s2's, and shard 1 that of s1, which is killed. */
const SEEN: Omit<Look, 'toNs'> = {
  fromNs: 990 * NS,
  inSync: [
    ['s2', 's1'],
    ['s1', 's2'],
  ],
  owners: ['s2', 's1'],
  epochs: [1, 1],
  again: { atNs: 1100 * NS, epochs: [1, 1], owners: ['s2', 's1'] },
  ended: ['s1'],
  stopped: ['s2'],
  beyond: false,
};
interface Happened {
  readonly look?: Partial<Look>;
  /** The first half: from 1000 ms on. */
  readonly parted?: 'cut' | 'stopped' | 'cut from s3' | 'nothing';
  readonly joinedMs?: number;
  readonly killed?: string;
  readonly overMs?: number;
}

function logOf({ look = {}, parted = 'cut', joinedMs = 2900, killed = 's1', overMs = 3000 }: Happened = {}): FaultLog {
  let atMs = 1000;
  const log = new FaultLog(['s1', 's2', 's3'], () => atMs * NS);
  const link = (a: string, b: string): (() => void)[] => [log.begin({ from: a, to: b }), log.begin({ from: b, to: a })];
  const joins =
    parted === 'cut'
      ? link('s1', 's2')
      : parted === 'cut from s3'
        ? link('s3', 's2')
        : parted === 'stopped'
          ? [log.begin({ server: 's2', kind: 'stopped' })]
          : [];
  const ends: [number, () => void][] = joins.map((join) => [joinedMs, join]);
  atMs = 1105;
  ends.push([overMs, log.look({ ...SEEN, ...look })]);
  atMs = 1110;
  ends.push([2900, log.begin({ server: killed, kind: 'dead' })]);
  for (const [at, end] of ends) {
    atMs = at;
    end();
  }
  return log;
}

/** What s1 had said when it was found to have ended. */
const said = (server: string, shard: number, epoch: number, endedMs = 1200): Led[] => {
  const line = `warn shard ${shard} comes to this server in epoch ${epoch}, with the copy that is here\n`;
  return ledIn(server, line).map((name) => ({ name, endedNs: endedMs * NS }));
};
const LED = said('s1', 0, 2);
const shardsOf = (happened?: Happened, led: readonly Led[] = LED): number[] =>
  overtakenIn(logOf(happened), led).map(({ shard }) => shard);

test('a shard is overtaken whose copy was promoted for a cut or a stop, and was killed with it', (t) => {
  t.deepEqual(shardsOf(), [0]);
  t.deepEqual(shardsOf({ parted: 'stopped' }), [0]);
  const [one] = overtakenIn(logOf(), LED);
  t.like(one, { shard: 0, epoch: 2, by: 's1', atNs: 1110 * NS });
});

test('a promotion that the killed process had not applied overtakes nobody', (t) => {
  t.deepEqual(shardsOf({}, []), []);
  t.deepEqual(shardsOf({}, said('s1', 0, 3)), [], 'in another epoch');
  t.deepEqual(shardsOf({}, said('s1', 1, 2)), [], 'of another shard');
  t.deepEqual(shardsOf({}, said('s3', 0, 2)), [], 'by another server');
  t.deepEqual(shardsOf({}, said('s1', 0, 2, 6000)), [], 'by the next process of the same server');
  t.deepEqual(shardsOf({}, said('s1', 0, 2, 800)), [], 'by the one before');
});

test('what was seen right before the kill overtakes nobody, and neither does what is beyond the promise', (t) => {
  const again = { atNs: 1100 * NS, epochs: [2, 1], owners: ['s1', 's1'] };
  t.deepEqual(shardsOf({ look: { again } }), []);
  t.deepEqual(shardsOf({ look: { again: undefined } }), []);
  t.deepEqual(shardsOf({ look: { beyond: true } }), []);
});

test('a shard is not overtaken while another copy of it is left', (t) => {
  const inSync = [['s2', 's1', 's3'], SEEN.inSync[1]!];
  t.deepEqual(shardsOf({ look: { inSync } }), []);
  t.deepEqual(shardsOf({ look: { inSync, ended: ['s1', 's3'] } }), [0]);
  t.deepEqual(shardsOf({ killed: 's3' }), [], 'nor while the new owner lives');
  t.deepEqual(shardsOf({ look: { ended: ['s3'] } }), []);
});

test('a promotion without a cut or a stop of its owner by the same fault overtakes nobody', (t) => {
  t.deepEqual(shardsOf({ look: { stopped: [] } }), []);
  t.deepEqual(shardsOf({ look: { stopped: ['s3'] } }), []);
  t.deepEqual(shardsOf({ parted: 'nothing' }), []);
  t.deepEqual(shardsOf({ parted: 'cut from s3' }), []);
  t.deepEqual(shardsOf({ joinedMs: 1109 }), [], 'they heard each other again before the kill');
  t.deepEqual(shardsOf({ look: { fromNs: 1001 * NS } }), [], 'it was cut before anybody looked');
});

// ---------------------------------------------------------------- what the judge makes of it

const EPOCHS: readonly Epoch[] = (
  [
    ['s2', 0],
    ['s1', 1108],
    [undefined, 2910],
    ['s3', 2950],
  ] as const
).map(([owner, told], i) => ({ shard: 0, epoch: i + 1, owner, toldNs: told * NS, sinceNs: told * NS }));
const version = (epoch: number): bigint => (BigInt(epoch) << 44n) | 1n;
const put = (call: number, value: string): Operation => ({
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
async function wrong(operations: readonly Operation[], more: Partial<Evidence> = {}): Promise<number> {
  const record = emptyRecord();
  record.keys.set('0:g0-0', { shard: 0, operations: [...operations] });
  const { violations } = await judge({
    record,
    epochsOf: () => EPOCHS,
    kept: new Set(),
    led: LED,
    faults: logOf(),
    ownerLeaseMs: 1500,
    beganNs: 0,
    replicas: 2,
    ...more,
  });
  return violations.length;
}
const EMPTIED = [put(100, 'tcp1-1'), get(4000, undefined), put(4100, 'tcp1-2'), get(4200, 'tcp1-2', version(4))];

test('what an overtaken shard held may be gone, and old values never come back', async (t) => {
  t.is(await wrong(EMPTIED), 0);
  t.is(await wrong(EMPTIED, { led: [] }), 1, 'the last copy in sync was not killed');
  const old = [put(100, 'tcp1-1'), get(200, 'tcp1-1', version(1)), put(300, 'tcp1-2'), get(4000, 'tcp1-1', version(1))];
  t.is(await wrong(old), 1);
  t.is(await wrong(EMPTIED, { faults: logOf({ overMs: 2905 }) }), 1, 'the fault was over by then');
});

test('the loss of one overtaken shard excuses no other', async (t) => {
  const record = emptyRecord();
  record.keys.set('0:g1-0', { shard: 1, operations: [...EMPTIED] });
  t.is(await wrong([put(100, 'tcp1-1')], { record }), 1);
});

test('a copy that is promoted has all, and an overtaken shard loses nothing before the kill', async (t) => {
  const early = [put(100, 'tcp1-1'), get(1106, undefined), put(4100, 'tcp1-2'), get(4200, 'tcp1-2', version(4))];
  t.is(await wrong(early), 1);
  const promoted = [put(100, 'tcp1-1'), get(4000, undefined), put(4100, 'tcp1-2'), get(4200, 'tcp1-2', version(2))];
  const [first, second] = EPOCHS as [Epoch, Epoch];
  t.is(await wrong(promoted, { epochsOf: () => [first, second] }), 1);
  t.is(await wrong(promoted, { epochsOf: () => [first, { ...second, toldNs: 1200 * NS }] }), 1, 'told late');
});
