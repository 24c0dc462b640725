import test from 'ava';
import { Measurements } from './measurements.js';
import { javaDouble, reportFailures, reportSeries, textReport, type RunReport } from './report.js';
import { remaining, statusLine } from './status-line.js';

function measured(): Measurements {
  const m = new Measurements('both');
  for (let i = 1; i <= 100; i++) {
    m.operation('READ', 'OK', 1000, 1000, 1000 + i * 1000);
    m.status('READ', 'OK');
  }
  m.operation('READ', 'NOT_FOUND', 0, 500, 1500);
  m.status('READ', 'NOT_FOUND');
  m.operation('UPDATE', 'OK', 0, 0, 2_500_000);
  m.status('UPDATE', 'OK');
  return m;
}

function report(m: Measurements): RunReport {
  return {
    database: 'farkv',
    phase: 'run',
    runTimeMs: 1234.4,
    operations: 102,
    throughput: 82_633.25,
    gc: { count: 3, ms: 1.5 },
    series: reportSeries(m, [50, 95, 99, 99.9]),
    facts: { Provider: 'shm', ReadsPerGet: 1.02 },
    harnessNs: 312.4,
    seed: 7,
  };
}

test('the text report has the lines that YCSB prints', (t) => {
  const text = textReport(report(measured()));
  t.true(text.startsWith('[OVERALL], RunTime(ms), 1234\n[OVERALL], Throughput(ops/sec), 82633.25\n'));
  t.regex(text, /\[READ\], Operations, 100\n\[READ\], AverageLatency\(us\), 50\.\d{3}\n\[READ\], MinLatency\(us\), /);
  t.regex(
    text,
    /\[READ\], 95thPercentileLatency\(us\), 95\.\d{3}\n\[READ\], 99thPercentileLatency\(us\), 99\.\d{3}\n\[READ\], 99\.9PercentileLatency/,
  );
  t.true(text.includes('[READ], Return=OK, 100\n[READ], Return=NOT_FOUND, 1\n'));
  t.true(text.includes('[READ-FAILED], Operations, 1\n'));
  t.true(text.includes('[Intended-UPDATE], Operations, 1\n'));
  t.true(
    text.endsWith(
      '[FARKV], Provider, shm\n[FARKV], ReadsPerGet, 1.02\n[HARNESS], CostPerOperation(us), 0.312\n[HARNESS], Seed, 7\n',
    ),
  );
});

test('measurement.interval=op has no intended series, intended has only them, under plain names', (t) => {
  const op = new Measurements('op');
  op.operation('READ', 'OK', 100, 500, 600);
  t.deepEqual(
    reportSeries(op, []).map((s) => [s.name, Math.round(s.averageNs)]),
    [['READ', 100]],
  );
  const intended = new Measurements('intended');
  intended.operation('READ', 'OK', 100, 500, 600);
  t.deepEqual(
    reportSeries(intended, []).map((s) => [s.name, Math.round(s.averageNs)]),
    [['READ', 500]],
  );
});

test('snapshots of threads add up', (t) => {
  const sum = new Measurements('both');
  sum.add(measured().snapshot());
  sum.add(measured().snapshot());
  const [read] = reportSeries(sum, [99]);
  t.is(read?.operations, 200);
  t.is(read?.returns.OK, 200);
  t.true(Math.abs((read?.percentilesNs['99'] ?? 0) - 99_000) < 100);
});

test('an hour and more is a latency that can be recorded', (t) => {
  const m = new Measurements('op');
  m.latency('READ', 1e15);
  m.latency('READ', -5);
  t.is(reportSeries(m, [])[0]?.operations, 2);
});

test('doubles are written as Java writes them', (t) => {
  t.deepEqual([0, 1, 1234.5, 9_999_999, 1e7, 12_345_678.9, 0.001, 0.000_1, -2.5].map(javaDouble), [
    '0.0',
    '1.0',
    '1234.5',
    '9999999.0',
    '1.0E7',
    '1.23456789E7',
    '0.001',
    '1.0E-4',
    '-2.5',
  ]);
});

test('a run has failed when operations ended with ERROR or a read was wrong, not when a record is missing', (t) => {
  const m = measured();
  t.is(reportFailures(report(m)), undefined);
  m.status('VERIFY', 'UNEXPECTED_STATE');
  m.status('UPDATE', 'ERROR');
  t.is(
    reportFailures(report(m)),
    '1 UPDATE operations ended with ERROR; 1 VERIFY operations ended with UNEXPECTED_STATE',
  );
});

test('status lines are those of YCSB', (t) => {
  const interval = new Measurements('op');
  interval.operation('READ', 'OK', 0, 0, 1500);
  const line = statusLine({
    label: '',
    now: new Date(2026, 0, 2, 3, 4, 5, 67),
    elapsedMs: 10_500,
    operations: 1000,
    intervalOperations: 505,
    intervalMs: 5000,
    todo: 95,
    interval,
  });
  t.is(
    line,
    '2026-01-02 03:04:05:067 10 sec: 1000 operations; 101 current ops/sec; est completion in 1 second [READ: Count=1, Max=1.5, Min=1.5, Avg=1.5, 50=1.5, 90=1.5, 99=1.5, 99.9=1.5, 99.99=1.5]',
  );
  t.is(remaining(59), '59 seconds ');
  t.is(remaining(3661), '1 hour 1 minute ');
  t.is(remaining(90_000), '1 day 1 hour ');
});
