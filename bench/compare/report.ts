/** The comparison as text and as JSON, and what it was measured on. */
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { inRepository } from '../repository.js';
import { versionOf } from './peers.js';
import { rowMet, weakest, type Goal, type Part, type RowResult } from './row.js';
import { TCP_SPIN_US } from './stores.js';

export function number(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en');
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2);
}

const WORDS = { atLeast: 'at least', atMost: 'at most', below: 'below' } as const;
export const goalText = (goal: Goal): string => `${WORDS[goal.kind]} ${number(goal.value)} ${goal.unit}`;
export const measuredText = ({ measured: { median, low, high } }: Part): string => `${number(median)} (${number(low)} to ${number(high)})`;

export interface Surroundings {
  readonly machine: string;
  readonly versions: string;
  readonly providers: string;
  readonly run: string;
  readonly command: string;
  readonly date: string;
}

const versionOfPackage = (path: string): string => (JSON.parse(readFileSync(inRepository(path, 'package.json'), 'utf8')) as { readonly version: string }).version;

export function surroundings(run: { readonly goals: string; readonly keys: number; readonly rounds: number; readonly servers: number }, command: string): Surroundings {
  const programs = (['redis-server', 'memcached'] as const).map((program) => `${program} ${versionOf(program) ?? '(not installed)'}`);
  const packages = ['ioredis', 'memcache-client', 'lmdb'].map((name) => `${name} ${versionOfPackage(`node_modules/${name}`)}`);
  return {
    machine: `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GiB, load average ${(loadavg()[0] ?? 0).toFixed(1)} at the start`,
    versions: [`Linux ${release()}`, `Node.js ${process.versions.node}`, `farkv ${versionOfPackage('.')}`, ...programs, ...packages].join(', '),
    providers: `shm and tcp (getSpinUs ${TCP_SPIN_US}) on one host; each row names its own`,
    run: `goals "${run.goals}", ${run.keys.toLocaleString('en')} keys of 16 B, ${run.servers} farkv server(s), medians of ${run.rounds} rounds in turn after one to warm up`,
    command,
    date: new Date().toISOString(),
  };
}

export function head({ machine, versions, providers, run, command }: Surroundings): string {
  return `${command}\n${machine}\n${versions}\nproviders: ${providers}\n${run}\n`;
}

export function lines(row: RowResult): string {
  const parts = row.parts.map((p) => `${p.met ? '  met   ' : '  MISSED'}  ${p.title}\n          goal ${goalText(p.goal)}; measured ${measuredText(p)}: ${p.detail}`);
  const problem = row.problem === undefined ? [] : [`  NOT MEASURED  ${row.problem}`];
  return `${row.name} (${row.seconds.toFixed(0)} s)\n${[...parts, ...problem].join('\n')}`;
}

/** An entry as a program reads it: of a row, or of one of its parts. */
interface Entry {
  readonly name: string;
  readonly goal: string;
  readonly measured: number | null;
  readonly spread: readonly [number, number] | null;
  readonly met: boolean;
  readonly detail: string;
}

function entry(name: string, p: Part): Entry {
  return { name, goal: goalText(p.goal), measured: p.measured.median, spread: [p.measured.low, p.measured.high], met: p.met, detail: p.detail };
}

/** One entry for each row. A row of several figures has the one that is farthest behind its goal, and all of them as `parts`. */
export function toJson(rows: readonly RowResult[]): string {
  const entries = rows.map((row) => {
    const first = weakest(row);
    if (first === undefined) return { name: row.name, goal: row.work, measured: null, spread: null, met: false, detail: row.problem ?? '' } satisfies Entry;
    const parts = row.parts.length > 1 ? { parts: row.parts.map((p) => entry(p.title, p)) } : {};
    return { ...entry(row.name, first), met: rowMet(row), ...parts };
  });
  return `${JSON.stringify(entries, undefined, 2)}\n`;
}
