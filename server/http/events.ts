/**
 * /events: the pages that are open. While there is one, the cluster is looked at once per LOOK_MS, whoever listens; while
 * there is none, once per SAMPLE_MS. Server-sent events go to all of them:
 *
 *   event: start      first: when this server was started; its happenings are numbered from then on
 *   event: history    then: the last hour of the charts' figures (history.ts)
 *   event: view       the figures (view.ts); of the shards those that changed since the page's last one, all in its first
 *   event: happened   what has happened since the page's last one (happenings.ts, owner-news.ts)
 *
 * A page that has not read the last look gets a later one. So what waits for a page is the hour, one look and its news,
 * however many shards there are and however slow the page is.
 *
 * Invariants: at most LISTENERS listen; one that leaves something unread for UNREAD_MS is cut off; one look is under way at
 * a time.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { MetadataState } from '../../core/metadata/state.js';
import type { Identity } from '../control/auth.js';
import type { ClusterStatus } from '../status.js';
import { LISTENERS, LOOK_MS, SAMPLE_MS, STATUS_ANSWER_MS, UNREAD_MS } from './bounds.js';
import { Fresh } from './fresh.js';
import { changesOf, Happenings, turnsOf } from './happenings.js';
import { comparable, History } from './history.js';
import { ShardNews } from './shard-news.js';
import { viewOf, type Look } from './view.js';

type Stream = Pick<ServerResponse, 'write' | 'destroy' | 'once' | 'writableLength'>;
type Connection = Pick<Socket, 'once'>;

/** Who has opened a page. */
export interface Reader extends Pick<Identity, 'lapsed'> {
  /** It is cut off, since its credential has lapsed. */
  readonly ended?: (why: string) => void;
}

interface Listening {
  readonly stream: Stream;
  readonly reader: Reader;
  /** The last happening that it was sent. */
  sent: number;
  /** The last look whose shards it was sent; 0: none. */
  look: number;
  /** When it was sent what it has not read; undefined: it has read all. */
  unreadMs: number | undefined;
}

export interface EventsOptions {
  /** The status of the cluster. */
  readonly look: () => Promise<ClusterStatus>;
  /** Whether the metadata names this start of the server. */
  readonly hasJoined: (state: MetadataState) => boolean;
  readonly nowMs?: () => number;
  readonly lookMs?: number;
  readonly sampleMs?: number;
  readonly answerMs?: number;
}

export class Events {
  readonly #options: EventsOptions;
  readonly #startedMs: number;
  readonly #listening = new Set<Listening>();
  readonly #happenings: Happenings;
  readonly #history: History;
  readonly #shards = new ShardNews();
  /** A look that is not answered is not put again, and does not keep pages from being cut off. */
  readonly #status: Fresh<ClusterStatus>;
  /** Undefined until it has joined. */
  #state: MetadataState | undefined;
  #last: Look | undefined;
  #lastButOne: Look | undefined;
  /** Until the next look. */
  #timer: NodeJS.Timeout | undefined;
  /** No page was open when the last look ended. */
  #isResting = true;
  #isClosed = false;

  constructor(options: EventsOptions) {
    this.#options = options;
    this.#startedMs = (options.nowMs ?? Date.now)();
    this.#status = new Fresh({ ask: options.look, freshMs: 0, answerMs: options.answerMs ?? STATUS_ANSWER_MS });
    this.#happenings = new Happenings(options.nowMs);
    this.#history = new History(options.sampleMs);
    this.#rest();
  }

  get listeners(): number {
    return this.#listening.size;
  }

