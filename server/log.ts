/** What a server says about itself. Never given: tokens, rkeys, seeds, tickets, keys or values of users. */
import type { LogLevel } from './config/settings.js';

export type LogSink = (level: LogLevel, text: string) => void;

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

  #say(level: LogLevel, text: string): void {
    if (order.indexOf(level) >= this.#least) this.#sink(level, text);
  }
}

const SPARING = { lines: 20, perMs: 10_000 } as const;

/** Says what strangers can cause any number of times only so often, and how much was left out. */
export class RateLimitedLog {
  readonly #say: (text: string) => void;
  readonly #now: () => number;
  #since = -Infinity;
  #said = 0;

  constructor(say: (text: string) => void, now: () => number = () => performance.now()) {
    this.#say = say;
    this.#now = now;
  }

  say(text: string): void {
    const now = this.#now();
    if (now - this.#since >= SPARING.perMs) {
      if (this.#said > SPARING.lines) this.#say(`(${this.#said - SPARING.lines} more like that were not written)`);
      this.#since = now;
      this.#said = 0;
    }
    this.#said += 1;
    if (this.#said <= SPARING.lines) this.#say(text);
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
