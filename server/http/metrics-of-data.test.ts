import test from 'ava';
import type { Sample } from '../../core/exposition.js';
import type { Seen } from './metric-row.js';
import { OF_DATA } from './metrics-of-data.js';

const read = (name: string, seen: object): readonly Sample[] =>
  OF_DATA.find((row) => row.name === name)?.read(seen as Seen) ?? [];

test('changes that were refused are counted by tenant where there are tenants, from 0 on', (t) => {
  const own = { ERR_TOO_FEW_COPIES: 0, ERR_NO_MEMORY: 0 };
  const full = { refusedOf: { put: { ERR_TABLE_FULL: 2 }, cas: { ERR_TABLE_FULL: 3, ERR_EXPIRED: 1 } } };
  const others = { refusedOf: { get: { ERR_TABLE_FULL: 9 } } };
  const of = (...counts: readonly { readonly labels: object; readonly counts: object }[]): unknown =>
    read('farkv_put_rejected_total', { workers: [], countsOf: counts });
  const samples = (labels: object, counts: Readonly<Record<string, number>>): unknown[] =>
    Object.entries(counts).map(([reason, value]) => ({ labels: { ...labels, reason }, value }));
  t.deepEqual(of({ labels: {}, counts: full }), samples({}, { ERR_TABLE_FULL: 5, ...own, ERR_EXPIRED: 1 }));
  t.deepEqual(of({ labels: { tenant: '' }, counts: others }, { labels: { tenant: 'blue' }, counts: full }), [
    ...samples({ tenant: '' }, { ERR_TABLE_FULL: 0, ...own }),
    ...samples({ tenant: 'blue' }, { ERR_TABLE_FULL: 5, ...own, ERR_EXPIRED: 1 }),
  ]);
});
