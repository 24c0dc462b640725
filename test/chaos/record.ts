/**
 * Histories on disk, one file for each start of a client, a line of JSON for each thing that happened. A change is
 * written down before it is asked for, and its answer after it came; between the two the client may be killed, and the
 * change is open. Reads are written when they were answered: one without an answer says nothing. How they are read back
 * is in recorded.ts.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { Delete, Expiry, Put, Swap, Unanswered } from './operation.js';

/** What comes with a change before it is asked. */
export type Asked =
  | { readonly kind: 'put'; readonly value: string; readonly ttlMs?: number | undefined }
  | { readonly kind: 'delete' }
  | {
      readonly kind: 'swap';
      readonly expected: bigint;
      readonly value: string | undefined;
      readonly ttlMs?: number | undefined;
    };

/** What comes with a change of a counter or a list (tails.ts). `id` names it, `client` adds. */
export type AskedOfTail =
  { readonly kind: 'append' | 'increment'; readonly id: string; readonly client: number } | { readonly kind: 'touch' };
export type TailOutcome = Unanswered | boolean | { readonly result: string };

export type ChangeOutcome = Put['outcome'] | Delete['outcome'] | Swap['outcome'];

/** Who did it: the lane of the client, and the call of the SDK with the form of its key. */
export interface By {
  readonly lane: number;
  readonly via: string;
}

/** What may never happen, whatever the faults. `key`: of which key, where it is known. */
export interface Wrong {
  readonly what: string;
  readonly key?: string | undefined;
  readonly call: number;
  readonly end: number;
}

/** What was asked of a namespace, of all its keys or of those that begin so (as latin1). */
interface AskedOfSpace {
  readonly space: number;
  readonly prefix?: string;
  readonly call: number;
  readonly end: number;
}

/** A deleteMany that answered with a number between none of its keys and all. A key may be named twice. */
interface DeletedSome {
  readonly call: number;
  readonly end: number;
  readonly keys: readonly string[];
  readonly found: number;
}

/** Texts for bigints. */
export type Line =
  | { readonly t: 'key'; readonly key: string; readonly shard: number }
  | ({
      readonly t: 'ask';
      readonly id: number;
      readonly key: string;
      readonly call: number;
      readonly kind: Asked['kind'];
      readonly value?: string;
      readonly expected?: string;
      readonly ttlMs?: number;
    } & By)
  | {
      readonly t: 'told';
      readonly id: number;
      readonly end: number;
      readonly outcome:
        Unanswered | 'stored' | 'deleted' | 'absent' | 'gone' | { readonly swapped: boolean; readonly version: string };
      readonly code?: string;
    }
  | ({
      readonly t: 'read';
      readonly key: string;
      readonly call: number;
      readonly end: number;
      readonly value?: string;
      readonly version?: string;
      readonly expiry?: Expiry;
    } & By)
  /** There was such a key. */
  | ({
      readonly t: 'has';
      readonly key: string;
      readonly call: number;
      readonly end: number;
      readonly expiry?: Expiry;
    } & By)
  | ({
      readonly t: 'tail-ask';
      readonly id: number;
      readonly key: string;
      readonly call: number;
      readonly asked: AskedOfTail;
    } & By)
  | {
      readonly t: 'tail-told';
      readonly id: number;
      readonly end: number;
      readonly outcome: TailOutcome;
      readonly code?: string;
    }
  | ({
      readonly t: 'tail-read';
      readonly key: string;
      readonly call: number;
      readonly end: number;
      readonly value: string;
    } & By)
  | ({ readonly t: 'failed'; readonly code: string } & By)
  /** A scan of a whole namespace, or of all keys with a prefix, with the ids of all that came. */
  | ({ readonly t: 'scan'; readonly keys: readonly string[] } & AskedOfSpace & By)
  | ({ readonly t: 'count'; readonly count: number } & AskedOfSpace & By)
  | ({ readonly t: 'deleted-some' } & DeletedSome & By)
  | ({ readonly t: 'wrong' } & By & Wrong)
  /** How often each call was answered, by this client until now. */
  | { readonly t: 'tally'; readonly calls: Readonly<Record<string, number>>; readonly looks: number };

