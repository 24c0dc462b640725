/** The benchmark's workloads over three servers, every READ verified. */
import test from 'ava';
import type { RunReport } from '../../bench/ycsb/report.js';
import { runBenchmark } from '../../bench/ycsb/runner.js';
import { readWorkloadFile } from '../../bench/ycsb/workload-file.js';
import { Cluster } from '../support/cluster.js';

const returns = (report: RunReport, name: string) => report.series.find((series) => series.name === name)?.returns;

test('farkv: load and every workload but E, each read verified, over threads and lanes', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, memory: '128mb', shards: 6 });
  const one = async (
    phase: 'load' | 'run',
    workload: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<RunReport> => {
    const properties = readWorkloadFile(workload);
    const settings = {
      recordcount: '2000',
      operationcount: '6000',
      dataintegrity: 'true',
      'farkv.servers': cluster.addresses.join(','),
      seed: '7',
      ...more,
    };
    for (const [name, value] of Object.entries(settings)) properties.set(name, value);
    return await runBenchmark({ database: 'farkv', phase, properties, harness: false });
  };
  const load = await one('load', 'workloada', { threadcount: '3', outstanding: '16' });
  t.deepEqual(returns(load, 'INSERT'), { OK: 2000 });
  for (const [workload, more] of [
    ['workloada', {}],
    ['workloadb', { threadcount: '2' }],
    ['workloadc', { 'farkv.transport': 'tcp', outstanding: '20', threadcount: '2' }],
    ['workloadf', { 'farkv.read': 'get' }],
    ['workloadc', { 'farkv.read': 'getSync' }],
    ['workloada', { writeallfields: 'true', outstanding: '8' }],
    ['workloadc', { readallfields: 'false', requestdistribution: 'hotspot' }],
  ] as const) {
    const report = await one('run', workload, more);
    t.is(report.operations, 6000);
    const read = returns(report, 'READ');
    t.deepEqual(read, { OK: read?.OK ?? 0 });
    t.deepEqual(returns(report, 'VERIFY'), read);
    t.is(report.facts.Provider, 'farkv.transport' in more ? 'tcp' : 'shm');
    t.true(
      Number(report.facts.ReadsPerGet) >= 0.9 && Number(report.facts.ReadsPerGet) < 3,
      String(report.facts.ReadsPerGet),
    );
  }
  // Inserts make the records that come after those that were loaded; two threads share the numbers.
  const inserts = await one('run', 'workloadd', { threadcount: '2' });
  t.is((returns(inserts, 'INSERT')?.OK ?? 0) + (returns(inserts, 'READ')?.OK ?? 0), 6000);
  t.deepEqual(Object.keys(returns(inserts, 'READ') ?? {}), ['OK']);
});
