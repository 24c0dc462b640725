/**
 * `farkv bench load|run DB`: YCSB, with YCSB's way of writing its options (-P, -p, -threads, -target, -s, -l) and its
 * report.
 */
import { writeFile } from 'node:fs/promises';
import { FarkvError } from '../../../core/errors.js';
import { visibleJson } from '../../../core/visible-text.js';
import { DATABASES, type DatabaseName } from '../../../bench/ycsb/database-names.js';
import { writing } from '../../../tools/transfer/write-failure.js';
import type { CliCommand } from '../command.js';
import { clientOptions, namespaceOf, tokenFor, trustOf, type ClientArguments } from '../client-options.js';
import { EXIT, exitCodesHelp } from '../exit-codes.js';
import { print, printError } from '../output.js';

interface BenchArguments extends ClientArguments {
  readonly phase: 'load' | 'run';
  readonly db: DatabaseName;
  readonly P: readonly string[] | undefined;
  readonly p: readonly string[] | undefined;
  readonly threads: string | undefined;
  readonly target: string | undefined;
  readonly s: boolean;
  readonly l: string | undefined;
  readonly json: boolean;
  readonly harness: boolean;
}

/** YCSB writes words with one dash, which yargs takes for a bundle of letters. */
const ONE_DASH = new Set(['-threads', '-target', '-json', '-connect', '-token']);

function prepareArgs(args: readonly string[]): string[] {
  return args.map((word, i) =>
    ONE_DASH.has(word) && !['-P', '-p', '-l'].includes(args[i - 1] ?? '') ? `-${word}` : word,
  );
}

/** Files first, in order; then the command line, the last one counting. */
async function propertiesOf(args: BenchArguments): Promise<Map<string, string>> {
  const { readWorkloadFile } = await import('../../../bench/ycsb/workload-file.js');
  const properties = new Map<string, string>();
  for (const path of args.P ?? []) for (const [name, value] of readWorkloadFile(path)) properties.set(name, value);
  for (const text of args.p ?? []) {
    const at = text.indexOf('=');
    if (at < 1) throw new FarkvError('ERR_CONFIG', `-p ${text}: name=value is expected`);
    properties.set(text.slice(0, at), text.slice(at + 1));
  }
  if (args.threads !== undefined) properties.set('threadcount', args.threads);
  if (args.target !== undefined) properties.set('target', args.target);
  if (args.db === 'farkv') addConnection(args, properties);
  return properties;
}

function addConnection(args: BenchArguments, properties: Map<string, string>): void {
  const set = (name: string, value: string | undefined) => {
    if (value !== undefined && !properties.has(name)) properties.set(name, value);
  };
  set('farkv.servers', args.connect);
  set('farkv.token', tokenFor(args, ['writer', 'reader']));
  const trust = trustOf(args, ['writer', 'reader']);
  set('farkv.ca', trust?.caFile);
  set('farkv.cert', trust?.certFile);
  set('farkv.key', trust?.keyFile);
  set('farkv.transport', args.transport);
  set('farkv.strict', String(args.strict));
  set('farkv.namespace', String(namespaceOf(args.namespace)));
}

/** In lines that can be pasted: yargs would break them in its columns. */
const EXAMPLES = `Examples: load 100,000 records of 10 fields of 100 B, read them; Redis at 5,000 operations a second
  farkv bench load farkv -P workloadb -p recordcount=100000
  farkv bench run farkv -P workloadb -p recordcount=100000 -p operationcount=1000000 -threads 2 -s
  farkv bench load redis -P workloadb -p recordcount=100000 -p redis.host=127.0.0.1
  farkv bench run redis -P workloadb -p recordcount=100000 -p redis.host=127.0.0.1 \\
    -p operationcount=100000 -target 5000 -p measurement.interval=both`;