  /**
   * What happens is noted whether anybody listens or not. A start applies the log again, so what comes before it has
   * joined happened before it.
   */
  stateChanged(state: MetadataState): void {
    if (this.#state === undefined && !this.#options.hasJoined(state)) return;
    if (this.#state !== undefined) this.#happenings.add(changesOf(this.#state, state));
    this.#state = state;
    this.#tellAll();
  }

  /** Noted whether anybody listens or not. */
  happened(text: string, atMs: number): void {
    this.#happenings.add([text], atMs);
    this.#tellAll();
  }

  /**
   * Its headers have been written. Beyond LISTENERS it is cut off. A response whose turn never came on its connection
   * does not close with it, so both ends count.
   */
  add(stream: Stream, reader: Reader, connection: Connection): void {
    if (this.#listening.size >= LISTENERS) {
      stream.destroy();
      return;
    }
    const one: Listening = { stream, reader, sent: 0, look: 0, unreadMs: undefined };
    this.#listening.add(one);
    for (const end of [stream, connection]) end.once('close', () => this.#listening.delete(one));
    stream.write(`event: start\ndata: ${JSON.stringify({ atMs: this.#startedMs })}\n\n`);
    const { samples } = this.#history;
    if (samples.length > 0) stream.write(`event: history\ndata: ${JSON.stringify(samples)}\n\n`);
    this.#tell(one);
    if (!this.#isResting) return;
    clearTimeout(this.#timer);
    void this.#look();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const { stream } of this.#listening) stream.destroy();
    this.#listening.clear();
  }

  async #look(): Promise<void> {
    const { nowMs = () => Date.now() } = this.#options;
    this.#isResting = false;
    try {
      const status = await this.#status.get();
      const now = { atMs: nowMs(), status };
      this.#happenings.add(turnsOf(this.#last?.status, status));
      this.#history.take(now);
      if (this.#listening.size > 0) this.#show(now);
      this.#lastButOne = this.#last;
      this.#last = comparable(now);
    } catch {
      // The thread of Raft is busy: the page says for how long it has heard nothing.
      for (const one of this.#listening) if (this.#mayWrite(one)) one.stream.write(': no answer\n\n');
    }
    this.#rest();
  }

  #show(now: Look): void {
    const { lookMs = LOOK_MS } = this.#options;
    // A page may come just after a look, and rates over so short a time are chance.
    const isEarly = this.#last !== undefined && now.atMs - this.#last.atMs < lookMs / 2;
    const { shards, ...figures } = viewOf(now, isEarly ? this.#lastButOne : this.#last);
    const number = this.#shards.take(shards);
    const text = JSON.stringify(figures).slice(1);
    for (const one of this.#listening) {
      if (!this.#mayWrite(one)) continue;
      this.#tell(one);
      one.stream.write(`event: view\ndata: {"shards":${this.#shards.since(one.look)},${text}\n\n`);
      one.look = number;
    }
  }

  #rest(): void {
    const { lookMs = LOOK_MS, sampleMs = SAMPLE_MS } = this.#options;
    this.#isResting = this.#listening.size === 0;
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#look(), this.#isResting ? sampleMs : lookMs);
  }

  #tellAll(): void {
    for (const one of this.#listening) if (this.#mayWrite(one)) this.#tell(one);
  }

  #tell(one: Listening): void {
    const news = this.#happenings.after(one.sent);
    if (news.length === 0) return;
    one.sent = news.at(-1)?.number ?? one.sent;
    one.stream.write(`event: happened\ndata: ${JSON.stringify(news)}\n\n`);
  }

  /** Whether it has read all that it was sent. Cuts it off when it must not be sent any more. */
  #mayWrite(one: Listening): boolean {
    const { nowMs = () => Date.now() } = this.#options;
    const hasRead = one.stream.writableLength === 0;
    one.unreadMs = hasRead ? undefined : (one.unreadMs ?? nowMs());
    const isStuck = one.unreadMs !== undefined && nowMs() - one.unreadMs > UNREAD_MS;
    const why = one.reader.lapsed?.(nowMs());
    const hasLapsed = why !== undefined;
    // mutation: http/outlives-token
    const isOver = hasLapsed || isStuck;
    if (!isOver) return hasRead;
    this.#listening.delete(one);
    one.stream.destroy();
    if (why !== undefined) one.reader.ended?.(why);
    return false;
  }
}
