/** Arithmetic of sets of moments, each a list of spans of time in order, none of which touch. */
import type { Span } from './fault-log.js';

export function union(spans: readonly Span[]): Span[] {
  const all: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.fromNs - b.fromNs)) {
    const last = all.at(-1);
    if (last !== undefined && span.fromNs <= last.toNs)
      all[all.length - 1] = { fromNs: last.fromNs, toNs: Math.max(last.toNs, span.toNs) };
    else if (span.toNs > span.fromNs) all.push(span);
  }
  return all;
}

export function intersection(a: readonly Span[], b: readonly Span[]): Span[] {
  return union(
    a.flatMap((x) =>
      b
        .map((y) => ({ fromNs: Math.max(x.fromNs, y.fromNs), toNs: Math.min(x.toNs, y.toNs) }))
        .filter((s) => s.toNs > s.fromNs),
    ),
  );
}

export function complement(spans: readonly Span[]): Span[] {
  const gaps: Span[] = [];
  let at = -Infinity;
  for (const { fromNs, toNs } of union(spans)) {
    if (fromNs > at) gaps.push({ fromNs: at, toNs: fromNs });
    at = toNs;
  }
  if (at < Infinity) gaps.push({ fromNs: at, toNs: Infinity });
  return gaps;
}

/** Moments in which at least `count` of the sets hold. */
export function atLeast(count: number, sets: readonly (readonly Span[])[]): Span[] {
  const edges = sets
    .flatMap((set) =>
      set.flatMap(({ fromNs, toNs }) => [
        { ns: fromNs, by: 1 },
        { ns: toNs, by: -1 },
      ]),
    )
    .sort((a, b) => a.ns - b.ns || a.by - b.by);
  const found: Span[] = [];
  let holding = 0;
  let since = Number.NaN;
  for (const { ns, by } of edges) {
    if (holding >= count && holding + by < count) found.push({ fromNs: since, toNs: ns });
    if (holding < count && holding + by >= count) since = ns;
    holding += by;
  }
  return union(found);
}
