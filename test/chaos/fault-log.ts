/**
 * What the nemesis really did to which server, and when: written down as it is done, not as it was planned. From this
 * follows which shards may have lost their values (permitted-losses.ts), and what was under way when something went
 * wrong.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC. A fault begins before the first signal is sent, and ends after the last has
 * been: what happened lies within.
 */
import type { Look } from './promise.js';

export interface Span {
  readonly fromNs: number;
  /** Infinity: it is not over. */
  readonly toNs: number;
}

export type ServerFault = Span & {
  readonly server: string;
  /**
   * dead: from the signal that ends it to the start of the next process, all its memory is gone. stopped: it goes on
   * where it was.
   */
  readonly kind: 'dead' | 'stopped';
};

/** Nothing that `from` sends reaches `to`. */
export type LinkFault = Span & { readonly from: string; readonly to: string };

/** As it comes back from JSON, which has no Infinity: null. */
interface Stored {
  readonly servers: readonly string[];
  readonly server: readonly Ended<ServerFault>[];
  readonly link: readonly Ended<LinkFault>[];
  readonly texts: readonly Ended<Note>[];
  /** Absent in what earlier runs left. */
  readonly looks?: readonly Ended<Look>[];
}
type Ended<T extends Span> = Omit<T, 'toNs'> & { readonly toNs: number | null };
type Note = Span & { readonly text: string };

export class FaultLog {
  readonly servers: readonly string[];
  readonly #server: ServerFault[] = [];
  readonly #link: LinkFault[] = [];
  readonly #texts: Note[] = [];
  readonly #looks: Look[] = [];
  readonly #now: () => number;

  constructor(servers: readonly string[], now: () => number = () => Number(process.hrtime.bigint())) {
    this.servers = servers;
    this.#now = now;
  }

  get serverFaults(): readonly ServerFault[] {
    return this.#server;
  }

  get linkFaults(): readonly LinkFault[] {
    return this.#link;
  }

  /** What was seen of the copies before processes were ended. */
  get looks(): readonly Look[] {
    return this.#looks;
  }

  /** To be called before it is done; what it answers with, after it was taken back. */
  begin(
    fault:
      { readonly server: string; readonly kind: ServerFault['kind'] } | { readonly from: string; readonly to: string },
  ): () => void {
    const fromNs = this.#now();
    if ('server' in fault) return this.#add(this.#server, { ...fault, fromNs, toNs: Infinity });
    return this.#add(this.#link, { ...fault, fromNs, toNs: Infinity });
  }

  /** To be written down before the processes are ended; what it answers with is to be called when the fault is over. */
  look(seen: Omit<Look, 'toNs'>): () => void {
    return this.#add(this.#looks, { ...seen, toNs: Infinity });
  }

  /** A fault in words. */
  note(text: string): () => void {
    return this.#add(this.#texts, { text, fromNs: this.#now(), toNs: Infinity });
  }

  /** What was under way between these times, and shortly before; `sinceNs`: times in it count from there. */
  underWay(fromNs: number, toNs: number, sinceNs: number): string[] {
    const second = (ns: number): string => (ns === Infinity ? '...' : ((ns - sinceNs) / 1e9).toFixed(2));
    return this.#texts
      .filter((f) => f.fromNs <= toNs && f.toNs >= fromNs - SHORTLY_NS)
      .map((f) => `${f.text} [${second(f.fromNs)} s, ${second(f.toNs)} s]`);
  }

  /** What is under way has no end. */
  toJSON(): Stored {
    return { servers: this.servers, server: this.#server, link: this.#link, texts: this.#texts, looks: this.#looks };
  }

  static of({ servers, server, link, texts, looks = [] }: Stored): FaultLog {
    const log = new FaultLog(servers);
    const ended = <T extends Span>(fault: Ended<T>): T => ({ ...fault, toNs: fault.toNs ?? Infinity }) as T;
    log.#server.push(...server.map(ended<ServerFault>));
    log.#link.push(...link.map(ended<LinkFault>));
    log.#texts.push(...texts.map(ended<Note>));
    log.#looks.push(...looks.map(ended<Look>));
    return log;
  }

  #add<T extends Span>(list: T[], fault: T): () => void {
    const at = list.push(fault) - 1;
    return () => {
      list[at] = { ...fault, toNs: this.#now() };
    };
  }
}

const SHORTLY_NS = 2e9;
