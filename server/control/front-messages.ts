/**
 * What the thread of Raft and the thread of clients and operators send each other. Plain values: they cross by
 * structured clone. Bounds: one change of the state at a time (state-feed.ts), CALLS_ALL calls and one status
 * (call-gate.ts), log lines as RateLimitedLog lets through, figures four times per second.
 */
import type { Failure } from '../thread-messages.js';
import type { AccessSettings, LogLevel, TlsFiles } from '../config/settings.js';
import type { HostPort } from '../config/units.js';
import type { LogFields } from '../log.js';
import type { Caller } from './auth.js';
import type { StateChange } from './state-feed.js';

/** workerData */
export interface FrontStart {
  readonly serverId: string;
  readonly listen: readonly HostPort[];
  /** For browsers and Prometheus; empty: nowhere. */
  readonly httpListen: readonly HostPort[];
  readonly tls: TlsFiles | undefined;
  readonly access: AccessSettings;
  readonly maxConnections: number;
  readonly handshakeMs: number;
  readonly logLevel: LogLevel;
}

/** How many are connected. */
export interface FrontFigures {
  readonly connections: number;
  readonly clients: number;
}

export type ToFront =
  /** `incarnation`: of this start, as the metadata names it. */
  | { readonly t: 'open'; readonly incarnation: string }
  | { readonly t: 'state'; readonly change: StateChange }
  | { readonly t: 'answer'; readonly id: number; readonly result?: unknown; readonly failure?: Failure }
  /** For the page. */
  | { readonly t: 'happened'; readonly text: string; readonly atMs: number }
  | { readonly t: 'ask' }
  | { readonly t: 'stop' };

export type FromFront =
  | { readonly t: 'bound'; readonly bound: readonly HostPort[]; readonly http: readonly HostPort[] }
  | { readonly t: 'failed'; readonly failure: Failure }
  /** To `ask`: the thread lives. */
  | { readonly t: 'here' }
  /** The state was applied: the next change may be sent. */
  | { readonly t: 'taken' }
  | {
      readonly t: 'call';
      readonly id: number;
      readonly caller: Caller;
      readonly method: string;
      readonly args: unknown;
      readonly figures: FrontFigures;
    }
  | { readonly t: 'figures'; readonly figures: FrontFigures }
  | { readonly t: 'log'; readonly level: LogLevel; readonly text: string; readonly fields?: LogFields | undefined };
