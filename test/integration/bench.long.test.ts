import test from 'ava';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RunReport } from '../../bench/ycsb/report.js';
import { farkv } from '../support/cluster.js';

const directory = mkdtempSync(join(tmpdir(), 'farkv-bench-'));
test.after.always(() => rmSync(directory, { recursive: true, force: true }));

const bench = (args: string, env: Readonly<Record<string, string>> = {}) =>
  farkv(['bench', ...args.split(' ')], { env });

test('a wrong record is found, counted, and is exit code 1', async (t) => {
  const path = join(directory, 'wrong');
  const common = `-P workloadc -p recordcount=200 -p lmdb.path=${path} --no-harness`;
  t.is((await bench(`load lmdb ${common}`)).code, 0);
  const run = await bench(`run lmdb ${common} -p operationcount=300 -p dataintegrity=true`);
  t.is(run.code, 1);
  t.regex(run.stdout, /^\[VERIFY\], Return=UNEXPECTED_STATE, 300$/m);
  t.regex(run.stderr, /300 VERIFY operations ended with UNEXPECTED_STATE/);
});

test('records that are not there are NOT_FOUND, which is no failure', async (t) => {
  const run = await bench(
    `run lmdb -P workloada -p lmdb.path=${join(directory, 'empty')} -p operationcount=100 --no-harness`,
  );
  t.is(run.code, 0);
  t.regex(run.stdout, /^\[READ-FAILED\], Operations, \d+$/m);
  t.regex(run.stdout, /^\[READ\], Return=NOT_FOUND, \d+$/m);
});

test('the report has the lines and names of YCSB, and the cost of the harness', async (t) => {
  const { stdout, code } = await bench(
    'run basic -P workloada -p operationcount=20000 -p hdrhistogram.percentiles=50,99,99.9 -threads 2',
  );
  t.is(code, 0);
  const lines = stdout.trimEnd().split('\n');
  for (const line of lines) t.regex(line, /^\[[A-Z_%-]+(?:Cs)?\], [\w=()./%]+, \S+$/i, line);
  t.regex(lines[0] ?? '', /^\[OVERALL\], RunTime\(ms\), \d+$/);
  t.regex(lines[1] ?? '', /^\[OVERALL\], Throughput\(ops\/sec\), \d+\.\d+(E\d+)?$/);
  for (const name of [
    '[READ], 50thPercentileLatency(us)',
    '[READ], 99thPercentileLatency(us)',
    '[UPDATE], 99.9PercentileLatency(us)',
    '[CLEANUP], Operations',
    '[HARNESS], CostPerOperation(us)',
  ]) {
    t.true(
      lines.some((line) => line.startsWith(name)),
      name,
    );
  }
  const json = JSON.parse((await bench('run basic -P workloadc --json --no-harness')).stdout) as RunReport;
  t.is(json.operations, 1000);
  t.is(json.series[0]?.name, 'READ');
});

test('properties: the command line overrides the files, the last file counts, an own file by its path', async (t) => {
  const file = join(directory, 'mine.properties');
  writeFileSync(file, 'recordcount=50\noperationcount=70\n');
  const operations = async (args: string) =>
    (JSON.parse((await bench(`run basic ${args} --json --no-harness`)).stdout) as RunReport).operations;
  t.is(await operations(`-P workloadc -P ${file}`), 70);
  t.is(await operations(`-P ${file} -P workloadc`), 1000);
  t.is(await operations(`-P ${file} -p operationcount=90`), 90);
  t.is(await operations(`-P ${file} -p operationcount=8 -threads 20`), 8);
});

test('-target spreads the operations over time, -s tells how it goes', async (t) => {
  const { stdout, stderr, code } = await bench(
    'run basic -P workloadc -p operationcount=2000 -target 1000 -threads 2 -s -p status.interval=0.5 -l mine --no-harness -p measurement.interval=both',
  );
  t.is(code, 0);
  t.regex(stdout, /^\[READ\], Operations, 2000$/m);
  // Each thread's last operation is 999 milliseconds times two after its first; how much later is the machine's affair.
  t.true(Number(/RunTime\(ms\), (\d+)/.exec(stdout)?.[1]) >= 1998);
  t.regex(stdout, /^\[Intended-READ\], Operations, \d+$/m);
  t.regex(
    stderr,
    /^mine\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3} \d+ sec: \d+ operations; [\d.]+ current ops\/sec; .*\[READ: Count=\d+, Max=/m,
  );
});

test('maxexecutiontime ends a run that has no end, and reports what was done', async (t) => {
  const { stdout, stderr, code } = await bench(
    'run basic -P workloadc -p operationcount=0 -p maxexecutiontime=0.5 -threads 2 --no-harness',
  );
  t.is(code, 0);
  t.regex(stdout, /^\[READ\], Return=OK, [1-9]\d*$/m);
  t.regex(stderr, /Maximum time elapsed/);
});

test('workload E says NOT_IMPLEMENTED and fails; its load does not', async (t) => {
  const run = await bench('run farkv -P workloade');
  t.not(run.code, 0);
  t.regex(run.stderr, /NOT_IMPLEMENTED/);
  t.is(run.stdout, '');
  t.is((await bench('load basic -P workloade --no-harness')).code, 0);
});

test('what is wrong is said in one line', async (t) => {
  for (const [args, code, message] of [
    ['run basic', 2, /recordcount is missing/],
    ['run basic -p recordcount=5 -p operationcount=0', 2, /operationcount is missing/],
    ['run basic -P nowhere', 2, /nowhere cannot be read/],
    ['run basic -p recordcnt=5', 2, /unknown property recordcnt; did you mean recordcount/],
    ['run redis -P workloada -p redis.hots=x', 2, /unknown property redis\.hots; did you mean redis\.host/],
    ['run redis -P workloada -p redis.port=1', 69, /redis at 127\.0\.0\.1:1 cannot be reached/],
    ['run memcached -P workloada -p memcached.hosts=127.0.0.1:1', 69, /memcached at 127\.0\.0\.1:1 cannot be reached/],
    ['run basic -P workloada -p measurementtype=timeseries', 2, /measurementtype/],
    ['run farkv -P workloada -c 127.0.0.1:1', 69, /no server listens there/],
  ] as const) {
    const { code: actual, stderr, stdout } = await bench(args);
    t.is(actual, code, `${args}: ${stderr}`);
    t.regex(stderr, message);
    t.is(stdout, '');
  }
});
