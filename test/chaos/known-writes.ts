/**
 * What a key's history says about its writes before anything is searched: which values were seen, by when, and under
 * which version. It finds at once what no order of the operations can explain: a value from nowhere, one of a write
 * that "had no effect", one value under two versions (the write was made twice), one version of two values.
 *
 * It also makes the search small. An open write whose value somebody saw did take effect, before the first who saw it
 * had his answer: it gets that end. What is left open was seen by nobody.
 */
import { isOpen, written, type Operation } from './operation.js';

export interface KnownWrites {
  /** The version under which a value was stored, where anybody was told. */
  readonly versionOf: ReadonlyMap<string, bigint>;
  /** Values that somebody read, or replaced by comparing with their version. */
  readonly seen: ReadonlySet<string>;
  /** The history without what had no effect and without answers that say nothing; seen open writes have an end. */
  readonly operations: readonly Operation[];
}

/** A text instead: why no order explains the history. */
export function knownWrites(history: readonly Operation[]): KnownWrites | string {
  const writers = new Map<string, Operation>();
  for (const o of history) {
    const value = written(o);
    if (value === undefined) continue;
    if (writers.has(value)) return `${value} is written by two operations: the history is not fit for checking`;
    writers.set(value, o);
  }

  const versionOf = new Map<string, bigint>();
  const valueOf = new Map<bigint, string>();
  function learn(value: string, version: bigint): string | undefined {
    if (version === 0n) return `${value} was stored under version 0, which stands for an absent key`;
    const known = versionOf.get(value);
    if (known !== undefined && known !== version)
      return `${value} was stored twice: under version ${known} and under ${version}`;
    const other = valueOf.get(version);
    if (other !== undefined && other !== value) return `version ${version} was given to ${other} and to ${value}`;
    versionOf.set(value, version);
    valueOf.set(version, value);
    return undefined;
  }

  const seenBy = new Map<string, number>();
  const saw = (value: string, end: number): void =>
    void seenBy.set(value, Math.min(end, seenBy.get(value) ?? Infinity));
  for (const o of history) {
    let wrong: string | undefined;
    if (o.kind === 'get' && o.value !== undefined) {
      const writer = writers.get(o.value);
      if (writer === undefined) return `${o.value} was read, and never written`;
      if ((writer.kind === 'put' || writer.kind === 'swap') && writer.outcome === 'no-effect')
        return `${o.value} was read, and its write ended with an error that promises that it had no effect`;
      if (writer.kind === 'swap' && typeof writer.outcome === 'object' && !writer.outcome.swapped)
        return `${o.value} was read, and its compare-and-swap was told that it lost`;
      saw(o.value, o.end);
      if (o.version !== undefined) wrong = learn(o.value, o.version);
    } else if (o.kind === 'swap' && o.value !== undefined && typeof o.outcome === 'object' && o.outcome.swapped) {
      wrong = learn(o.value, o.outcome.version);
    }
    if (wrong !== undefined) return wrong;
  }
  // Versions are known now: who compared with one and won saw its value, and who lost to one did.
  for (const o of history) {
    if (o.kind !== 'swap' || typeof o.outcome !== 'object') continue;
    const compared = valueOf.get(o.outcome.swapped ? o.expected : o.outcome.version);
    if (compared !== undefined) saw(compared, o.end);
  }

  const operations: Operation[] = [];
  for (const o of history) {
    if (o.kind !== 'get' && o.kind !== 'has' && o.kind !== 'loss' && o.outcome === 'no-effect') continue;
    const value = written(o);
    const end = value === undefined || !isOpen(o) ? undefined : seenBy.get(value);
    operations.push(end === undefined ? o : { ...o, end: Math.min(o.end, end) });
  }
  return { versionOf, seen: new Set(seenBy.keys()), operations };
}