/** Enough for a burst of reads; a change is written at once. */
const BUFFER = 32 << 10;

export class Recorder {
  readonly #fd: number;
  readonly #keys = new Set<string>();
  readonly #calls: Record<string, number> = {};
  #text = '';
  #id = 0;

  constructor(path: string) {
    this.#fd = openSync(path, 'wx', 0o600);
  }

  key(key: string, shard: () => number): void {
    if (this.#keys.has(key)) return;
    this.#keys.add(key);
    this.#line({ t: 'key', key, shard: shard() });
  }

  /** After `flush` the change is on record, should this process die then. */
  ask({ lane, via }: By, key: string, call: number, asked: Asked): number {
    const id = this.#id++;
    const value = asked.kind === 'delete' ? undefined : asked.value;
    const ttlMs = asked.kind === 'delete' ? undefined : asked.ttlMs;
    const expected = asked.kind === 'swap' ? { expected: String(asked.expected) } : {};
    this.#line({
      t: 'ask',
      id,
      lane,
      via,
      key,
      call,
      kind: asked.kind,
      ...(value === undefined ? {} : { value }),
      ...expected,
      ...(ttlMs === undefined ? {} : { ttlMs }),
    });
    return id;
  }

  askTail({ lane, via }: By, key: string, call: number, asked: AskedOfTail): number {
    const id = this.#id++;
    this.#line({ t: 'tail-ask', id, lane, via, key, call, asked });
    return id;
  }

  toldTail(id: number, end: number, outcome: TailOutcome, code?: string): void {
    this.#line({ t: 'tail-told', id, end, outcome, ...(code === undefined ? {} : { code }) });
  }

  readTail({ lane, via }: By, key: string, call: number, end: number, value: string): void {
    this.#line({ t: 'tail-read', lane, via, key, call, end, value });
  }

  told(id: number, end: number, outcome: ChangeOutcome, code?: string): void {
    const text = typeof outcome === 'string' ? outcome : { swapped: outcome.swapped, version: String(outcome.version) };
    this.#line({ t: 'told', id, end, outcome: text, ...(code === undefined ? {} : { code }) });
  }

  read(
    { lane, via }: By,
    key: string,
    call: number,
    end: number,
    value: string | undefined,
    version: bigint | undefined,
    expiry?: Expiry,
  ): void {
    this.#line({
      t: 'read',
      lane,
      via,
      key,
      call,
      end,
      ...(value === undefined ? {} : { value }),
      ...(version === undefined ? {} : { version: String(version) }),
      ...(expiry === undefined ? {} : { expiry }),
    });
  }

  has({ lane, via }: By, key: string, call: number, end: number, expiry?: Expiry): void {
    this.#line({ t: 'has', lane, via, key, call, end, ...(expiry === undefined ? {} : { expiry }) });
  }

  failed({ lane, via }: By, code: string): void {
    this.#line({ t: 'failed', lane, via, code });
  }

  scan({ lane, via }: By, asked: AskedOfSpace, keys: readonly string[]): void {
    this.#line({ t: 'scan', lane, via, ...asked, keys });
  }

  counted({ lane, via }: By, asked: AskedOfSpace, count: number): void {
    this.#line({ t: 'count', lane, via, ...asked, count });
  }

  deletedSome({ lane, via }: By, some: DeletedSome): void {
    this.#line({ t: 'deleted-some', lane, via, ...some });
  }

  wrong({ lane, via }: By, { what, key, call, end }: Wrong): void {
    this.#line({ t: 'wrong', lane, via, what, call, end, ...(key === undefined ? {} : { key }) });
    this.flush();
  }

  /** A call was answered. */
  count(via: string): void {
    this.#calls[via] = (this.#calls[via] ?? 0) + 1;
  }

  /** Writes down what was counted until now; the last of a file counts. */
  tally(looks: number): void {
    this.#line({ t: 'tally', calls: this.#calls, looks });
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
