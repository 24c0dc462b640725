/**
 * Handshakes: when TLS handshakes begin. A ClientHello costs its sender a copy of some bytes and this thread a signature
 * of about a millisecond, so a handshake waits for its turn: only so many begin per second, from addresses that are
 * known (places.ts) and from others each, and in one turn of the event loop only a few. Addresses take turns, so a flood
 * of one address delays another by one handshake. Of an address the newest is served first: under a flood those that
 * have waited for long will be evicted, and whoever comes in good faith has just come.
 *
 * A connection that has sent nothing waits for its first bytes elsewhere (listener.ts) and costs no handshake.
 */
import { Bucket, type Rate } from './bucket.js';

export interface HandshakesOptions {
  readonly strangers: Rate;
  readonly known: Rate;
  /** Handshakes that begin in one turn of the event loop. */
  readonly turn: number;
  readonly now?: () => number;
  readonly later?: (serve: () => void, ms: number) => void;
}

/** One connection whose first bytes have come. */
export interface Handshake {
  /** Its address, as bounds count it. */
  readonly source: string;
  /** False when its connection is gone: then it takes nobody's turn. */
  readonly alive: () => boolean;
  readonly begin: () => void;
}

/** When no more may begin now, it is looked again after this. */
const LOOK_MS = 10;
/** A queue that has grown to this is cleared of those whose connection is gone. */
const SWEEP = 256;

class Queue {
  readonly bucket: Bucket;
  /** By address, in the order in which they are served; of each the newest last. */
  readonly #waiting = new Map<string, Handshake[]>();
  #size = 0;

  constructor(bucket: Bucket) {
    this.bucket = bucket;
  }

  add(handshake: Handshake): void {
    const same = this.#waiting.get(handshake.source) ?? [];
    same.push(handshake);
    this.#waiting.set(handshake.source, same);
    this.#size += 1;
    // Those that are alive have a place each (places.ts): so the queue is bounded too.
    if (this.#size % SWEEP === 0) this.#sweep();
  }

  /** No one waits whose connection is not gone. */
  get isEmpty(): boolean {
    for (const [source, same] of this.#waiting) {
      while (same.at(-1)?.alive() === false) {
        same.pop();
        this.#size -= 1;
      }
      if (same.length > 0) return false;
      this.#waiting.delete(source);
    }
    return true;
  }

  /** The next one; its address goes to the end. To be called when it is not empty. */
  take(): Handshake | undefined {
    for (const [source, same] of this.#waiting) {
      this.#waiting.delete(source);
      if (same.length > 1) this.#waiting.set(source, same);
      this.#size -= 1;
      return same.pop();
    }
    return undefined;
  }

  #sweep(): void {
    const all = [...this.#waiting];
    this.#waiting.clear();
    this.#size = 0;
    for (const [source, same] of all) {
      const alive = same.filter((one) => one.alive());
      if (alive.length > 0) this.#waiting.set(source, alive);
      this.#size += alive.length;
    }
  }
}

export class Handshakes {
  readonly #options: HandshakesOptions;
  readonly #now: () => number;
  readonly #known: Queue;
  readonly #strangers: Queue;
  #soon = false;
  #later = false;

  constructor(options: HandshakesOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    const now = this.#now();
    this.#known = new Queue(new Bucket(options.known, now));
    this.#strangers = new Queue(new Bucket(options.strangers, now));
  }

  /** `begin` is called when the turn of this one has come. */
  add(known: boolean, handshake: Handshake): void {
    (known ? this.#known : this.#strangers).add(handshake);
    this.#schedule(0);
  }

  #schedule(ms: number): void {
    if (ms === 0 ? this.#soon : this.#later) return;
    if (ms === 0) this.#soon = true;
    else this.#later = true;
    const serve = (): void => {
      if (ms === 0) this.#soon = false;
      else this.#later = false;
      this.#serve();
    };
    const { later } = this.#options;
    if (later !== undefined) later(serve, ms);
    else if (ms === 0) setImmediate(serve);
    else setTimeout(serve, ms).unref();
  }

  #serve(): void {
    const now = this.#now();
    let left = this.#options.turn;
    let dry = 0;
    const queues = [this.#known, this.#strangers];
    for (const queue of queues) {
      while (left > 0 && !queue.isEmpty) {
        if (!queue.bucket.take(now)) {
          dry += 1;
          break;
        }
        left -= 1;
        queue.take()?.begin();
      }
    }
    const full = queues.filter((queue) => !queue.isEmpty).length;
    if (full > 0) this.#schedule(left > 0 && dry === full ? LOOK_MS : 0);
  }
}
