/**
 * /events: the pages that are open. While there is one, the cluster is looked at once per LOOK_MS, whoever listens; each
 * look goes to all of them as server-sent events:
 *
 *   event: view       the figures (view.ts)
 *   event: happened   what has happened since the page's last one (happenings.ts)
 *
 * Invariants: at most LISTENERS listen; one that does not read is cut off; one look is under way at a time.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { MetadataState } from '../../core/metadata/state.js';
import type { Identity } from '../control/auth.js';
import type { ClusterStatus } from '../status.js';
import { LISTENER_UNREAD, LISTENERS, LOOK_MS } from './bounds.js';
import { changesOf, Happenings, NewFailovers, turnsOf } from './happenings.js';
import { viewOf, type Look } from './view.js';

type Stream = Pick<ServerResponse, 'write' | 'destroy' | 'once' | 'writableLength'>;
type Connection = Pick<Socket, 'once'>;

interface Listening {
  readonly stream: Stream;
  readonly identity: Pick<Identity, 'lapsed'>;
  /** The last happening that it was sent. */
  sent: number;
}

export interface EventsOptions {
  /** The status of the cluster. */
  readonly look: () => Promise<ClusterStatus>;
  /** Whether the metadata names this start of the server. */
  readonly hasJoined: (state: MetadataState) => boolean;
  readonly nowMs?: () => number;
  readonly lookMs?: number;
}

export class Events {
  readonly #options: EventsOptions;
  readonly #listening = new Set<Listening>();
  readonly #happenings: Happenings;
  readonly #failovers = new NewFailovers();
  /** Undefined until it has joined. */
  #state: MetadataState | undefined;
  #last: Look | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(options: EventsOptions) {
    this.#options = options;
    this.#happenings = new Happenings(options.nowMs);
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
    for (const one of this.#listening) this.#tell(one);
  }

  /**
   * Its headers have been written. Beyond LISTENERS it is cut off. A response whose turn never came on its connection
   * does not close with it, so both ends count.
   */
  add(stream: Stream, identity: Pick<Identity, 'lapsed'>, connection: Connection): void {
    if (this.#listening.size >= LISTENERS) {
      stream.destroy();
      return;
    }
    const one: Listening = { stream, identity, sent: 0 };
    this.#listening.add(one);
    for (const end of [stream, connection]) end.once('close', () => this.#listening.delete(one));
    this.#tell(one);
    if (this.#timer === undefined && !this.#isLooking) void this.#look();
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const { stream } of this.#listening) stream.destroy();
    this.#listening.clear();
  }

  async #look(): Promise<void> {
    const { look, nowMs = () => Date.now(), lookMs = LOOK_MS } = this.#options;
    this.#timer = undefined;
    this.#isLooking = true;
    try {
      const status = await look();
      const now = { atMs: nowMs(), status };
      this.#happenings.add(turnsOf(this.#last?.status, status));
      for (const { atMs, text } of this.#failovers.in(status, now.atMs)) this.#happenings.add([text], atMs);
      const view = `event: view\ndata: ${JSON.stringify(viewOf(now, this.#last))}\n\n`;
      this.#last = now;
      for (const one of this.#listening) {
        this.#tell(one);
        this.#write(one, view);
      }
    } catch {
      // The thread of Raft is busy: the page says for how long it has heard nothing.
      for (const one of this.#listening) this.#write(one, ': no answer\n\n');
    }
    this.#isLooking = false;
    if (this.#listening.size > 0) this.#timer = setTimeout(() => void this.#look(), lookMs);
    else this.#last = undefined;
  }

  #tell(one: Listening): void {
    const news = this.#happenings.after(one.sent);
    if (news.length === 0) return;
    one.sent = news.at(-1)?.number ?? one.sent;
    this.#write(one, `event: happened\ndata: ${JSON.stringify(news)}\n\n`);
  }

  #write(one: Listening, text: string): void {
    const { nowMs = () => Date.now() } = this.#options;
    const hasLapsed = one.identity.lapsed?.(nowMs()) !== undefined;
    // mutation: http/outlives-token
    if (hasLapsed || one.stream.writableLength > LISTENER_UNREAD) {
      this.#listening.delete(one);
      one.stream.destroy();
    } else one.stream.write(text);
  }
}
