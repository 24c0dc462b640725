/**
 * `npm run demo`: the whole of farkv in one command. Starts three servers as processes of their own, loads 100,000 YCSB
 * records, runs workload B, and prints YCSB's summary, the provider, READs per GET, and the CPU time that the servers
 * spent meanwhile. Then it kills one of the servers, and reads every record back.
 *
 * Exits with 1 and says why when an operation failed or a record was not found.
 * Leaves no process and no file behind, also on Ctrl-C. FARKV_DEMO_OPERATIONS and FARKV_DEMO_RECORDS make it larger or
 * smaller.
 */
import { processorSeconds } from './compare/processor-time.js';
import { DemoCluster } from './demo-cluster.js';
import { killOne, killText } from './demo-kill.js';
import { ProgressBar } from './progress-bar.js';
import { reportFailures, textReport, type RunReport } from './ycsb/report.js';
import { harnessCost, runBenchmark } from './ycsb/runner.js';
import { readWorkloadFile } from './ycsb/workload-file.js';
import { FarkvError } from '../core/errors.js';
import { isTransportChoice } from '../core/providers.js';

const SERVERS = 3;
const MEMORY = '256mb';
/**
 * A busy machine may keep a server from running for longer than the default lease. Then its shards would go to others,
 * which the demonstration does not show. Shards that have copies need no end of this lease to go on after the kill.
 */
const LEASE = ['--owner-lease-ms', '60000'] as const;
/** For the same reason operations wait longer for an owner than the SDK's own 3 and 5 seconds. */
const PATIENCE_MS = 60_000;
const TRANSPORT = process.env.FARKV_DEMO_TRANSPORT ?? 'auto';

function count(name: string, byDefault: number): number {
  const value = Number(process.env[name] ?? byDefault);
  if (!Number.isInteger(value) || value < 1) throw new FarkvError('ERR_CONFIG', `${name} is a number from 1 on`);
  return value;
}

const thousands = (n: number) => Math.round(n).toLocaleString('en-US');

const DEFECT = 'each was on two servers, so this is a defect of farkv: please report it';

/** Every record that is read was loaded. */
function whatWasMissed({ series }: RunReport): string | undefined {
  const missed = series.reduce((sum, { returns }) => sum + (returns.NOT_FOUND ?? 0), 0);
  return missed === 0 ? undefined : `${missed} operations did not find a record that had been loaded: ${DEFECT}`;
}

