/**
 * Keys that grow by what their owner makes of the present entry: lists that are appended to, counters that are
 * incremented. Nobody puts or deletes them, so each answer says which of the asked changes it has:
 *
 *   list     pieces `id;`, each with the id of its append, and perhaps dots before the semicolon
 *   counter  a sum in which each client has DIGITS bits of its own, and adds one there
 *
 * What must hold of every answer (a read, the length of an append, the sum of an increment), whatever the faults:
 *   - what it has was asked for before the answer came, and had not been told to have no effect
 *   - nothing is in it twice: of a counter, no more than were asked for
 * and where the key's memory was not lost:
 *   - what was acknowledged before the answer was asked for is in it
 *   - what an earlier answer had is in it, in the same order
 *   - no two changes are told the same result
 * So an acknowledged change counts once, and one without an answer at most once.
 */
import type { Interval, Loss, Unanswered } from './operation.js';

export const DIGITS = 10n;
/** So many clients have digits of their own in 63 bits. */
export const COUNTED_CLIENTS = 6;
const DIGIT = (1n << DIGITS) - 1n;

export interface TailRead extends Interval {
  readonly kind: 'read';
  /** As it was read; '': absent. */
  readonly value: string;
}
/** A change; `id` names it in a list, `client` adds in a counter. */
export interface TailChange extends Interval {
  readonly kind: 'append' | 'increment';
  readonly id: string;
  readonly client: number;
  /** The length, or the sum, that it was told. */
  readonly outcome: { readonly result: string } | Unanswered;
}
/** Whether there was an entry. */
export interface TailTouch extends Interval {
  readonly kind: 'touch';
  readonly outcome: boolean | Unanswered;
}
export type TailOperation = TailRead | TailChange | TailTouch;

export interface TailViolation {
  readonly at: Interval;
  readonly why: string;
}

export const digitOf = (client: number): bigint => 1n << (DIGITS * BigInt(client));

/** The bytes of one append. */
export const makePiece = (id: string, dots: number): Buffer => Buffer.from(`${id}${'.'.repeat(dots)};`);

/** Ids and ends of the pieces of a list; a text: what is wrong with it. */
export function readPieces(value: string): readonly { readonly id: string; readonly end: number }[] | string {
  const pieces: { id: string; end: number }[] = [];
  let end = 0;
  for (const [piece, id] of value.matchAll(/([^;.]+)\.*;/gu)) {
    end += piece.length;
    pieces.push({ id: id ?? '', end });
  }
  return end === value.length ? pieces : `${value.length} bytes that are no pieces: ${value.slice(end, end + 60)}`;
}

/** `losses`: of the key's shard. */
export function checkTail(operations: readonly TailOperation[], losses: readonly Loss[]): TailViolation[] {
  const changes = operations.filter((o): o is TailChange => o.kind === 'append' || o.kind === 'increment');
  const whole = losses.length === 0;
  const violations = changes.some(({ kind }) => kind === 'increment')
    ? checkCounter(operations, changes, whole)
    : checkList(operations, changes, whole);
  if (whole)
    for (const o of operations)
      if (o.kind === 'touch' && typeof o.outcome === 'boolean') {
        const { outcome } = o;
        if (outcome && !changes.some((c) => mayBeIn(c, o)))
          violations.push({ at: o, why: 'it was touched, and nobody had made it' });
        if (!outcome && changes.some((c) => mustBeIn(c, o)))
          violations.push({ at: o, why: 'touch found nothing, and it was there' });
      }
  return violations;
}

const acknowledged = ({ outcome }: TailChange): boolean => typeof outcome === 'object';
const mayBeIn = (c: TailChange, o: Interval): boolean => c.outcome !== 'no-effect' && c.call <= o.end;
const mustBeIn = (c: TailChange, o: Interval): boolean => acknowledged(c) && c.end < o.call;

/** In the order of their ends. */
const byEnd = <T extends Interval>(all: readonly T[]): T[] => [...all].sort((a, b) => a.end - b.end);

function checkList(
  operations: readonly TailOperation[],
  changes: readonly TailChange[],
  whole: boolean,
): TailViolation[] {
  const violations: TailViolation[] = [];
  const asked = new Map(changes.map((c) => [c.id, c]));
  const reads = byEnd(operations.filter((o) => o.kind === 'read'));
  let longest = '';
  for (const { value } of reads) if (value.length > longest.length) longest = value;
  /** Of the earlier reads the longest, by when it was known. */
  let known: TailRead | undefined;
  for (const [i, read] of reads.entries()) {
    const say = (why: string): void => void violations.push({ at: read, why });
    const pieces = readPieces(read.value);
    if (typeof pieces === 'string') {
      say(pieces);
      continue;
    }
    const ids = new Set(pieces.map(({ id }) => id));
    if (ids.size < pieces.length) say(`a piece is in it twice: ${twice(pieces.map(({ id }) => id))}`);
    for (const { id } of pieces) {
      const change = asked.get(id);
      if (change === undefined) say(`${id} is in it, and nobody appended it`);
      else if (!mayBeIn(change, read))
        say(
          `${id} is in it, ${change.outcome === 'no-effect' ? 'and was told to have no effect' : 'before it was asked for'}`,
        );
    }
    if (!whole) continue;
    if (!longest.startsWith(read.value)) say('it does not begin as what was read at another time');
    const missing = changes.find((c) => mustBeIn(c, read) && !ids.has(c.id));
    if (missing !== undefined) say(`${missing.id} was acknowledged before, and is not in it`);
    known = latest(known, reads.slice(0, i), read);
    if (known !== undefined && known.value.length > read.value.length) say('it is shorter than it was before');
  }
  if (whole) violations.push(...checkLengths(changes, longest));
  return violations;
}

