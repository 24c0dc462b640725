import test from 'ava';
import { whatWasLost } from './demo-check.js';

const OWNERS = [
  { shard: 0, owner: 's1', epoch: 1 },
  { shard: 1, owner: 's2', epoch: 1 },
];
const run = (returns: Readonly<Record<string, number>>): Parameters<typeof whatWasLost>[2][number] => ({
  series: [
    { name: 'READ', operations: 1, averageNs: 1, minNs: 1, maxNs: 1, percentilesNs: {}, returns },
    { name: 'UPDATE', operations: 1, averageNs: 1, minNs: 1, maxNs: 1, percentilesNs: {}, returns: { OK: 5 } },
  ],
});

test('a demonstration that found every record and kept every owner has lost nothing', (t) => {
  t.is(whatWasLost(OWNERS, OWNERS, [run({ OK: 100 }), run({ OK: 1 })]), undefined);
});

test('records that were not found are counted, and the shards named that changed their owner', (t) => {
  const after = [OWNERS[0]!, { shard: 1, owner: 's1', epoch: 2 }];
  const text = whatWasLost(OWNERS, after, [run({ OK: 1, NOT_FOUND: 184_416 }), run({ NOT_FOUND: 4 })]);
  t.regex(text ?? '', /^184420 READ operations did not find a record that had been loaded: of 2 shards/);
  t.regex(text ?? '', /1 \(s2 -> s1\)\. .*--owner-lease-ms.*run the demo again/);
});

test('a shard that went and came back has lost its values too', (t) => {
  const after = [{ shard: 0, owner: 's1', epoch: 3 }, OWNERS[1]!];
  t.regex(whatWasLost(OWNERS, after, [run({ OK: 1 })]) ?? '', /^no operation missed a record, .* 0 \(s1 -> s1\)/);
});

test('records that were not found at unchanged owners are a defect', (t) => {
  t.regex(whatWasLost(OWNERS, OWNERS, [run({ NOT_FOUND: 1 })]) ?? '', /defect of farkv/);
});
