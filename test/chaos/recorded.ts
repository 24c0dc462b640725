/** What the clients' files (record.ts) say together: a history for each key, and what was counted. */
import { readFileSync } from 'node:fs';
import type { Delete, Operation, Put, Unanswered } from './operation.js';
import type { Line, TailOutcome, Wrong } from './record.js';
import type { TailOperation } from './tails.js';

/** What was asked of a namespace. */
export interface OfSpace {
  readonly by: string;
  readonly space: number;
  /** Of keys that begin so, as latin1; undefined: of all. */
  readonly prefix?: string | undefined;
  readonly call: number;
  readonly end: number;
}

export interface Scan extends OfSpace {
  readonly keys: ReadonlySet<string>;
}

export interface Count extends OfSpace {
  readonly count: number;
}

/** Deletes of one call, of which so many found something. */
export interface Deletes {
  readonly by: string;
  readonly call: number;
  readonly end: number;
  readonly keys: readonly string[];
  readonly found: number;
}

export interface Recorded {
  readonly keys: Map<string, { readonly shard: number; readonly operations: Operation[] }>;
  /** Of counters and lists. */
  readonly tails: Map<string, { readonly shard: number; readonly operations: TailOperation[] }>;
  readonly scans: Scan[];
  readonly spaceCounts: Count[];
  readonly deletes: Deletes[];
  /** `kind outcome` -> how many. */
  readonly counts: Map<string, number>;
  /** Call and form of its key -> how often it was answered. */
  readonly calls: Map<string, number>;
  readonly wrong: (Wrong & { readonly by: string })[];
  /** Second looks at values. */
  looks: number;
}

export function emptyRecord(): Recorded {
  return {
    keys: new Map(),
    tails: new Map(),
    scans: [],
    spaceCounts: [],
    deletes: [],
    counts: new Map(),
    calls: new Map(),
    wrong: [],
    looks: 0,
  };
}

/** What ends so is said of changes that had more time than a failover takes. */
export const LATE = ' after a second';
const LATE_NS = 1e9;

const textOf = (code: string, waitedNs: number): string =>
  code === 'ERR_INDETERMINATE' && waitedNs >= LATE_NS ? code + LATE : code;

