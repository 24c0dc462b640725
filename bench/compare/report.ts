/** The comparison as text and as JSON, and what it was measured on. */
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, tmpdir, totalmem } from 'node:os';
import { inRepository } from '../repository.js';
import { fileSystemOf, syncUs } from '../disk.js';
import { versionOf } from './peers.js';
import { byGroup, rowMet, weakest, type Goal, type Group, type Part, type RowResult } from './row.js';

export function number(value: number, decimals = 2): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en');
  if (Math.abs(value) >= 100) return value.toFixed(0);
  return (Math.abs(value) < 0.5 / 10 ** decimals ? 0 : value).toFixed(decimals);
}

/** Median, lowest and highest; so close to a goal that two decimals might not tell on which side, three. */
export function spreadText(median: number, low: number, high: number, goal: number): string {
  const decimals = Math.abs(median - goal) < 0.02 * Math.abs(goal) && Math.abs(goal) < 10 ? 3 : 2;
  const [m, l, h] = [median, low, high].map((value) => number(value, decimals)) as [string, string, string];
  return l === h ? m : `${m} (${l} to ${h})`;
}

const WORDS = { atLeast: 'at least', atMost: 'at most', below: 'below' } as const;
export const goalText = (goal: Goal): string => `${WORDS[goal.kind]} ${number(goal.value)} ${goal.unit}`;
export const measuredText = ({ measured: { median, low, high }, goal }: Part): string =>
  spreadText(median, low, high, goal.value);

export interface Environment {
  readonly machine: string;
  readonly versions: string;
  readonly providers: string;
  readonly run: string;
  readonly command: string;
  readonly date: string;
}

const versionOfPackage = (path: string): string =>
  (JSON.parse(readFileSync(inRepository(path, 'package.json'), 'utf8')) as { readonly version: string }).version;

export function surroundings(
  run: { readonly goals: string; readonly keys: number; readonly rounds: number; readonly servers: number },
  command: string,
): Environment {
  const durable = run.goals === 'durable';
  const peers = durable ? (['redis-server', 'etcd'] as const) : (['redis-server', 'memcached'] as const);
  const programs = peers.map((program) => `${program} ${versionOf(program) ?? '(not installed)'}`);
  const packages = (durable ? ['ioredis', 'lmdb'] : ['ioredis', 'memcache-client', 'lmdb']).map(
    (name) => `${name} ${versionOfPackage(`node_modules/${name}`)}`,
  );
  return {
    machine: `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GiB, load average ${(loadavg()[0] ?? 0).toFixed(1)} at the start`,
    versions: [
      `Linux ${release()}`,
      `Node.js ${process.versions.node}`,
      `farkv ${versionOfPackage('.')}`,
      ...programs,
      ...packages,
      ...(durable ? [`${fileSystemOf(tmpdir())} (4 KiB written and synced in ${syncUs(tmpdir()).toFixed(0)} us)`] : []),
    ].join(', '),
    providers: 'shm and tcp on one host; each row names its own',
    run: `goals "${run.goals}", ${run.keys.toLocaleString('en')} keys of 16 B, ${run.servers} farkv server(s), medians of ${run.rounds} rounds in turn after one to warm up`,
    command,
    date: new Date().toISOString(),
  };
}

export function head({ machine, versions, providers, run, command }: Environment): string {
  return `${command}\n${machine}\n${versions}\nproviders: ${providers}\n${run}\n`;
}

/** A part in full; of a group in short, for its sides are told once: `met shm against Redis 2.34 (2.27 to 2.41)`. */
function partLines(group: Group | undefined, parts: readonly Part[]): string[] {
  if (group === undefined)
    return parts.map(
      (p) =>
        `${p.met ? '  met   ' : '  MISSED'}  ${p.title}\n          goal ${goalText(p.goal)}; measured ${measuredText(p)}: ${p.detail}`,
    );
  const sides = group.sides
    .map(({ name, rate }) => `${name} ${Math.round(rate.median).toLocaleString('en')}/s`)
    .join(', ');
  return [
    `  ${group.title}\n          ${sides}`,
    ...parts.map((p) => `${p.met ? '  met   ' : '  MISSED'}  ${p.title}: ${measuredText(p)}, goal ${goalText(p.goal)}`),
  ];
}

export function lines(row: RowResult): string {
  const parts = [...byGroup(row.parts)].flatMap(([group, members]) => partLines(group, members));
  const problem = row.problem === undefined ? [] : [`  NOT MEASURED  ${row.problem}`];
  const load = row.load === undefined ? '' : `, load average ${row.load.toFixed(1)}`;
  return `${row.name} (${row.seconds.toFixed(0)} s${load})\n${[...parts, ...problem].join('\n')}`;
}

/** An entry as a program reads it: of a row, or of one of its parts. */
export interface Entry {
  readonly name: string;
  readonly goal: string;
  readonly measured: number | null;
  /** The lowest and the highest round. */
  readonly spread: readonly [number, number] | null;
  readonly met: boolean;
  readonly detail: string;
}

/**
 * `parts`: where there are several, all of them; the row's own figure is then the one that is farthest behind its goal.
 */
export interface RowEntry extends Entry {
  readonly parts?: readonly Entry[];
  readonly seconds: number;
  readonly load?: number;
  /** On what, how and when it was measured: entries of several runs may be put together. */
  readonly run: string;
}

function entry(name: string, p: Part): Entry {
  return {
    name,
    goal: goalText(p.goal),
    measured: p.measured.median,
    spread: [p.measured.low, p.measured.high],
    met: p.met,
    detail: p.detail,
  };
}

export function rowEntries(rows: readonly RowResult[], { machine, versions, run, date }: Environment): RowEntry[] {
  const where = `${machine}; ${versions}; ${run}; ${date}`;
  return rows.map((row) => {
    const first = weakest(row);
    const about = {
      ...(row.load === undefined ? {} : { load: row.load }),
      seconds: Math.round(row.seconds),
      run: where,
    };
    if (first === undefined)
      return {
        name: row.name,
        goal: row.work,
        measured: null,
        spread: null,
        met: false,
        detail: row.problem ?? '',
        ...about,
      };
    const parts = row.parts.length > 1 ? { parts: row.parts.map((p) => entry(p.title, p)) } : {};
    return { ...entry(row.name, first), met: rowMet(row), ...about, ...parts };
  });
}

/** One entry for each row. */
export const toJson = (rows: readonly RowResult[], where: Environment): string =>
  `${JSON.stringify(rowEntries(rows, where), undefined, 2)}\n`;
