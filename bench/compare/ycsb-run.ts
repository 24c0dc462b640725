/**
 * One load or run of YCSB by `farkv bench`, in a process of its own. A run in which an operation failed, or found no
 * record, is no measurement.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { RunReport } from '../ycsb/report.js';

const CLI = fileURLToPath(new URL('../../server/cli/main.js', import.meta.url));
/** Beyond the time that a run may take: only one that hangs takes so long. */
const LIMIT_MS = 120_000;

export interface YcsbRun {
  /** The letter of a property file. */
  readonly workload: string;
  readonly records: number;
  readonly operations: number;
  readonly outstanding: number;
  /** A run that has not done its operations by then ends with those that it did. */
  readonly seconds: number;
}

/** The words that name a farkv cluster to `farkv bench`. */
export const farkvDatabase = (addresses: readonly string[], transport: string): string[] => [
  'farkv',
  '--connect',
  addresses.join(','),
  '--transport',
  transport,
  '--strict',
];

/** The report, if it is of a run that is one; throws what was wrong with it. */
export function checked<T extends Pick<RunReport, 'operations' | 'series'>>(report: T): T {
  const wrong = report.series.flatMap(({ name, returns }) =>
    Object.entries(returns)
      .filter(([status]) => status !== 'OK')
      .map(([status, count]) => `${count} ${name} operations ended with ${status}`),
  );
  if (wrong.length > 0) throw new Error(wrong.join('; '));
  if (report.operations === 0) throw new Error('no operation was done');
  return report;
}

export async function ycsbRun(
  signal: AbortSignal,
  name: string,
  phase: 'load' | 'run',
  database: readonly string[],
  { workload, records, operations, outstanding, seconds }: YcsbRun,
): Promise<RunReport> {
  const properties = [
    `recordcount=${records}`,
    `operationcount=${operations}`,
    `outstanding=${outstanding}`,
    'seed=1',
    ...(phase === 'run' ? [`maxexecutiontime=${seconds}`] : []),
  ].flatMap((one) => ['-p', one]);
  const args = [CLI, 'bench', phase, ...database, '-P', `workload${workload}`, ...properties, '--no-harness', '--json'];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      maxBuffer: 2 ** 26,
      timeout: seconds * 1000 + LIMIT_MS,
      signal,
    });
    return checked(JSON.parse(stdout) as RunReport);
  } catch (error) {
    signal.throwIfAborted();
    const said =
      error instanceof Error && 'stderr' in error && typeof error.stderr === 'string' ? error.stderr.trim() : '';
    throw new Error(
      `YCSB ${workload.toUpperCase()}, ${phase} of ${name}: ${said === '' ? (error as Error).message : said}`,
      { cause: error },
    );
  }
}
