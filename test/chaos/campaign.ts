/**
 * Many runs with copies, one after the other, each arranged otherwise, until so many servers were killed, or so often all
 * of them at once. What came of each is kept in a file for each commit and level, so that a campaign goes on where it was stopped. Not for: the command line
 * (campaign-main.ts), a run (run.ts).
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { spreadOf, type Outages, type Spread } from './outages.js';
import type { Report, RunOptions } from './run.js';

/** What is kept of a run. */
export type Round = Pick<
  Report,
  | 'kills'
  | 'allEnded'
  | 'underLoad'
  | 'operations'
  | 'indeterminate'
  | 'indeterminateLate'
  | 'permittedLosses'
  | 'overtaken'
  | 'faults'
  | 'network'
> & {
  readonly seed: number;
  readonly replay: string;
  /** Losses, old values and all else that no history may have, and servers or copies that did not come back. */
  readonly failures: readonly string[];
  readonly outages: Outages;
};

export interface Totals {
  readonly rounds: number;
  readonly kills: number;
  /** How often no server was left, and how often that was under load. */
  readonly allEnded: number;
  readonly underLoad: number;
  readonly operations: number;
  readonly indeterminate: number;
  readonly indeterminateLate: number;
  /** Shards that lost all copies at once, as the run meant them to, or were overtaken. */
  readonly permittedLosses: number;
  readonly overtaken: number;
  readonly failures: number;
  /** Kind of fault -> how often it was made. */
  readonly faults: Readonly<Record<string, number>>;
  /** Rounds in which no host could be cut off: with TLS, or without root. */
  readonly withoutCuts: number;
  readonly unanswered: Spread;
  readonly paused: Spread;
  readonly before: Spread;
}

export type Arrangement = Pick<RunOptions, 'servers' | 'transport' | 'tls' | 'only'> & {
  readonly copies: NonNullable<RunOptions['copies']>;
};

const two = { replicas: 2, minInSync: 1 };
/** They take turns. */
export const ARRANGEMENTS: readonly Arrangement[] = [
  { servers: 3, transport: 'tcp', tls: false, copies: two },
  { servers: 5, transport: 'shm', tls: false, copies: two },
  { servers: 3, transport: 'tcp', tls: true, copies: two },
  { servers: 5, transport: 'tcp', tls: false, copies: { replicas: 3, minInSync: 2 } },
  { servers: 3, transport: 'shm', tls: false, copies: two },
];

/** Every other round of durable values: nothing else holds up the next kill of all servers. */
const OF_ALL = ['kill-all', 'kill-client'] as const;

/** `$XDG_CACHE_HOME/farkv/campaign`, else under `~/.cache`. */
export function campaignDirectory(env: NodeJS.ProcessEnv = process.env): string {
  const cache = env.XDG_CACHE_HOME;
  return join(cache === undefined || cache === '' ? join(homedir(), '.cache') : cache, 'farkv', 'campaign');
}

/** What is kept of a report. */
export function roundOf(report: Report, seed: number, replay: string): Round {
  const { kills, allEnded, underLoad, operations, indeterminate, indeterminateLate, faults, network } = report;
  const { permittedLosses, overtaken, failures, outages = { unanswered: [], paused: [], before: [] } } = report;
  const counts = { kills, allEnded, underLoad, operations, indeterminate, indeterminateLate };
  return { seed, replay, ...counts, permittedLosses, overtaken, faults, network, failures, outages };
}

/** The rounds of one commit, at one level. */
export class Campaign {
  readonly #file: string;
  readonly #rounds: Round[];
  readonly #durable: boolean;
  #seed: number;

  constructor(directory: string, commit: string, level: 'replicated' | 'durable' = 'replicated') {
    mkdirSync(directory, { recursive: true });
    this.#durable = level === 'durable';
    this.#file = join(directory, `${commit}${this.#durable ? '-durable' : ''}.json`);
    this.#rounds = readRounds(this.#file);
    this.#seed = Math.max(0, ...this.#rounds.map(({ seed }) => seed));
  }

  /** Of a round that begins: other faults and another arrangement than the one begun before. */
  begin(): { readonly seed: number; readonly arrangement: Arrangement } {
    const arrangement = ARRANGEMENTS[this.#seed % ARRANGEMENTS.length]!;
    const seed = ++this.#seed;
    if (!this.#durable) return { seed, arrangement };
    const copies = { ...arrangement.copies, durable: true };
    return { seed, arrangement: { ...arrangement, copies, only: seed % 2 === 0 ? OF_ALL : undefined } };
  }

  /** What a campaign counts. */
  get kills(): number {
    return this.#durable ? this.totals.underLoad : this.totals.kills;
  }

  get totals(): Totals {
    const sum = (of: (round: Round) => number): number => this.#rounds.reduce((all, round) => all + of(round), 0);
    const spread = (of: keyof Outages): Spread => spreadOf(this.#rounds.flatMap(({ outages }) => outages[of]));
    return {
      rounds: this.#rounds.length,
      kills: sum((r) => r.kills),
      allEnded: sum((r) => r.allEnded),
      underLoad: sum((r) => r.underLoad),
      operations: sum((r) => r.operations),
      indeterminate: sum((r) => r.indeterminate),
      indeterminateLate: sum((r) => r.indeterminateLate),
      permittedLosses: sum((r) => r.permittedLosses),
      overtaken: sum((r) => r.overtaken),
      failures: sum((r) => r.failures.length),
      faults: added(this.#rounds.map(({ faults }) => faults)),
      withoutCuts: sum((r) => Number(!r.network)),
      unanswered: spread('unanswered'),
      paused: spread('paused'),
      before: spread('before'),
    };
  }

  /** Whoever is stopped while it writes finds the rounds before this one. */
  add(round: Round): void {
    this.#rounds.push(round);
    writeFileSync(`${this.#file}.new`, `${JSON.stringify(this.#rounds, undefined, 1)}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}

function added(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const kinds = [...new Set(counts.flatMap((one) => Object.keys(one)))].sort();
  return Object.fromEntries(kinds.map((kind) => [kind, counts.reduce((sum, one) => sum + (one[kind] ?? 0), 0)]));
}

function readRounds(file: string): Round[] {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Round[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