/** Adds one client's file; `client` names it. A last line that was cut off by a kill is the answer of nothing. */
export function addFile(record: Recorded, path: string, client: string): void {
  const add = (to: Map<string, number>, what: string, n = 1): void => void to.set(what, (to.get(what) ?? 0) + n);
  const asked = new Map<number, Extract<Line, { t: 'ask' }>>();
  const askedOfTails = new Map<number, Extract<Line, { t: 'tail-ask' }>>();
  const names = new Map<string, string>();
  const own = new Set<string>();
  // One text for all operations of a lane and call: there are millions of operations.
  const by = ({ lane, via }: { readonly lane: number; readonly via: string }): string => {
    const short = `${lane} ${via}`;
    const known = names.get(short) ?? `${client}.${short}`;
    names.set(short, known);
    return known;
  };
  const operationsOf = (key: string): Operation[] => {
    const found = record.keys.get(key);
    if (found === undefined) throw new Error(`${path}: ${key} comes before its shard`);
    return found.operations;
  };
  const tailOf = (key: string): TailOperation[] => {
    const { shard } = record.keys.get(key) ?? {};
    if (shard === undefined) throw new Error(`${path}: ${key} comes before its shard`);
    const found = record.tails.get(key) ?? { shard, operations: [] };
    record.tails.set(key, found);
    return found.operations;
  };
  let tally: Extract<Line, { t: 'tally' }> | undefined;
  for (const text of readFileSync(path, 'utf8').split('\n')) {
    const line = parse(text);
    switch (line?.t) {
      case undefined:
        break;
      case 'key':
        own.add(line.key);
        if (!record.keys.has(line.key)) record.keys.set(line.key, { shard: line.shard, operations: [] });
        break;
      case 'ask':
        asked.set(line.id, line);
        break;
      case 'told': {
        const ask = asked.get(line.id);
        if (ask === undefined) throw new Error(`${path}: an answer to nothing`);
        asked.delete(line.id);
        const { outcome } = line;
        operationsOf(ask.key).push(change(ask, by(ask), line.end, outcome));
        add(
          record.counts,
          `${ask.kind} ${typeof outcome !== 'string' ? (outcome.swapped ? 'swapped' : 'lost') : line.code === undefined ? outcome : `${outcome} ${textOf(line.code, line.end - ask.call)}`}`,
        );
        break;
      }
      case 'read':
        operationsOf(line.key).push({
          kind: 'get',
          call: line.call,
          end: line.end,
          by: by(line),
          value: line.value,
          version: line.version === undefined ? undefined : BigInt(line.version),
          expiry: line.expiry,
        });
        add(record.counts, `get ${line.value === undefined ? 'absent' : 'value'}`);
        break;
      case 'has':
        operationsOf(line.key).push({ kind: 'has', call: line.call, end: line.end, by: by(line), expiry: line.expiry });
        add(record.counts, 'has present');
        break;
      case 'tail-ask':
        askedOfTails.set(line.id, line);
        break;
      case 'tail-told': {
        const ask = askedOfTails.get(line.id);
        if (ask === undefined) throw new Error(`${path}: an answer to nothing`);
        askedOfTails.delete(line.id);
        tailOf(ask.key).push(changeOfTail(ask, by(ask), line.end, line.outcome));
        add(
          record.counts,
          `${ask.asked.kind} ${line.code === undefined ? 'made' : textOf(line.code, line.end - ask.call)}`,
        );
        break;
      }
      case 'tail-read':
        tailOf(line.key).push({ kind: 'read', call: line.call, end: line.end, by: by(line), value: line.value });
        add(record.counts, 'get tail');
        break;
      case 'failed':
        add(record.counts, `get ${line.code}`);
        break;
      case 'scan':
        record.scans.push({
          by: by(line),
          space: line.space,
          prefix: line.prefix,
          call: line.call,
          end: line.end,
          keys: new Set(line.keys),
        });
        add(record.counts, line.prefix === undefined ? 'scan whole' : 'scan of a prefix');
        break;
      case 'count':
        record.spaceCounts.push({
          by: by(line),
          space: line.space,
          prefix: line.prefix,
          call: line.call,
          end: line.end,
          count: line.count,
        });
        add(record.counts, line.prefix === undefined ? 'count' : 'count of a prefix');
        break;
      case 'deleted-some':
        record.deletes.push({ by: by(line), call: line.call, end: line.end, keys: line.keys, found: line.found });
        add(record.counts, 'delete some of many');
        break;
      case 'wrong':
        record.wrong.push({ by: by(line), what: line.what, key: line.key, call: line.call, end: line.end });
        break;
      case 'tally':
        tally = line;
    }
  }
  for (const ask of asked.values()) {
    // A batch is sent when all of it is on record, with its keys: here the client was killed before.
    if (!own.has(ask.key)) continue;
    operationsOf(ask.key).push(change(ask, by(ask), Infinity, 'open'));
    add(record.counts, `${ask.kind} open, client killed`);
  }
  for (const ask of askedOfTails.values()) {
    tailOf(ask.key).push(changeOfTail(ask, by(ask), Infinity, 'open'));
    add(record.counts, `${ask.asked.kind} open, client killed`);
  }
  for (const [call, n] of Object.entries(tally?.calls ?? {})) add(record.calls, call, n);
  record.looks += tally?.looks ?? 0;
}

function parse(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
}

function changeOfTail(
  { call, asked }: Extract<Line, { t: 'tail-ask' }>,
  by: string,
  end: number,
  outcome: TailOutcome,
): TailOperation {
  const interval = { call, end: outcome === 'open' ? Infinity : end, by };
  if (asked.kind === 'touch')
    return { kind: 'touch', ...interval, outcome: typeof outcome === 'object' ? 'open' : outcome };
  const { kind, id, client } = asked;
  return { kind, ...interval, id, client, outcome: typeof outcome === 'boolean' ? 'open' : outcome };
}

function change(
  ask: Extract<Line, { t: 'ask' }>,
  by: string,
  end: number,
  outcome: Extract<Line, { t: 'told' }>['outcome'],
): Operation {
  const interval = { call: ask.call, end: outcome === 'open' ? Infinity : end, by };
  const { ttlMs } = ask;
  if (ask.kind === 'put')
    return { kind: 'put', ...interval, value: ask.value ?? '', ttlMs, outcome: outcome as Put['outcome'] };
  if (ask.kind === 'delete') return { kind: 'delete', ...interval, outcome: outcome as Delete['outcome'] };
  const told =
    typeof outcome === 'string'
      ? (outcome as Unanswered)
      : { swapped: outcome.swapped, version: BigInt(outcome.version) };
  return { kind: 'swap', ...interval, expected: BigInt(ask.expected ?? '0'), value: ask.value, ttlMs, outcome: told };
}
