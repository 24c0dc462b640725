/** A server whose options do not fit the cluster that there is. */
import test from 'ava';
import { STATE } from '../../test/support/control-rig.js';
import { checkFirstStart, checkSize } from './cluster-size.js';

const MIN = 1 << 20;
const { length: count } = STATE.shards;

test('too little memory for a part of the shards is an error that says how much it takes', (t) => {
  const enough = { shards: count, tenants: [], memoryBytes: count * MIN };
  const said: string[] = [];
  const log = { info: (text: string) => void said.push(text) };
  t.notThrows(() => checkSize(enough, STATE, MIN, log));
  t.deepEqual(said, []);
  t.throws(() => checkSize({ ...enough, memoryBytes: MIN - 1 }, STATE, MIN, log), {
    code: 'ERR_CONFIG',
    message: /^--memory: .* is too little for this server's part of \d+ shards; at least \d+/,
  });
});

test('another number of shards than was asked for is said, and no error', (t) => {
  const said: string[] = [];
  const log = { info: (text: string) => void said.push(text) };
  checkSize({ shards: count + 1, tenants: [], memoryBytes: count * MIN }, STATE, MIN, log);
  t.deepEqual(said, [`the cluster has ${count} shards, as it was made`]);
});

test('a first start makes no cluster that its other options do not fit', (t) => {
  const peers = ['s1', 's2'].map((id) => ({ id, addresses: [] }));
  const fits = { shards: 4, tenants: [], memoryBytes: 2 * MIN, peers, level: 'cache', syncMs: 0 } as const;
  t.notThrows(() => checkFirstStart(fits, MIN));
  t.throws(() => checkFirstStart({ ...fits, memoryBytes: 2 * MIN - 1 }, MIN), {
    code: 'ERR_CONFIG',
    message: /^--memory: .* is too little for this server's part of 4 shards; at least 2\.0 MiB/,
  });
  t.notThrows(() => checkFirstStart({ ...fits, level: 'durable', syncMs: 50 }, MIN));
  t.throws(() => checkFirstStart({ ...fits, syncMs: 50 }, MIN), {
    code: 'ERR_CONFIG',
    message: /^--sync: .* cluster of level cache: give --level durable, too, or leave it out$/,
  });
});
