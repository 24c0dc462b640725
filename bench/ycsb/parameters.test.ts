import test from 'ava';
import { readFileSync } from 'node:fs';
import { parseParameters } from './parameters.js';
import { parseProperties } from './properties.js';

const parse = (properties: Readonly<Record<string, string>>) =>
  parseParameters(new Map(Object.entries(properties)), ['redis.']);

test("YCSB's defaults", (t) => {
  const p = parse({});
  t.is(p.fieldCount, 10);
  t.is(p.fieldLength, 100);
  t.deepEqual(p.proportions, { READ: 0.95, UPDATE: 0.05, INSERT: 0, SCAN: 0, READMODIFYWRITE: 0 });
  t.is(p.requestDistribution, 'uniform');
  t.false(p.orderedInserts);
  t.true(p.readAllFields);
  t.false(p.writeAllFields);
  t.deepEqual(p.percentiles, [50, 95, 99]);
  t.is(p.measurementInterval, 'op');
});

test('there may be more records than a run counts', (t) => {
  const { recordCount, insertStart, insertCount } = parse({ recordcount: '3000000000', insertstart: '2999999000' });
  t.deepEqual([recordCount, insertStart, insertCount], [3e9, 2_999_999_000, 1000]);
  t.is(parse({ recordcount: '50000000000' }).insertCount, 5e10);
  t.throws(() => parse({ recordcount: '100000000000' }), { message: /from 0 to 68719476736/ });
  t.throws(() => parse({ recordcount: '3000000000', requestdistribution: 'sequential' }), {
    message: /sequential goes over at most 2147483647 records/,
  });
});

test('insertcount is what recordcount leaves from insertstart on', (t) => {
  t.is(parse({ recordcount: '1000', insertstart: '400' }).insertCount, 600);
  t.throws(() => parse({ recordcount: '1000', insertstart: '400', insertcount: '700' }), {
    message: /recordcount=1000 must be at least/,
  });
});

test('the shipped workloads have the standard proportions', (t) => {
  const workload = (letter: string) =>
    parseParameters(
      parseProperties(
        readFileSync(new URL(`../../../bench/ycsb/workloads/workload${letter}`, import.meta.url), 'utf8'),
      ),
    );
  const expected: Record<string, readonly [Partial<Record<string, number>>, string]> = {
    a: [{ READ: 0.5, UPDATE: 0.5 }, 'zipfian'],
    b: [{ READ: 0.95, UPDATE: 0.05 }, 'zipfian'],
    c: [{ READ: 1 }, 'zipfian'],
    d: [{ READ: 0.95, INSERT: 0.05 }, 'latest'],
    e: [{ SCAN: 0.95, INSERT: 0.05 }, 'zipfian'],
    f: [{ READ: 0.5, READMODIFYWRITE: 0.5 }, 'zipfian'],
  };
  for (const [letter, [proportions, distribution]] of Object.entries(expected)) {
    const p = workload(letter);
    t.is(p.recordCount, 1000);
    t.is(p.operationCount, 1000);
    t.deepEqual(p.proportions, { READ: 0, UPDATE: 0, INSERT: 0, SCAN: 0, READMODIFYWRITE: 0, ...proportions });
    t.is(p.requestDistribution, distribution as typeof p.requestDistribution);
  }
});

test('a wrong value is refused with what was expected', (t) => {
  t.throws(() => parse({ recordcount: 'many' }), {
    code: 'ERR_CONFIG',
    message: /property recordcount=many: a number/,
  });
  t.throws(() => parse({ recordcount: '-1' }), { code: 'ERR_CONFIG' });
  t.throws(() => parse({ recordcount: '1.5' }), { message: /an integer/ });
  t.throws(() => parse({ recordcount: '' }), { code: 'ERR_CONFIG' });
  t.throws(() => parse({ dataintegrity: 'yes' }), { message: /true or false/ });
  t.throws(() => parse({ requestdistribution: 'zipf' }), { message: /one of uniform, zipfian/ });
  t.throws(() => parse({ 'hdrhistogram.percentiles': '50,x' }), { code: 'ERR_CONFIG' });
  t.throws(() => parse({ dataintegrity: 'true', fieldlengthdistribution: 'uniform' }), { message: /constant/ });
  t.throws(() => parse({ readproportion: '0', updateproportion: '0' }), { message: /nothing to do/ });
});

test('an unknown property names the nearest known one; those of databases and of YCSB are left alone', (t) => {
  t.throws(() => parse({ recordcnt: '5' }), {
    code: 'ERR_CONFIG',
    message: 'unknown property recordcnt; did you mean recordcount?',
  });
  t.notThrows(() => parse({ 'redis.host': 'x', workload: 'site.ycsb.workloads.CoreWorkload', table: 'usertable' }));
});

test('properties of databases that are not here are named once, and ignored', (t) => {
  const told: (readonly string[])[] = [];
  const all = { 'mongodb.url': 'x', hosts: 'a,b', 'jdbc.driver': 'y', recordcount: '5', 'redis.host': 'z' };
  const p = parseParameters(new Map(Object.entries(all)), ['redis.'], (names) => told.push(names));
  t.is(p.recordCount, 5);
  t.deepEqual(told, [['mongodb.url', 'hosts', 'jdbc.driver']]);
  t.throws(() => parse({ 'measurement.intervall': 'op' }), { message: /did you mean measurement.interval\?/ });
});

test('more operations may be asked for than 32 bits count', (t) => {
  t.is(parse({ operationcount: '3000000000' }).operationCount, 3_000_000_000);
  t.throws(() => parse({ operationcount: '1e16' }), { code: 'ERR_CONFIG' });
});
