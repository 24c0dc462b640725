/**
 * Keys that are written and read without pause, each by a lane of its own for PUTs and one for GETs, and how long they
 * went without an answer. A call that fails is made again; its time counts from the first attempt.
 */
import type { BufferValue, Client } from '../../client/index.js';

interface Key {
  readonly key: string;
  readonly shard: number;
  answeredAt: number;
  longestPause: number;
  longestPut: number;
}

export class Traffic {
  readonly #client: Client<BufferValue, Buffer>;
  readonly #keys: readonly Key[];
  readonly #lanes: readonly Promise<void>[];
  /** Calls that ended with an error since the last mark, by code. */
  readonly errors = new Map<string, number>();
  #stopped = false;
  #markedAt = performance.now();
  /** By shard: when the first PUT that began after the mark was answered, from the mark on. */
  #answers = new Map<number, number>();
  #onAnswer: () => void = () => undefined;

  constructor(client: Client<BufferValue, Buffer>, keys: readonly string[]) {
    this.#client = client;
    const at = performance.now();
    this.#keys = keys.map((key) => ({
      key,
      shard: client.shardOf(key),
      answeredAt: at,
      longestPause: 0,
      longestPut: 0,
    }));
    this.#lanes = this.#keys.flatMap((key) => [this.#puts(key), this.#gets(key)]);
  }

  /** Pauses and first answers count from here on. */
  mark(): void {
    this.#markedAt = performance.now();
    this.#answers = new Map();
    this.errors.clear();
    for (const key of this.#keys) {
      key.answeredAt = this.#markedAt;
      key.longestPause = 0;
      key.longestPut = 0;
    }
  }

  /** Milliseconds from the mark until each of these shards had answered a PUT that began after it. */
  async answered(shards: readonly number[], waitMs: number): Promise<number> {
    const watched = shards.filter((shard) => this.#keys.some((key) => key.shard === shard));
    let timer: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        timer = setTimeout(
          () => reject(new Error(`shards ${shards.join(', ')} did not answer within ${waitMs} ms`)),
          waitMs,
        );
        this.#onAnswer = () => {
          if (watched.every((shard) => this.#answers.has(shard))) resolve();
        };
        this.#onAnswer();
      });
    } finally {
      clearTimeout(timer);
      this.#onAnswer = () => undefined;
    }
    return Math.max(0, ...watched.map((shard) => this.#answers.get(shard) ?? 0));
  }

  /** Since the mark, in milliseconds: the longest time in which one of their keys had no answer at all. */
  longestPause(shards: readonly number[]): number {
    const now = performance.now();
    return Math.max(0, ...this.#of(shards).map((k) => Math.max(k.longestPause, now - k.answeredAt)));
  }

  longestPut(shards: readonly number[]): number {
    return Math.max(0, ...this.#of(shards).map((k) => k.longestPut));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#lanes);
  }

  #of(shards: readonly number[]): Key[] {
    return this.#keys.filter((key) => shards.includes(key.shard));
  }

  async #puts(key: Key): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const began = performance.now();
      if (!(await this.#done(key, () => this.#client.put(key.key, `${n}`)))) return;
      key.longestPut = Math.max(key.longestPut, performance.now() - Math.max(began, this.#markedAt));
      if (began >= this.#markedAt && !this.#answers.has(key.shard)) {
        this.#answers.set(key.shard, performance.now() - this.#markedAt);
        this.#onAnswer();
      }
    }
  }

  async #gets(key: Key): Promise<void> {
    while (!this.#stopped && (await this.#done(key, () => this.#client.get(key.key))));
  }

  /** False: it was stopped before it succeeded. */
  async #done(key: Key, call: () => Promise<unknown>): Promise<boolean> {
    while (!this.#stopped) {
      try {
        await call();
        const now = performance.now();
        key.longestPause = Math.max(key.longestPause, now - key.answeredAt);
        key.answeredAt = now;
        return true;
      } catch (error) {
        const code = (error as { readonly code?: string }).code ?? String(error);
        this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
        // Errors may come without a turn of the event loop.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    return false;
  }
}
