/** What a client's file says where the client was killed while it was written. */
import test from 'ava';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addFile, emptyRecord } from './recorded.js';

test('a change that had its key on record is open, and one of a batch that was never sent is none', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-record-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const ask = (id: number, key: string): object => ({
    t: 'ask',
    id,
    lane: 1,
    via: 'putMany',
    key,
    call: 5,
    kind: 'put',
  });
  const lines = [ask(1, '0:a'), { t: 'key', key: '0:a', shard: 2 }, ask(2, '0:b')];
  const file = join(directory, 'tcp0.jsonl');
  writeFileSync(file, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n{"t":"ke`);
  const record = emptyRecord();
  addFile(record, file, 'tcp0');
  t.deepEqual([...record.keys.keys()], ['0:a']);
  t.like(record.keys.get('0:a')?.operations[0], { kind: 'put', call: 5, end: Infinity, outcome: 'open' });
});

test('changes that had a second and were not told of are counted beside those that gave up sooner', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-record-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const change = (id: number, ms: number): object[] => [
    { t: 'ask', id, lane: 1, via: 'put', key: '0:a', call: 5, kind: 'put', value: `${id}` },
    { t: 'told', id, end: 5 + ms * 1e6, outcome: 'open', code: 'ERR_INDETERMINATE' },
  ];
  const lines = [{ t: 'key', key: '0:a', shard: 2 }, ...change(1, 30), ...change(2, 1000), ...change(3, 200)];
  const file = join(directory, 'tcp0.jsonl');
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const record = emptyRecord();
  addFile(record, file, 'tcp0');
  t.deepEqual(
    [...record.counts],
    [
      ['put open ERR_INDETERMINATE', 2],
      ['put open ERR_INDETERMINATE after a second', 1],
    ],
  );
});
