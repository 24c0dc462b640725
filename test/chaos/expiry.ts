/**
 * Keys whose values expire. Linearizability is promised "expiry aside": near the expiry two readers may differ by how
 * well they know the owner's clock. So such keys are not searched for an order; each read is compared with the writes
 * that were answered:
 *
 *   - a value that is read was written, by a write that is not known to have had no effect;
 *   - it was not replaced or deleted by an answered change that lies wholly between its write and the read;
 *   - it is not read later than its expiry plus LATE_NS. The owner counts from a moment between the write's call and
 *     its end;
 *   - a key is not absent while its value must be there: after the write's end, earlier than its call + ttl - EARLY_NS,
 *     with no other change and no permitted loss that can lie between the write and the read.
 */
import { isOpen, written, type Loss, type Operation } from './operation.js';

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

export interface ExpiryViolation {
  readonly operation: Operation;
  readonly why: string;
}

/** `losses` are those of the key's shard. */
export function checkExpiry(operations: readonly Operation[], losses: readonly Loss[]): ExpiryViolation[] {
  const violations: ExpiryViolation[] = [];
  const changes = operations
    .filter((o) => o.kind !== 'get' && o.kind !== 'loss')
    .filter((o) => o.outcome !== 'no-effect' && !lost(o));
  const writers = new Map<string, Operation>();
  for (const o of operations) {
    const value = written(o);
    if (value !== undefined) writers.set(value, o);
  }
  for (const o of operations) {
    if (o.kind !== 'get') continue;
    const why = o.value === undefined ? early(o, changes, losses) : whyNot(o.value, o, writers, changes);
    if (why !== undefined) violations.push({ operation: o, why });
  }
  return violations;
}

function whyNot(
  value: string,
  read: Operation,
  writers: ReadonlyMap<string, Operation>,
  changes: readonly Operation[],
): string | undefined {
  const writer = writers.get(value);
  if (writer === undefined) return `${value} was read, and never written`;
  if (!changes.includes(writer)) return `${value} was read, and its write had no effect`;
  if (writer.call > read.end) return `${value} was read before it was written`;
  // When an open write took effect nobody knows.
  if (isOpen(writer)) return undefined;
  const ttlNs = ttlOf(writer) * 1e6;
  if (read.call > writer.end + ttlNs + LATE_NS)
    return `${value} was read ${ms(read.call - writer.end - ttlNs)} ms after it had expired`;
  const next = changes.find((o) => !isOpen(o) && o.call > writer.end && o.end < read.call && !missed(o));
  return next === undefined ? undefined : `${value} was read after ${written(next) ?? next.kind} had taken its place`;
}

/** Why the key cannot have been absent. */
function early(read: Operation, changes: readonly Operation[], losses: readonly Loss[]): string | undefined {
  for (const writer of changes) {
    const value = written(writer);
    if (
      value === undefined ||
      isOpen(writer) ||
      writer.end > read.call ||
      read.end > writer.call + ttlOf(writer) * 1e6 - EARLY_NS
    )
      continue;
    const between = (o: Operation): boolean => o !== writer && o.call <= read.end && o.end >= writer.call;
    if (changes.some(between) || losses.some(between)) continue;
    return `absent ${ms(writer.call + ttlOf(writer) * 1e6 - read.end)} ms before ${value} expires`;
  }
  return undefined;
}

const ttlOf = (o: Operation): number =>
  (o.kind === 'put' || o.kind === 'swap') && o.ttlMs !== undefined ? o.ttlMs : Infinity;
const lost = (o: Operation): boolean => o.kind === 'swap' && typeof o.outcome === 'object' && !o.outcome.swapped;
/** A delete that found nothing changed nothing. */
const missed = (o: Operation): boolean => o.kind === 'delete' && o.outcome === 'absent';
const ms = (ns: number): string => (ns / 1e6).toFixed(0);