const bench: CliCommand<BenchArguments> = {
  command: 'bench <phase> <db>',
  describe: 'Run YCSB against farkv, redis, memcached, lmdb or a no-op database',
  prepareArgs,
  builder: (y) =>
    clientOptions(
      y
        .positional('phase', {
          choices: ['load', 'run'] as const,
          demandOption: true,
          describe: 'load: insert recordcount records; run: do operationcount operations',
        })
        .positional('db', { choices: DATABASES, demandOption: true, describe: 'What is measured; basic does nothing' }),
    )
      .option('P', {
        type: 'string',
        array: true,
        nargs: 1,
        describe:
          'Property file; several are read in order. A bare name such as workloadb is looked for among those that come with farkv',
      })
      .option('p', { type: 'string', array: true, nargs: 1, describe: 'name=value; overrides the files' })
      .option('threads', {
        type: 'string',
        requiresArg: true,
        describe: 'Benchmark threads (worker threads), 1 to 1024; also -threads, threadcount',
      })
      .option('target', {
        type: 'string',
        requiresArg: true,
        describe: 'Operations a second over all threads, on a schedule; also -target. See measurement.interval',
      })
      .option('s', {
        type: 'boolean',
        default: false,
        describe: 'Print status lines to standard error, every status.interval seconds (10)',
      })
      .option('l', { type: 'string', requiresArg: true, describe: 'Label of the status lines' })
      .option('json', {
        type: 'boolean',
        default: false,
        describe: 'Print the report as one JSON object; latencies in nanoseconds',
      })
      .option('harness', {
        type: 'boolean',
        default: true,
        describe: 'Measure the same loop against the no-op database too; --no-harness leaves it out',
      })
      .epilogue(
        `${EXAMPLES}\n\n` +
          "Properties are YCSB's (recordcount, operationcount, fieldcount, readproportion, requestdistribution, insertorder, dataintegrity, maxexecutiontime, ...); beyond them: " +
          'requestdistribution=zipfian-exact, outstanding (operations in flight a thread), seed, farkv.*, redis.*, memcached.*, lmdb.*. ' +
          'Latencies have three decimals of a microsecond. Workload E needs ordered scans, which a hash table has not: NOT_IMPLEMENTED.\n\n' +
          exitCodesHelp({ failed: 'operations failed, dataintegrity=true found a wrong record, or NOT_IMPLEMENTED' }),
      ),
  handler: async (args) => {
    const properties = await propertiesOf(args);
    const { runBenchmark } = await import('../../../bench/ycsb/runner.js');
    const { reportFailures, textReport } = await import('../../../bench/ycsb/report.js');
    const say = (text: string) => printError(`${text}\n`);
    const interrupt = new AbortController();
    const onSignal = () => interrupt.abort();
    process.once('SIGINT', onSignal);
    process.once('SIGTERM', onSignal);
    const label = args.l ?? properties.get('label');
    try {
      const report = await runBenchmark({
        database: args.db,
        phase: args.phase,
        properties,
        onNotice: say,
        signal: interrupt.signal,
        ...(args.s || properties.get('status') === 'true' ? { onStatus: say } : {}),
        ...(label === undefined ? {} : { label }),
        harness: args.harness,
      });
      const text = args.json ? `${visibleJson(report)}\n` : textReport(report);
      const file = properties.get('exportfile');
      if (file === undefined) print(text);
      else await writing(file, () => writeFile(file, text));
      const failures = reportFailures(report);
      if (failures !== undefined) say(`farkv bench: ${failures}`);
      if (failures !== undefined || interrupt.signal.aborted) process.exitCode = EXIT.failed;
    } catch (error) {
      // What the command line says to do about a farkv server that does not answer helps nobody with another store.
      if (args.db === 'farkv' || !(error instanceof FarkvError) || error.code !== 'ERR_DISCONNECTED') throw error;
      say(`farkv bench: ${error.message}`);
      process.exitCode = EXIT.unavailable;
    } finally {
      process.removeListener('SIGINT', onSignal);
      process.removeListener('SIGTERM', onSignal);
    }
  },
};

export default bench;