async function phase(
  name: 'load' | 'run',
  what: string,
  cluster: DemoCluster,
  settings: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<RunReport> {
  const bar = new ProgressBar(what);
  const properties = readWorkloadFile('workloadb');
  for (const [key, value] of Object.entries({
    'farkv.servers': cluster.addresses.join(','),
    'farkv.transport': TRANSPORT,
    'farkv.timeoutms': String(PATIENCE_MS),
    'farkv.unavailableafterms': String(PATIENCE_MS),
    'farkv.connecttimeoutms': String(PATIENCE_MS),
    ...settings,
  }))
    properties.set(key, value);
  const report = await runBenchmark({
    database: 'farkv',
    phase: name,
    properties,
    signal,
    onProgress: (done, total) => bar.show(done, total),
    onNotice: (text) => process.stderr.write(`${text}\n`),
    harness: false,
  });
  bar.end(
    `${thousands(report.operations)} operations in ${(report.runTimeMs / 1000).toFixed(1)} s, ${thousands(report.throughput)}/s`,
  );
  if (signal.aborted) throw new FarkvError('ERR_ABORTED', 'interrupted');
  return report;
}

/** What the loop of workload B costs without a store. */
async function harness(size: Readonly<Record<string, string>>): Promise<number> {
  const properties = readWorkloadFile('workloadb');
  for (const [key, value] of Object.entries(size)) properties.set(key, value);
  return await harnessCost('run', properties);
}

/** Runs and tells what the servers' CPUs did meanwhile. */
async function measured(
  cluster: DemoCluster,
  run: () => Promise<RunReport>,
): Promise<{ readonly report: RunReport; readonly cpuSeconds: number }> {
  const before = cluster.pids.map(processorSeconds);
  const report = await run();
  return {
    report,
    cpuSeconds: cluster.pids.reduce((sum, pid, i) => sum + processorSeconds(pid) - (before[i] ?? 0), 0),
  };
}

function print(report: RunReport, serverSeconds: number, reads: RunReport, readSeconds: number): void {
  const runSeconds = report.runTimeMs / 1000;
  process.stdout.write(`\n${textReport(report)}`);
  process.stdout.write(`[SERVERS], CpuTime(s), ${serverSeconds.toFixed(2)}\n`);
  process.stdout.write(`[SERVERS], CpuOfOneCore(%), ${((100 * serverSeconds) / runSeconds).toFixed(1)}\n\n`);
  const read = report.series.find((series) => series.name === 'READ');
  const update = report.series.find((series) => series.name === 'UPDATE');
  if (read === undefined) return;
  process.stdout.write(
    `${thousands(read.operations)} READs over ${String(report.facts.Provider)}, p50 ${((read.percentilesNs['50'] ?? 0) / 1000).toFixed(2)} us, ` +
      `${String(report.facts.ReadsPerGet)} one-sided READs per GET; ${thousands(update?.operations ?? 0)} updates of one field, each a GET and a PUT.\n` +
      `The ${SERVERS} servers spent ${serverSeconds.toFixed(2)} s of CPU in ${runSeconds.toFixed(1)} s, for the PUTs. ` +
      `During ${thousands(reads.operations)} GETs alone (workload C, ${(reads.runTimeMs / 1000).toFixed(1)} s) they spent ${readSeconds.toFixed(2)} s.\n`,
  );
}

async function main(signal: AbortSignal): Promise<void> {
  const records = count('FARKV_DEMO_RECORDS', 100_000);
  const operations = count('FARKV_DEMO_OPERATIONS', 1_000_000);
  const transport = TRANSPORT;
  if (!isTransportChoice(transport))
    throw new FarkvError('ERR_CONFIG', `FARKV_DEMO_TRANSPORT is no transport: ${transport}`);
  process.stderr.write(`starting ${SERVERS} servers ...\n`);
  const cluster = await DemoCluster.start(SERVERS, MEMORY, signal, LEASE);
  try {
    const size = { recordcount: String(records), operationcount: String(operations) };
    const check = (...runs: readonly RunReport[]): void => {
      const wrong = runs.flatMap((run) => reportFailures(run) ?? whatWasMissed(run) ?? []);
      if (wrong.length > 0) throw new FarkvError('ERR_INTERNAL', wrong.join('; '));
    };
    check(await phase('load', 'load', cluster, { ...size, outstanding: '64' }, signal));
    // At most so many seconds, however slow the machine: what was done until then is reported.
    const b = await measured(cluster, () =>
      phase('run', 'workload B', cluster, { ...size, maxexecutiontime: '30' }, signal),
    );
    const onlyReads = { ...size, readproportion: '1', updateproportion: '0', maxexecutiontime: '10' };
    const c = await measured(cluster, () => phase('run', 'workload C', cluster, onlyReads, signal));
    const harnessNs = await harness(size);
    print({ ...b.report, harnessNs }, b.cpuSeconds, c.report, c.cpuSeconds);
    check(b.report, c.report);
    process.stderr.write('killing one of the servers ...\n');
    const after = await killOne(cluster, { transport, patienceMs: PATIENCE_MS, signal }, records);
    process.stdout.write(`\n${killText(after)}`);
    if (after.missing > 0) throw new FarkvError('ERR_INTERNAL', `${after.missing} records were lost: ${DEFECT}`);
  } finally {
    await cluster.stop();
  }
}

const interrupt = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interrupt.abort());
try {
  await main(interrupt.signal);
} catch (error) {
  process.stderr.write(`demo: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = interrupt.signal.aborted ? 130 : 1;
}
