/** Known faults in recorded histories are found, and told with the key, the write, the time and what was under way. */
import test from 'ava';
import { ledIn, type Epoch } from './epochs.js';
import { FaultLog } from './fault-log.js';
import { judge, type Evidence } from './judge.js';
import type { Get, Operation, Put } from './operation.js';
import { emptyRecord } from './recorded.js';

const NS = 1e6;
const put = (call: number, value: string): Put => ({
  kind: 'put',
  call: call * NS,
  end: (call + 1) * NS,
  by: 'shm0.1 put text',
  value,
  outcome: 'stored',
});
const get = (call: number, value: string | undefined, version?: bigint): Get => ({
  kind: 'get',
  call: call * NS,
  end: (call + 1) * NS,
  by: 'tcp1.0 get text',
  value,
  version,
});
const version = (epoch: number, n: number): bigint => (BigInt(epoch) << 44n) | BigInt(n);
const epoch = (number: number, owner: string, told: number): Epoch => ({
  shard: 4,
  epoch: number,
  owner,
  toldNs: told * NS,
  sinceNs: told * NS,
});

function evidence(operations: readonly Operation[], epochs: readonly Epoch[], more: Partial<Evidence> = {}): Evidence {
  const record = emptyRecord();
  record.keys.set('0:g0-0', { shard: 4, operations: [...operations] });
  return {
    record,
    epochsOf: () => epochs,
    kept: new Set(),
    led: [],
    faults: new FaultLog(['s1', 's2', 's3']),
    ownerLeaseMs: 1500,
    beganNs: 0,
    ...more,
  };
}

const KEPT = 'info shard 4 comes to this server in epoch 2, with the copy that is here\n';

/** Two values, then the key is absent under the next epoch. */
const DROPPED = [
  put(0, 'shm0-1'),
  get(10, 'shm0-1', version(1, 1)),
  put(20, 'shm0-2'),
  get(6000, undefined),
  put(6010, 'shm0-3'),
  get(6020, 'shm0-3', version(2, 1)),
];
const GIVEN_AWAY = [epoch(1, 's2', 0), epoch(2, 's3', 5500)];

/** s2 was away from 3,000 to 5,400 ms. */
function away(kind: 'dead' | 'stopped', ...servers: readonly string[]): FaultLog {
  let time = 3000;
  const log = new FaultLog(['s1', 's2', 's3'], () => time * NS);
  const note = log.note(`${kind} ${servers.join(' and ')}`);
  const ends = servers.map((server) => log.begin({ server, kind }));
  time = 5400;
  for (const end of [...ends, note]) end();
  return log;
}

test('shards of a living owner that are given away are one violation, which names a key and the write that is lost', async (t) => {
  const { violations, permittedLosses } = await judge(evidence(DROPPED, GIVEN_AWAY));
  t.is(permittedLosses, 0);
  t.is(violations.length, 1);
  t.regex(
    violations[0]!,
    /^at 5\.500 s: shard 4 went from s2 \(epoch 1\) to s3 \(epoch 2\) without its values, though s2 was neither ended nor out of hearing/,
  );
  t.regex(violations[0]!, /values are lost, 1 times:\n {4}0:g0-0: /);
  t.regex(violations[0]!, /get -> absent/);
  t.regex(violations[0]!, /faults under way or shortly before: none/);
});

test('a shard that is given away empty is a violation, also when no key shows it', async (t) => {
  const { violations } = await judge(evidence([put(0, 'shm0-1')], GIVEN_AWAY));
  t.is(violations.length, 1);
  t.regex(violations[0]!, /no key shows it/);
});

test('the same loss is permitted when the owner was ended, or stopped for its lease', async (t) => {
  for (const kind of ['dead', 'stopped'] as const)
    t.like(await judge(evidence(DROPPED, GIVEN_AWAY, { faults: away(kind, 's2') })), {
      violations: [],
      permittedLosses: 1,
    });
});

test('the same loss is a violation after a majority was stopped, which is told as the fault that was under way', async (t) => {
  const { violations } = await judge(evidence(DROPPED, GIVEN_AWAY, { faults: away('stopped', 's1', 's2') }));
  t.is(violations.length, 1);
  t.regex(violations[0]!, /shortly before: stopped s1 and s2 \[3\.00 s, 5\.40 s\]/);
});

