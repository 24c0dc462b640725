/** The table of metrics: its names, and what else names them. */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { inRepository } from '../../bench/repository.js';
import { parse } from 'yaml';
import { commandNamed } from '../cli/command-list.js';
import { METRICS } from './metric-table.js';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly command: string };
}

const NAMES = METRICS.map(({ name }) => name as string);
const read = (path: string): string => readFileSync(inRepository(path), 'utf8');
const HISTOGRAMS = METRICS.filter(({ type }) => type === 'histogram').map(({ name }) => name as string);
/** A histogram's samples have names of their own. */
const family = (name: string): string =>
  HISTOGRAMS.find((of) => ['_bucket', '_sum', '_count'].some((suffix) => name === of + suffix)) ?? name;
const namesIn = (text: string): string[] => [...new Set((text.match(/\bfarkv_[a-z_]+/g) ?? []).map(family))].sort();

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
      t.notRegex(expr, /rate\([^()]*\[(?!\$__rate_interval\])/, 'a rate over less than two scrapes is empty');
    }
  }
});

interface RuleTest {
  readonly input_series: readonly { readonly series: string }[];
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts?: readonly unknown[] }[];
}

test('each alert fires in a test of the rules, on metrics that there are', (t) => {
  const { groups } = parse(read('docs/dashboards/alerts.yml')) as {
    readonly groups: readonly { readonly rules: readonly Rule[] }[];
  };
  const { tests } = parse(read('test/fixtures/alerts.yml')) as { readonly tests: readonly RuleTest[] };
  const fires = tests
    .flatMap((one) => one.alert_rule_test)
    .filter(({ exp_alerts: alerts = [] }) => alerts.length > 0)
    .map(({ alertname }) => alertname);
  t.deepEqual([...new Set(fires)].sort(), groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)).sort());
  for (const { series } of tests.flatMap((one) => one.input_series))
    for (const name of namesIn(series)) t.true(NAMES.includes(name), series);
});

test('alert rules ask for metrics that there are, and name commands with their actions', async (t) => {
  const { groups } = parse(read('docs/dashboards/alerts.yml')) as {
    readonly groups: readonly { readonly rules: readonly Rule[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  t.true(rules.length >= 8);
  t.is(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, expr, labels, annotations } of rules) {
    t.regex(alert, /^Farkv[A-Za-z]+$/);
    const names = namesIn(expr);
    t.true(names.length > 0, alert);
    for (const name of names) t.true(NAMES.includes(name), `${alert}: ${name}`);
    t.true(['warning', 'critical'].includes(labels.severity), alert);
    t.true(annotations.summary.length > 0 && annotations.command.length > 0, alert);
    for (const [words, name = '', action] of annotations.command.matchAll(/\bfarkv ([a-z-]+)(?: ([a-z-]+))?/g)) {
      const load = commandNamed(name);
      t.truthy(load, `${alert}: ${words}`);
      const actions = (await load?.())?.actions;
      if (actions !== undefined) t.true(Object.hasOwn(actions, action ?? ''), `${alert}: ${words}`);
    }
  }
});
