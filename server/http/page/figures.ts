/**
 * The figures that the charts draw, of one look: the page computes them of each view, and the server keeps an hour of
 * them for pages that are opened later (history.ts). So this file runs in both.
 */
import type { Rates, ServerView, View } from '../view.js';

/** The charts by the ids of their boxes, each with the names of its lines. A sample has their figures in this order. */
export const CHARTS = {
  operations: ['GETs of clients', 'two-sided get', 'put', 'other changes', 'scan', 'tcp READ'],
  reads: ['READs per GET'],
  latency: ['put p50', 'put p99', 'get p99', 'sync p99'],
  memory: ['used', 'registered'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** Milliseconds since 1970, then a figure for each line; null: there was nothing of which it could be. */
export type Sample = readonly [atMs: number, ...figures: (number | null)[]];

const MIB = 1 << 20;
/** A chart shows no more, and an hour of samples is sent as text. */
const DIGITS = 4;

/** All that is not read. */
export function changes({ get, scan, read, ...rates }: Rates): number {
  return Object.values(rates).reduce((n, rate) => n + rate, 0);
}

export function sampleOf({ atMs, gets, rates, servers }: Pick<View, 'atMs' | 'gets' | 'rates' | 'servers'>): Sample {
  const { get, put, scan, read } = rates;
  const worst = (of: (server: ServerView) => number): number => Math.max(0, ...servers.map(of));
  const mebibytes = (of: (server: ServerView) => number): number => servers.reduce((n, s) => n + of(s), 0) / MIB;
  const figures: { readonly [Chart in keyof typeof CHARTS]: readonly (number | null)[] } = {
    operations: [gets.perSecond, get, put, changes(rates) - put, scan, read],
    reads: [gets.perSecond === 0 ? null : gets.readsPerGet],
    latency: [worst((s) => s.putUsP50), worst((s) => s.putUsP99), worst((s) => s.getUsP99), worst((s) => s.syncUsP99)],
    memory: [mebibytes((s) => s.usedBytes), mebibytes((s) => s.memoryBytes)],
  };
  const { operations, reads, latency, memory } = figures;
  return [atMs, ...[operations, reads, latency, memory].flat().map((n) => n && Number(n.toPrecision(DIGITS)))];
}
