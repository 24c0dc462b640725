/**
 * What a server says about itself: lines of text, some with fields for programs. Never given: tokens, rkeys, seeds,
 * tickets, keys or values of users.
 */
import { visible, visibleJson } from '../core/visible-text.js';
import type { LogFormat, LogLevel } from './config/settings.js';

/** Of one line, for programs; `event` says what happened. */
export type LogFields = Readonly<Record<string, string | number | boolean>> & { readonly event: string };
export type LogSink = (level: LogLevel, text: string, fields?: LogFields) => void;

const order: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

export class Log {
  readonly #least: number;
  readonly #sink: LogSink;

  constructor(least: LogLevel, sink: LogSink) {
    this.#least = order.indexOf(least);
    this.#sink = sink;
  }

  debug(text: string): void {
    this.#say('debug', text);
  }
  info(text: string): void {
    this.#say('info', text);
  }
  warn(text: string): void {
    this.#say('warn', text);
  }
  error(text: string): void {
    this.#say('error', text);
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

  #say(level: LogLevel, text: string): void {
    if (order.indexOf(level) >= this.#least) this.#sink(level, text);
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
  return `${visibleJson({ time: time.toISOString(), level, ...(fields ?? { message: text }) })}\n`;
}

const LINES = 20;
const PER_MS = 10_000;

/** Says what may happen any number of times only so often in ten seconds, and how much was left out. */
export class RateLimitedLog {
  readonly #say: (text: string, fields?: LogFields) => void;
  readonly #now: () => number;
  readonly #lines: number;
  #since = -Infinity;
  #said = 0;

  constructor(
    say: (text: string, fields?: LogFields) => void,
    now: () => number = () => performance.now(),
    lines = LINES,
  ) {
    this.#say = say;
    this.#now = now;
    this.#lines = lines;
  }

  say(text: string, fields?: LogFields): void {
    const now = this.#now();
    if (now - this.#since >= PER_MS) {
      const omitted = this.#said - this.#lines;
      if (omitted > 0)
        this.#say(
          `(${omitted} more like that were not written)`,
          fields === undefined ? undefined : { event: 'omitted', count: omitted },
        );
      this.#since = now;
      this.#said = 0;
    }
    this.#said += 1;
    if (this.#said <= this.#lines) this.#say(text, fields);
  }
}

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
