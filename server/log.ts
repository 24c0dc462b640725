/**
 * What a server says about itself: lines of text, some with fields for programs. Never given: tokens, rkeys, seeds,
 * tickets, keys or values of users.
 */
import { FarkvError } from '../core/errors.js';
import { visible, visibleJson } from '../core/visible-text.js';
import type { LogFormat, LogLevel } from './config/settings.js';
import type { LogEvent } from './log-events.js';

/** Of one line, for programs; `event` says what happened. docs/operations.md lists them. */
export type LogFields = Readonly<Record<string, string | number | boolean>> & { readonly event: LogEvent };
/** Lines of level debug may have no fields. */
export type LogSink = (level: LogLevel, text: string, fields?: LogFields) => void;

const order: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

export class Log {
  readonly #least: number;
  readonly #sink: LogSink;

  constructor(least: LogLevel, sink: LogSink) {
    this.#least = order.indexOf(least);
    this.#sink = sink;
  }

  // `message`, the text, is among what is written of the fields of these. Only lines for who looks for a fault in farkv
  // do without: a program knows each of the others by its event.
  debug(text: string, fields?: LogFields): void {
    this.#say('debug', text, fields);
  }
  info(text: string, fields: LogFields): void {
    this.#say('info', text, fields);
  }
  warn(text: string, fields: LogFields): void {
    this.#say('warn', text, fields);
  }
  error(text: string, fields: LogFields): void {
    this.#say('error', text, fields);
  }

  /** How far something is that takes long: many lines, which may be shown as one. */
  progress(text: string, fields: LogFields): void {
    if (order.indexOf('info') >= this.#least) this.#sink('info', text, fields);
  }

  /** A line with fields for programs. */
  event(level: LogLevel, text: string, fields: LogFields): void {
    if (order.indexOf(level) >= this.#least) this.#sink(level, text, fields);
  }

  /** Who did what: written whatever level was asked for. */
  audit(fields: LogFields): void {
    this.#sink('info', auditText(fields), fields);
  }
  /** A line that another thread of this server has let through already. */
  pass(level: LogLevel, text: string, fields: LogFields | undefined): void {
    this.#sink(level, text, fields);
  }

  #say(level: LogLevel, text: string, fields: LogFields | undefined): void {
    if (order.indexOf(level) < this.#least) return;
    this.#sink(level, text, fields === undefined ? undefined : { ...fields, message: text });
  }
}

function auditText({ event, ...fields }: LogFields): string {
  const words = Object.entries(fields).map(([name, value]) => {
    const text = String(value);
    return `${name}=${/^[\w.:/*@+-]+$/.test(text) ? text : JSON.stringify(text)}`;
  });
  return ['audit', event, ...words].join(' ');
}

/** One line, as `--log-format` says, whatever the text has in it: much of it comes from other programs. */
export function formatLine(
  format: LogFormat,
  time: Date,
  level: LogLevel,
  text: string,
  fields: LogFields | undefined,
): string {
  if (format === 'text') return `${time.toISOString()} ${level} ${visible(text)}\n`;
  const head = { time: time.toISOString(), level };
  // First in the line, and never those of the fields.
  return `${visibleJson({ ...head, ...(fields ?? { message: text }), ...head })}\n`;
}

const LINES = 20;
const PER_MS = 10_000;

/** Time as a rate limit sees it. `after` must not keep the process alive. */
export interface LogClock {
  readonly nowMs: () => number;
  readonly after: (ms: number, run: () => void) => void;
}

const CLOCK: LogClock = { nowMs: () => performance.now(), after: (ms, run) => void setTimeout(run, ms).unref() };

/**
 * Writes lines that others can cause any number of times: at most so many in ten seconds. The ten seconds begin with a
 * line. When they are over, the number of lines that were left out is written, whether another line comes or not.
 */
export class RateLimitedLog {
  readonly #say: (text: string, fields: LogFields) => void;
  readonly #clock: LogClock;
  readonly #lines: number;
  #since = -Infinity;
  #said = 0;
  /** Of the last line that was left out. */
  #of: LogEvent | undefined;

  constructor(say: (text: string, fields: LogFields) => void, clock: Partial<LogClock> = {}, lines = LINES) {
    this.#say = say;
    this.#clock = { ...CLOCK, ...clock };
    this.#lines = lines;
  }

  say(text: string, fields: LogFields): void {
    const now = this.#clock.nowMs();
    // The timer may be late: then it finds that this is done.
    if (now - this.#since >= PER_MS) {
      this.#end();
      this.#since = now;
    }
    this.#said += 1;
    if (this.#said <= this.#lines) {
      this.#say(text, fields);
      return;
    }
    this.#of = fields.event;
    if (this.#said === this.#lines + 1) this.#endAfter(this.#since, PER_MS - (now - this.#since));
  }

  #endAfter(since: number, ms: number): void {
    this.#clock.after(ms, () => {
      if (this.#since === since) this.#end();
    });
  }

  #end(): void {
    const omitted = this.#said - this.#lines;
    this.#since = -Infinity;
    this.#said = 0;
    if (omitted > 0)
      this.#say(`(${omitted} more like that were not written)`, {
        event: 'omitted',
        count: omitted,
        ...(this.#of === undefined ? {} : { of: this.#of }),
      });
  }
}

/** The field of a line that tells of an error. */
export function codeOf(error: unknown): { readonly code?: string } {
  return error instanceof FarkvError ? { code: error.code } : {};
}

/** Of a call that ended in an error which no caller can be told. `role`: whose call it was. */
export const failedCall = (method: string, role: string): LogFields => ({ event: 'call-failed', method, role });

/** An error's message with those of its causes, for one line of the log. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  let at: unknown = error;
  for (let i = 0; i < 5 && at instanceof Error; i++) {
    // Many an error's message ends with that of its cause already.
    const { message, cause } = at;
    if (!parts.some((part) => part.endsWith(message))) parts.push(message);
    at = cause;
  }
  return parts.length === 0 ? String(error) : parts.join(': ');
}
