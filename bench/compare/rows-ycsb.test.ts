import test from 'ava';
import { existsSync } from 'node:fs';
import { inRepository } from '../repository.js';
import { WORKLOADS } from './rows-ycsb.js';
import { checked } from './ycsb-run.js';

const series = (returns: Record<string, number>) => [
  { name: 'READ', operations: 3, averageNs: 1, minNs: 1, maxNs: 1, percentilesNs: {}, returns },
];

test('a run counts when all of its operations did what they were for', (t) => {
  t.notThrows(() => checked({ operations: 3, series: series({ OK: 3 }) }));
  t.throws(() => checked({ operations: 3, series: series({ OK: 1, NOT_FOUND: 2 }) }), {
    message: '2 READ operations ended with NOT_FOUND',
  });
  t.throws(() => checked({ operations: 3, series: series({ ERROR: 3 }) }), {
    message: '3 READ operations ended with ERROR',
  });
  t.throws(() => checked({ operations: 0, series: [] }), { message: 'no operation was done' });
});

test('each workload has its property file', (t) => {
  for (const w of Object.keys(WORKLOADS)) t.true(existsSync(inRepository(`bench/ycsb/workloads/workload${w}`)));
});
