/** What the embedding thread and the node's thread say to each other. Plain values: they cross by structured clone. */
import type { ErrorCode } from '../core/errors.js';
import type { LogLevel, ServerSettings } from './config/settings.js';
import type { LogFields } from './log.js';
import type { ReadyInfo } from './node.js';
import type { ClusterStatus } from './status.js';

/** workerData */
export interface Start {
  readonly settings: ServerSettings;
}

export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
}

export type ToNode = { readonly t: 'status'; readonly id: number } | { readonly t: 'stop' };

export type FromNode =
  | { readonly t: 'log'; readonly level: LogLevel; readonly text: string; readonly fields?: LogFields | undefined }
  | { readonly t: 'ready'; readonly info: ReadyInfo }
  /** It could not start, or cannot go on; everything is undone. */
  | { readonly t: 'failed'; readonly failure: Failure }
  | {
      readonly t: 'status';
      readonly id: number;
      readonly status: ClusterStatus | undefined;
      readonly failure: Failure | undefined;
    }
  | { readonly t: 'stopped' };
