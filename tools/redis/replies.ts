/**
 * Reads the replies of a Redis server (RESP2) from a stream of bytes. What comes is hostile until checked: each question
 * has an allowance for all that answers it. More elements or longer lines than that are refused; a value that does not
 * fit is skipped as it comes, so that it takes no memory, but for what it begins with.
 */
import { FarkvError } from '../../core/errors.js';

/** A reply that says what went wrong with one command: a word in capitals, then a text. */
export interface ErrorReply {
  readonly error: string;
}
/** A value that was too large to be kept. */
export interface SkippedReply {
  /** Its bytes. */
  readonly skipped: number;
  readonly start: Buffer;
}
export type Reply = Buffer | string | number | null | ErrorReply | SkippedReply | readonly Reply[];

/** What the replies to one question may take. */
export interface Allowance {
  /** Replies, with those in lists. */
  readonly replies: number;
  /** Larger values are skipped. */
  readonly bulkMax: number;
  /** Of values that are kept, all together; later ones are skipped. */
  readonly bytes: number;
}

/** An error says what went wrong, a status is a word. */
const LINE_MAX = 4 << 10;
const DEPTH_MAX = 4;
/** Kept of a value that is skipped: a key is named by it. */
const START_BYTES = 100;
/** What Redis itself allows at the most. */
const SKIP_MAX = 2 ** 32;

export const isError = (reply: Reply): reply is ErrorReply =>
  typeof reply === 'object' && reply !== null && 'error' in reply;
export const isSkipped = (reply: Reply): reply is SkippedReply =>
  typeof reply === 'object' && reply !== null && 'skipped' in reply;

/** The other store is at fault, or cannot be reached: what helps with a farkv server does not help here. */
export class RedisFailure extends FarkvError {}

function refuse(what: string): never {
  throw new RedisFailure('ERR_PROTOCOL', `this is not a Redis server: ${what}`);
}

export class Replies {
  readonly #stream: AsyncIterator<Buffer>;
  #left: Allowance = { replies: 0, bulkMax: 0, bytes: 0 };
  #chunk: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(stream: AsyncIterable<Buffer>) {
    this.#stream = stream[Symbol.asyncIterator]();
  }

  /** For the replies that follow; what is left of the one before is forfeited. */
  allow(allowance: Allowance): void {
    this.#left = allowance;
  }

  /** Throws ERR_DISCONNECTED at the end of the stream, ERR_PROTOCOL when this is no reply, or not what was asked for. */
  async next(depth = 0): Promise<Reply> {
    if (this.#left.replies === 0) refuse('it answers with more than it was asked for');
    this.#left = { ...this.#left, replies: this.#left.replies - 1 };
    const line = await this.#line();
    const rest = line.slice(1);
    switch (line[0]) {
      case '+':
        return rest;
      case '-':
        return { error: rest };
      case ':':
        // 64 bits with a sign, such as what is left of a time to live; beyond 2^53 it is rounded.
        return integer(rest, -(2 ** 63), 2 ** 63);
      case '$': {
        const bytes = integer(rest, -1, SKIP_MAX);
        return bytes < 0 ? null : await this.#bulk(bytes);
      }
      case '*': {
        const items = integer(rest, -1, this.#left.replies);
        if (items < 0) return null;
        if (depth === DEPTH_MAX) refuse(`lists within lists, more than ${DEPTH_MAX} deep`);
        const list: Reply[] = [];
        while (list.length < items) list.push(await this.next(depth + 1));
        return list;
      }
      default:
        refuse('its reply begins with no type');
    }
  }

  async #bulk(bytes: number): Promise<Buffer | SkippedReply> {
    const { bulkMax, bytes: left } = this.#left;
    const isKept = bytes <= bulkMax && bytes <= left;
    const value = Buffer.allocUnsafe(isKept ? bytes : Math.min(bytes, START_BYTES));
    if (isKept) this.#left = { ...this.#left, bytes: left - bytes };
    for (let done = 0; done < bytes;) {
      await this.#fill();
      const part = this.#chunk.subarray(this.#at, this.#at + bytes - done);
      if (done < value.length) part.copy(value, done);
      done += part.length;
      this.#at += part.length;
    }
    if ((await this.#line()) !== '') refuse('a value is longer than it said');
    return isKept ? value : { skipped: bytes, start: value };
  }

  /** Up to CR LF, which is taken too. */
  async #line(): Promise<string> {
    let line = '';
    for (;;) {
      await this.#fill();
      const end = this.#chunk.indexOf(0x0a, this.#at);
      const part = this.#chunk.toString('latin1', this.#at, end < 0 ? this.#chunk.length : end);
      this.#at = end < 0 ? this.#chunk.length : end + 1;
      line += part;
      if (line.length > LINE_MAX) refuse(`a line has more than ${LINE_MAX} bytes`);
      if (end < 0) continue;
      if (!line.endsWith('\r')) refuse('a line does not end with CR LF');
      return line.slice(0, -1);
    }
  }

  /** There is at least one byte. */
  async #fill(): Promise<void> {
    while (this.#at === this.#chunk.length) {
      const next = await this.#stream.next();
      if (next.done === true) throw new RedisFailure('ERR_DISCONNECTED', 'the Redis server closed the connection');
      this.#chunk = next.value;
      this.#at = 0;
    }
  }
}

function integer(text: string, least: number, most: number): number {
  const value = /^-?\d{1,19}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) refuse(`"${text.slice(0, 40)}" is not a number that can be`);
  return value;
}
