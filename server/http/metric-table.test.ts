/** The table of metrics: its names, and what else names them. */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { inRepository } from '../../bench/repository.js';
import { METRICS } from './metric-table.js';

const NAMES = METRICS.map(({ name }) => name as string);
const read = (path: string): string => readFileSync(inRepository(path), 'utf8');
const namesIn = (text: string): string[] => [...new Set(text.match(/\bfarkv_[a-z_]+/g) ?? [])].sort();

test('counters end with _total, and nothing else does; no name is there twice', (t) => {
  t.true(NAMES.length >= 40);
  t.is(new Set(NAMES).size, NAMES.length);
  for (const { name, type, help } of METRICS) {
    t.regex(name, /^farkv_[a-z]+(_[a-z]+)*$/);
    t.is(name.endsWith('_total'), type === 'counter', name);
    t.false(/_(ms|ns|us|kb|mb)$/.test(name), name);
    t.true(help.length > 0);
  }
});

test('the dashboard asks for metrics that there are', (t) => {
  const dashboard = JSON.parse(read('docs/dashboards/farkv.json')) as {
    readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
  };
  t.true(dashboard.panels.length >= 12);
  for (const { title, targets } of dashboard.panels) {
    t.true(targets.length > 0, title);
    for (const { expr } of targets) {
      const names = namesIn(expr);
      t.true(names.length > 0, expr);
      for (const name of names) t.true(NAMES.includes(name), name);
    }
  }
});

test('docs/monitoring.md lists each metric, and no other', (t) => {
  t.deepEqual(namesIn(read('docs/monitoring.md')), [...NAMES].sort());
});
