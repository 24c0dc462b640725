/**
 * Keys whose values expire. Linearizability is promised "expiry aside": near the expiry two readers may differ by how
 * well they know the owner's clock. So such keys are not searched for an order; each read is compared with the writes
 * that were answered:
 *
 *   - a value that is read was written, by a write that is not known to have had no effect;
 *   - it was not replaced or deleted by an answered change that lies wholly between its write and the read;
 *   - it is not read later than its expiry plus LATE_NS. The owner counts from a moment between the write's call and
 *     its end; a swap without a time to live leaves the expiry of the entry that it compared with;
 *   - a key is not absent while its value must be there: after the write's end, earlier than its expiry - EARLY_NS, with
 *     no other change and no permitted loss that can lie between the write and the read;
 *   - a key that is there without its value being told, and one that a delete found, has a value that could be read;
 *   - the expiry that is told is that of the value, or of one that could be read, but for TOLD_NS.
 *
 * An open write whose value somebody read took effect before that was answered.
 */
import { isOpen, written, type Expiry, type Loss, type Operation } from './operation.js';

/**
 * The owner's clock is read in each turn of its thread, the reader bounds it from above: late is only what waited
 * within a turn.
 */
const LATE_NS = 200e6;
/**
 * A reader bounds the owner's clock by that of its last lease, and how long that answer took is the bound's error:
 * under faults up to seconds.
 */
const EARLY_NS = 4e9;

/** The owner reads its clock between the call and the answer; then it is told from one machine's clock to another of it. */
const TOLD_NS = 200e6;

export interface ExpiryViolation {
  readonly operation: Operation;
  readonly why: string;
}

/** `losses` are those of the key's shard. */
export function checkExpiry(history: readonly Operation[], losses: readonly Loss[]): ExpiryViolation[] {
  const operations = withEnds(history);
  const { changes, possible } = possibleIn(operations);
  const why = (o: Operation): string | undefined => {
    if (o.kind === 'get')
      return o.value === undefined ? early(o, changes, losses, possible.ends) : possible.whyNot(o.value, o);
    return o.kind === 'has' || (o.kind === 'delete' && o.outcome === 'deleted') ? possible.whyNone(o) : undefined;
  };
  return operations.flatMap((operation) => {
    const what = why(operation);
    return what === undefined ? [] : [{ operation, why: what }];
  });
}

/** For a look that says that the key is there: why it cannot be. */
export function lookAt(history: readonly Operation[]): (look: Operation) => string | undefined {
  const { possible } = possibleIn(withEnds(history));
  return (look) => possible.whyNone(look);
}

function possibleIn(operations: readonly Operation[]): {
  readonly changes: readonly Operation[];
  readonly possible: Possible;
} {
  const changes = operations
    .filter((o) => o.kind !== 'get' && o.kind !== 'has' && o.kind !== 'loss')
    .filter((o) => o.outcome !== 'no-effect' && !lost(o));
  const writers = new Map<string, Operation>();
  for (const o of operations) {
    const value = written(o);
    if (value !== undefined) writers.set(value, o);
  }
  return { changes, possible: new Possible(writers, changes, new Ends(operations, writers)) };
}

/** Open writes that were seen have the end of the first look that saw them. */
function withEnds(history: readonly Operation[]): Operation[] {
  const seen = new Map<string, number>();
  for (const o of history)
    if (o.kind === 'get' && o.value !== undefined) seen.set(o.value, Math.min(o.end, seen.get(o.value) ?? Infinity));
  return history.map((o) => (isOpen(o) ? { ...o, end: seen.get(written(o) ?? '') ?? o.end } : o));
}

/** What may be read, and when. */
class Possible {
  readonly ends: Ends;
  readonly #writers: ReadonlyMap<string, Operation>;
  readonly #changes: ReadonlySet<Operation>;
  /** Those that put something in the place of what was there, and ended. */
  readonly #next: readonly Operation[];

  constructor(writers: ReadonlyMap<string, Operation>, changes: readonly Operation[], ends: Ends) {
    this.#writers = writers;
    this.#changes = new Set(changes);
    this.#next = changes.filter((o) => o.end < Infinity && !missed(o));
    this.ends = ends;
  }

