/** What the clients' files (record.ts) say together: a history for each key, and what was counted. */
import { readFileSync } from 'node:fs';
import type { Delete, Operation, Put, Unanswered } from './operation.js';
import type { Line, Wrong } from './record.js';

export interface Scan {
  readonly by: string;
  readonly space: number;
  readonly call: number;
  readonly end: number;
  readonly keys: ReadonlySet<string>;
}

export interface Recorded {
  readonly keys: Map<string, { readonly shard: number; readonly operations: Operation[] }>;
  readonly scans: Scan[];
  /** `kind outcome` -> how many. */
  readonly counts: Map<string, number>;
  /** Call and form of its key -> how often it was answered. */
  readonly calls: Map<string, number>;
  readonly wrong: (Wrong & { readonly by: string })[];
  /** Second looks at values. */
  looks: number;
}

export function emptyRecord(): Recorded {
  return { keys: new Map(), scans: [], counts: new Map(), calls: new Map(), wrong: [], looks: 0 };
}

/** Adds one client's file; `client` names it. A last line that was cut off by a kill is the answer of nothing. */
export function addFile(record: Recorded, path: string, client: string): void {
  const add = (to: Map<string, number>, what: string, n = 1): void => void to.set(what, (to.get(what) ?? 0) + n);
  const asked = new Map<number, Extract<Line, { t: 'ask' }>>();
  const names = new Map<string, string>();
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
  let tally: Extract<Line, { t: 'tally' }> | undefined;
  for (const text of readFileSync(path, 'utf8').split('\n')) {
    const line = parse(text);
    switch (line?.t) {
      case undefined:
        break;
      case 'key':
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
          `${ask.kind} ${typeof outcome !== 'string' ? (outcome.swapped ? 'swapped' : 'lost') : line.code === undefined ? outcome : `${outcome} ${line.code}`}`,
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
        });
        add(record.counts, `get ${line.value === undefined ? 'absent' : 'value'}`);
        break;
      case 'failed':
        add(record.counts, `get ${line.code}`);
        break;
      case 'scan':
        record.scans.push({
          by: by(line),
          space: line.space,
          call: line.call,
          end: line.end,
          keys: new Set(line.keys),
        });
        add(record.counts, 'scan whole');
        break;
      case 'wrong':
        record.wrong.push({ by: by(line), what: line.what, key: line.key, call: line.call, end: line.end });
        break;
      case 'tally':
        tally = line;
    }
  }
  for (const ask of asked.values()) {
    operationsOf(ask.key).push(change(ask, by(ask), Infinity, 'open'));
    add(record.counts, `${ask.kind} open, client killed`);
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
