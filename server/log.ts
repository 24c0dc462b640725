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

const LINES = 20;
const PER_MS = 10_000;

/** Says what may happen any number of times only so often in ten seconds, and how much was left out. */
export class RateLimitedLog {
  readonly #say: (text: string) => void;
  readonly #now: () => number;
  readonly #lines: number;
  #since = -Infinity;
  #said = 0;

  constructor(say: (text: string) => void, now: () => number = () => performance.now(), lines = LINES) {
    this.#say = say;
    this.#now = now;
    this.#lines = lines;
  }

  say(text: string): void {
    const now = this.#now();
    if (now - this.#since >= PER_MS) {
      if (this.#said > this.#lines) this.#say(`(${this.#said - this.#lines} more like that were not written)`);
      this.#since = now;
      this.#said = 0;
    }
    this.#said += 1;
    if (this.#said <= this.#lines) this.#say(text);
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