test('an owner that drops a value within an epoch is found', async (t) => {
  const { violations } = await judge(
    evidence([put(0, 'shm0-1'), get(10, 'shm0-1', version(1, 1)), get(20, undefined)], [epoch(1, 's2', 0)], {
      faults: away('dead', 's2'),
    }),
  );
  t.is(violations.length, 1);
  t.regex(
    violations[0]!,
    /^at 0\.020 s: 0:g0-0 of shard 4 is not linearizable: .*then the key is shm0-1, and these fit in no order/,
  );
});

test('a shard that moved has its values: nothing is lost with it, whatever happened to its owner', async (t) => {
  const { violations } = await judge(
    evidence(DROPPED, GIVEN_AWAY, { kept: new Set(ledIn('s3', KEPT)), faults: away('dead', 's2') }),
  );
  t.is(violations.length, 1);
  t.regex(violations[0]!, /0:g0-0 of shard 4 is not linearizable/);
});

test('a shard that another server had a copy of, and did not get, may lose its values with its owner', async (t) => {
  const { violations } = await judge(
    evidence(DROPPED, GIVEN_AWAY, { kept: new Set(ledIn('s1', KEPT)), faults: away('dead', 's2') }),
  );
  t.deepEqual(violations, []);
});

test('what a client saw to be wrong is told with the call, the time and the faults', async (t) => {
  const found = evidence([], []);
  found.record.wrong.push({
    by: 'shm0.1 getManyInto text',
    what: 'getManyInto text gave 4 bytes for 0:g0-0: ...',
    key: '0:g0-0',
    call: 4000 * NS,
    end: 4001 * NS,
  });
  const { violations } = await judge({ ...found, faults: away('stopped', 's1') });
  t.deepEqual(violations, [
    'at 4.000 s: shm0.1 getManyInto text: getManyInto text gave 4 bytes for 0:g0-0: ...\n  faults under way or shortly before: stopped s1 [3.00 s, 5.40 s]',
  ]);
});

test('of many wrong values of one kind the first are told, and how many more there were', async (t) => {
  const found = evidence([], []);
  for (let i = 0; i < 50; i++)
    found.record.wrong.push({
      by: 'shm0.1 getMany text',
      what: `getMany text gave 4 bytes for 0:g0-${i}: ...`,
      key: `0:g0-${i}`,
      call: (9000 - i) * NS,
      end: 9000 * NS,
    });
  found.record.wrong.push({
    by: 'shm0.1 get text',
    what: 'get text gave 4 bytes for 0:g0-0: ...',
    key: '0:g0-0',
    call: 9500 * NS,
    end: 9501 * NS,
  });
  const { violations } = await judge(found);
  t.is(violations.length, 4);
  t.regex(violations[0]!, /0:g0-49/);
  t.regex(violations[2]!, /0:g0-47: \.\.\.\n {2}and 47 more like that/);
  t.regex(violations[3]!, /get text gave/);
});

test('a scan that misses a key that was there is a violation', async (t) => {
  const found = evidence([put(0, 'shm0-1')], [epoch(1, 's2', 0)]);
  found.record.scans.push({ by: 'tcp1.0 scan keys', space: 0, call: 10 * NS, end: 20 * NS, keys: new Set() });
  const { violations } = await judge(found);
  t.is(violations.length, 1);
  t.regex(
    violations[0]!,
    /a scan of namespace 0 gave 0 keys, and not 1 that were there throughout: 0:g0-0 with shm0-1/,
  );
});

test('a value that expires and is lost with a living owner is a violation', async (t) => {
  const found = evidence([], GIVEN_AWAY);
  found.record.keys.clear();
  found.record.keys.set('0:t0-0', {
    shard: 4,
    operations: [{ ...put(0, 'shm0-1'), ttlMs: 20_000 }, get(6000, undefined)],
  });
  const { violations } = await judge(found);
  t.is(violations.length, 1);
  t.regex(violations[0]!, /shard 4 went from s2.*\n {4}0:t0-0: absent 13999 ms before shm0-1 expires, .*get -> absent/);
});
