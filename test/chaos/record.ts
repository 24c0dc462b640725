/**
 * Histories on disk, one file for each start of a client, a line of JSON for each thing that happened. A change is written down before it is
 * asked for, and its answer after it came; between the two the client may be killed, and the change is open. Reads are written when they
 * were answered: one without an answer says nothing.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import type { Delete, Operation, Put, Swap, Unanswered } from './operation.js';

/** What comes with a change before it is asked. */
export type Asked =
  | { readonly kind: 'put'; readonly value: string }
  | { readonly kind: 'delete' }
  | { readonly kind: 'swap'; readonly expected: bigint; readonly value: string | undefined };

export type ChangeOutcome = Put['outcome'] | Delete['outcome'] | Swap['outcome'];

/** Texts for bigints. */
type Line =
  | { readonly t: 'key'; readonly key: string; readonly shard: number }
  | { readonly t: 'ask'; readonly id: number; readonly lane: number; readonly key: string; readonly call: number; readonly kind: Asked['kind']; readonly value?: string; readonly expected?: string }
  | { readonly t: 'told'; readonly id: number; readonly end: number; readonly outcome: Unanswered | 'stored' | 'deleted' | 'absent' | { readonly swapped: boolean; readonly version: string }; readonly code?: string }
  | { readonly t: 'read'; readonly lane: number; readonly key: string; readonly call: number; readonly end: number; readonly value?: string; readonly version?: string }
  | { readonly t: 'failed'; readonly code: string }
  | { readonly t: 'wrong'; readonly what: string };

/** Enough for a burst of reads; a change is written at once. */
const BUFFER = 32 << 10;

export class Recorder {
  readonly #fd: number;
  readonly #keys = new Set<string>();
  #text = '';
  #id = 0;

  constructor(path: string) {
    this.#fd = openSync(path, 'wx', 0o600);
  }

  key(key: string, shard: number): void {
    if (this.#keys.has(key)) return;
    this.#keys.add(key);
    this.#line({ t: 'key', key, shard });
  }

  /** When it returns the change is on record, should this process die now. */
  ask(lane: number, key: string, call: number, asked: Asked): number {
    const id = this.#id++;
    const value = asked.kind === 'delete' ? undefined : asked.value;
    const expected = asked.kind === 'swap' ? { expected: String(asked.expected) } : {};
    this.#line({ t: 'ask', id, lane, key, call, kind: asked.kind, ...(value === undefined ? {} : { value }), ...expected });
    this.flush();
    return id;
  }

  told(id: number, end: number, outcome: ChangeOutcome, code?: string): void {
    const text = typeof outcome === 'string' ? outcome : { swapped: outcome.swapped, version: String(outcome.version) };
    this.#line({ t: 'told', id, end, outcome: text, ...(code === undefined ? {} : { code }) });
  }

  read(lane: number, key: string, call: number, end: number, value: string | undefined, version: bigint | undefined): void {
    this.#line({ t: 'read', lane, key, call, end, ...(value === undefined ? {} : { value }), ...(version === undefined ? {} : { version: String(version) }) });
  }

  failed(code: string): void {
    this.#line({ t: 'failed', code });
  }

  /** What may never happen, whatever the faults. */
  wrong(what: string): void {
    this.#line({ t: 'wrong', what });
    this.flush();
  }

  flush(): void {
    if (this.#text !== '') writeSync(this.#fd, this.#text);
    this.#text = '';
  }

  close(): void {
    this.flush();
    closeSync(this.#fd);
  }

  #line(line: Line): void {
    this.#text += `${JSON.stringify(line)}\n`;
    if (this.#text.length > BUFFER) this.flush();
  }
}

export interface Recorded {
  readonly keys: Map<string, { readonly shard: number; readonly operations: Operation[] }>;
  /** `kind outcome` -> how many. */
  readonly counts: Map<string, number>;
  readonly wrong: string[];
}

export function emptyRecord(): Recorded {
  return { keys: new Map(), counts: new Map(), wrong: [] };
}

/** Adds one client's file; `by` names the client. A last line that was cut off by a kill is the answer of nothing. */
export function addFile(record: Recorded, path: string, by: string): void {
  const count = (what: string): void => void record.counts.set(what, (record.counts.get(what) ?? 0) + 1);
  const asked = new Map<number, Extract<Line, { t: 'ask' }>>();
  const operationsOf = (key: string): Operation[] => {
    const found = record.keys.get(key);
    if (found === undefined) throw new Error(`${path}: ${key} comes before its shard`);
    return found.operations;
  };
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
        operationsOf(ask.key).push(change(ask, `${by}.${ask.lane}`, line.end, outcome));
        count(`${ask.kind} ${typeof outcome !== 'string' ? (outcome.swapped ? 'swapped' : 'lost') : line.code === undefined ? outcome : `${outcome} ${line.code}`}`);
        break;
      }
      case 'read':
        operationsOf(line.key).push({
          kind: 'get', call: line.call, end: line.end, by: `${by}.${line.lane}`, value: line.value, version: line.version === undefined ? undefined : BigInt(line.version),
        });
        count(`get ${line.value === undefined ? 'absent' : 'value'}`);
        break;
      case 'failed':
        count(`get ${line.code}`);
        break;
      case 'wrong':
        record.wrong.push(`${by}: ${line.what}`);
    }
  }
  for (const ask of asked.values()) {
    operationsOf(ask.key).push(change(ask, `${by}.${ask.lane}`, Infinity, 'open'));
    count(`${ask.kind} open, client killed`);
  }
}

function parse(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
}

function change(ask: Extract<Line, { t: 'ask' }>, by: string, end: number, outcome: Extract<Line, { t: 'told' }>['outcome']): Operation {
  const interval = { call: ask.call, end: outcome === 'open' ? Infinity : end, by };
  if (ask.kind === 'put') return { kind: 'put', ...interval, value: ask.value ?? '', outcome: outcome as Put['outcome'] };
  if (ask.kind === 'delete') return { kind: 'delete', ...interval, outcome: outcome as Delete['outcome'] };
  const told = typeof outcome === 'string' ? (outcome as Unanswered) : { swapped: outcome.swapped, version: BigInt(outcome.version) };
  return { kind: 'swap', ...interval, expected: BigInt(ask.expected ?? '0'), value: ask.value, outcome: told };
}
