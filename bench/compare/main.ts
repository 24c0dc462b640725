/**
 * `npm run bench:compare`: farkv beside Redis (ioredis, redis-benchmark), memcached and lmdb, on this machine, in one
 * run, round by round in turn. Nothing is installed: what is missing is named. Everything that was started is stopped
 * again, on Ctrl-C and at the time limit too.
 *
 * Exit codes: 0 every row was measured, whatever came out; 1 some were not; 2 wrong usage, or a program is missing.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { hideBin } from 'yargs/helpers';
import { CURVES, CURVES_NEED, latencyCurves, type Curve } from './curves.js';
import { openLab } from './lab.js';
import { filled, joined } from './markdown.js';
import { readOptions, type Options } from './options.js';
import { missingPrograms } from './peers.js';
import { head, lines, surroundings, toJson, type RowEntry } from './report.js';
import { reportPage } from './report-page.js';
import { rowMet, type Part, type RowResult } from './row.js';
import { DOCUMENTS, ROWS, type RowPlan } from './rows.js';
import { inRepository } from '../repository.js';

/** After the end was asked for, how long a row may take to put away what it started, and then the stores to stop. */
const ROW_STOP_MS = 20_000;
const STOP_MS = 60_000;

const note = (text: string): void => void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

function giveUp(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(2);
}

async function options(): Promise<Options> {
  try {
    return await readOptions(hideBin(process.argv));
  } catch (error) {
    giveUp(error instanceof Error ? error.message : String(error));
  }
}

const o = await options();
if (o.markdown.length > 0) {
  const readme = inRepository(DOCUMENTS[o.goals] ?? giveUp(`no document has the figures of --goals ${o.goals}`));
  try {
    const rows = joined(o.markdown.map((path) => JSON.parse(readFileSync(path, 'utf8')) as RowEntry[]));
    writeFileSync(readme, filled(readFileSync(readme, 'utf8'), rows));
    process.stdout.write(`${readme}: ${rows.length} rows\n`);
  } catch (error) {
    giveUp(error instanceof Error ? error.message : String(error));
  }
  process.exit(0);
}
const wanted = (plan: Pick<RowPlan, 'name' | 'work'>): boolean =>
  o.only === undefined || o.only.test(plan.name) || o.only.test(plan.work);
const plans = ROWS.filter((plan) => plan.measure[o.goals] !== undefined && wanted(plan));
const curvesWanted = o.report !== undefined && (o.only === undefined || plans.length === 0 || o.only.test(CURVES));
const missing = missingPrograms([
  ...new Set([...plans.flatMap((plan) => plan.needs), ...(curvesWanted ? CURVES_NEED : [])]),
]);
if (plans.length === 0 && !curvesWanted) giveUp(`no row matches --only; npm run bench:compare -- --help names them`);
if (missing.length > 0) giveUp(missing.join('\n'));

const stop = new AbortController();
const end = (why: string): void => {
  if (stop.signal.aborted) return;
  note(`${why}: stopping`);
  stop.abort(new Error(why));
  setTimeout(() => {
    note('what was started did not stop in time; it ends with this process');
    process.exit(1);
  }, STOP_MS).unref();
};
process.once('SIGINT', () => end('interrupted'));
process.once('SIGTERM', () => end('interrupted'));
const timer = setTimeout(
  () => end(`the time limit of ${o.timeLimitMinutes} minutes is over`),
  o.timeLimitMinutes * 60_000,
);

/** What is under way when the end is asked for may put away what it started; then it is left behind. */
async function unlessAborted<T>(work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  let onAbort: () => void = () => undefined;
  const leftBehind = new Promise<never>((_, reject) => {
    onAbort = (): void => void setTimeout(() => reject(stop.signal.reason as Error), ROW_STOP_MS).unref();
    stop.signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([work, leftBehind]);
  } finally {
    stop.signal.removeEventListener('abort', onAbort);
  }
}

const where = surroundings(o, `npm run bench:compare -- ${hideBin(process.argv).join(' ')}`.replace(/ -- $/, ''));
process.stdout.write(`${head(where)}\n`);
const lab = openLab({
  keys: o.keys,
  rounds: o.rounds,
  servers: o.servers,
  workloads: o.workloads,
  writeSeconds: o.writeSeconds,
  signal: stop.signal,
  note,
});

async function measure({ name, theme, work, measure: sets }: RowPlan): Promise<RowResult> {
  const begin = performance.now();
  const [load = 0] = loadavg();
  let parts: readonly Part[] = [];
  let problem: { readonly problem?: string } = {};
  try {
    stop.signal.throwIfAborted();
    note(name);
    parts = await unlessAborted(sets[o.goals]?.(lab) ?? Promise.resolve([]));
  } catch (error) {
    problem = { problem: error instanceof Error ? error.message : String(error) };
  }
  return { name, theme, work, parts, load, seconds: (performance.now() - begin) / 1000, ...problem };
}

const rows: RowResult[] = [];
let curves: readonly Curve[] = [];

/** After each row: however this process ends, what was measured is there. */
function write(): void {
  if (o.json !== undefined) writeFileSync(o.json, toJson(rows, where));
  if (o.report !== undefined) writeFileSync(o.report, reportPage({ where, rows, curves }));
}

try {
  if (curvesWanted) {
    note(CURVES);
    curves = await unlessAborted(latencyCurves(lab)).catch((error: unknown) => {
      note(`no latency curves: ${error instanceof Error ? error.message : String(error)}`);
      return [];
    });
  }
  for (const plan of plans) {
    const row = await measure(plan);
    rows.push(row);
    process.stdout.write(`${lines(row)}\n`);
    write();
  }
} finally {
  clearTimeout(timer);
  await lab.close();
}

write();
process.stdout.write(`\n${rows.filter(rowMet).length} of ${rows.length} rows met\n`);
// A row that was left behind may hold the event loop.
process.exit(rows.some((row) => row.problem !== undefined) ? 1 : 0);