/** The longest of the reads that ended before this one began. */
function latest(known: TailRead | undefined, earlier: readonly TailRead[], read: TailRead): TailRead | undefined {
  let found = known !== undefined && known.end < read.call ? known : undefined;
  for (const one of earlier) if (one.end < read.call && one.value.length > (found?.value.length ?? -1)) found = one;
  return found;
}

/** Each append was told where its piece ends, and pieces lie in the order of time. */
function checkLengths(changes: readonly TailChange[], longest: string): TailViolation[] {
  const violations: TailViolation[] = [];
  const pieces = readPieces(longest);
  if (typeof pieces === 'string') return violations;
  const ends = new Map(pieces.map(({ id, end }) => [id, end]));
  const told = new Map<string, TailChange>();
  for (const change of changes) {
    if (typeof change.outcome !== 'object') continue;
    const { result } = change.outcome;
    const other = told.get(result);
    if (other !== undefined) violations.push({ at: change, why: `${other.id} was told the same length, ${result}` });
    told.set(result, change);
    const end = ends.get(change.id);
    if (end !== undefined && result !== String(end))
      violations.push({ at: change, why: `${change.id} was told the length ${result}, and ends at ${end}` });
  }
  const asked = new Map(changes.map((c) => [c.id, c]));
  let latestCall = -Infinity;
  for (const { id } of pieces) {
    const change = asked.get(id);
    if (change === undefined) continue;
    if (acknowledged(change) && change.end < latestCall)
      violations.push({ at: change, why: `${id} lies behind what was asked for after it had ended` });
    latestCall = Math.max(latestCall, change.call);
  }
  return violations;
}

function checkCounter(
  operations: readonly TailOperation[],
  changes: readonly TailChange[],
  whole: boolean,
): TailViolation[] {
  const violations: TailViolation[] = [];
  const answers: (Interval & { readonly sum: bigint; readonly own: TailChange | undefined })[] = [];
  for (const o of operations) {
    if (o.kind === 'read') answers.push({ ...o, sum: BigInt(o.value === '' ? '0' : o.value), own: undefined });
    else if (o.kind === 'increment' && typeof o.outcome === 'object')
      answers.push({ ...o, sum: BigInt(o.outcome.result), own: o });
  }
  const told = new Map<bigint, Interval>();
  for (const answer of answers) {
    const say = (why: string): void => void violations.push({ at: answer, why });
    for (let client = 0; client < COUNTED_CLIENTS; client++) {
      const counted = digit(answer.sum, client);
      const of = changes.filter((c) => c.client === client);
      const most = of.filter((c) => mayBeIn(c, answer)).length;
      const least = of.filter((c) => c === answer.own || (whole && mustBeIn(c, answer))).length;
      if (counted > most) say(`${counted} increments of client ${client} are in it, and ${most} were asked for`);
      if (counted < least) say(`${counted} increments of client ${client} are in it, and ${least} must be`);
    }
    if (answer.own === undefined || !whole) continue;
    if (told.has(answer.sum)) say(`two increments were told the sum ${answer.sum}`);
    told.set(answer.sum, answer);
  }
  if (!whole) return violations;
  /** What the answers that have ended by then have of each client. */
  const floor = Array.from({ length: COUNTED_CLIENTS }, () => 0);
  const ended = byEnd(answers);
  let at = 0;
  for (const answer of [...answers].sort((a, b) => a.call - b.call)) {
    for (; at < ended.length && ended[at]!.end < answer.call; at++)
      for (let client = 0; client < COUNTED_CLIENTS; client++)
        floor[client] = Math.max(floor[client]!, digit(ended[at]!.sum, client));
    const lower = floor.findIndex((n, client) => digit(answer.sum, client) < n);
    if (lower >= 0) violations.push({ at: answer, why: `it has less of client ${lower} than an earlier answer` });
  }
  return violations;
}

const digit = (sum: bigint, client: number): number => Number((sum >> (DIGITS * BigInt(client))) & DIGIT);

const twice = (ids: readonly string[]): string => ids.find((id, i) => ids.indexOf(id) !== i) ?? '';