  /** Why a look cannot have seen this value, or not with the expiry that it told. */
  whyNot(value: string, look: Operation): string | undefined {
    const writer = this.#writers.get(value);
    if (writer === undefined) return `${value} was read, and never written`;
    if (!this.#changes.has(writer)) return `${value} was read, and its write had no effect`;
    if (writer.call > look.end) return `${value} was read before it was written`;
    const { earliest, latest } = this.ends.of(writer);
    const expiry = toldBy(look);
    if (expiry !== undefined && expiry.from > latest + TOLD_NS)
      return `${value} was said to expire ${ms(expiry.from - latest)} ms too late`;
    if (expiry !== undefined && expiry.to < earliest - TOLD_NS)
      return `${value} was said to expire ${ms(earliest - expiry.to)} ms too early`;
    if (look.call > latest + LATE_NS) return `${value} was read ${ms(look.call - latest)} ms after it had expired`;
    const next = this.#next.find((o) => o.call > writer.end && o.end < look.call);
    return next === undefined ? undefined : `${value} was read after ${written(next) ?? next.kind} had taken its place`;
  }

  /** Why no value can have been there: told of the last that was written before. */
  whyNone(look: Operation): string | undefined {
    let [why, last] = ['present, and never written', -Infinity];
    for (const [value, { call }] of this.#writers) {
      const wrong = this.whyNot(value, look);
      if (wrong === undefined) return undefined;
      if (last >= 0 && (call < last || call > look.end)) continue;
      [why, last] = [`present, though no value can be: ${wrong}`, call];
    }
    return why;
  }
}

/** Why the key cannot have been absent. */
function early(
  read: Operation,
  changes: readonly Operation[],
  losses: readonly Loss[],
  ends: Ends,
): string | undefined {
  for (const writer of changes) {
    const value = written(writer);
    if (value === undefined || writer.end > read.call || read.end > ends.of(writer).earliest - EARLY_NS) continue;
    const between = (o: Operation): boolean => o !== writer && o.call <= read.end && o.end >= writer.call;
    if (changes.some(between) || losses.some(between)) continue;
    return `absent ${ms(ends.of(writer).earliest - read.end)} ms before ${value} expires`;
  }
  return undefined;
}

interface Span {
  readonly earliest: number;
  readonly latest: number;
}

/** When the entries end that were written. */
class Ends {
  readonly #spans = new Map<Operation, Span>();
  /** The write that a version is known to be of. */
  readonly #versions = new Map<bigint, Operation>();

  constructor(operations: readonly Operation[], writers: ReadonlyMap<string, Operation>) {
    for (const o of operations) {
      const writer = o.kind === 'get' && o.value !== undefined ? writers.get(o.value) : undefined;
      if (o.kind === 'get' && o.version !== undefined && writer !== undefined) this.#versions.set(o.version, writer);
      if (o.kind === 'swap' && typeof o.outcome === 'object' && o.outcome.swapped)
        this.#versions.set(o.outcome.version, o);
    }
  }

  of(writer: Operation): Span {
    const known = this.#spans.get(writer);
    if (known !== undefined) return known;
    const span = this.#spanOf(writer);
    this.#spans.set(writer, span);
    return span;
  }

  #spanOf(writer: Operation): Span {
    const ttlNs = (writer.kind === 'put' || writer.kind === 'swap' ? (writer.ttlMs ?? Infinity) : Infinity) * 1e6;
    if (writer.kind !== 'swap' || writer.ttlMs !== undefined)
      return { earliest: writer.call + ttlNs, latest: writer.end + ttlNs };
    const before = this.#versions.get(writer.expected);
    return before === undefined ? { earliest: -Infinity, latest: Infinity } : this.of(before);
  }
}

const lost = (o: Operation): boolean => o.kind === 'swap' && typeof o.outcome === 'object' && !o.outcome.swapped;
/** A delete that found nothing changed nothing. */
const missed = (o: Operation): boolean => o.kind === 'delete' && o.outcome === 'absent';
const toldBy = (o: Operation): Expiry | undefined => (o.kind === 'get' || o.kind === 'has' ? o.expiry : undefined);
const ms = (ns: number): string => (ns / 1e6).toFixed(0);
