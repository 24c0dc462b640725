/**
 * Deadline: the end of a wait for something that the network brings. within: a wait for a promise, with such an end.
 *
 * Invariant: what arrived before the time was over is handled before the wait ends. A process may stand still until
 * then: its disk is slow, its machine is busy. In a turn of the event loop timers run first, then sockets are read,
 * then immediates run, then closed sockets say so. So a deadline that has passed waits for two immediates. Before the
 * first one, sockets are read; before the second one, those that failed are closed.
 */
export class Deadline {
  readonly #timer: NodeJS.Timeout;
  #cleared = false;

  constructor(ms: number, over: () => void) {
    const act = (): void => {
      if (!this.#cleared) over();
    };
    this.#timer = setTimeout(() => setImmediate(() => setImmediate(act)), ms);
  }

  /** Ends the wait: `over` is not called afterwards. */
  clear(): void {
    this.#cleared = true;
    clearTimeout(this.#timer);
  }

  /** Waiting does not keep the process alive. */
  unref(): this {
    this.#timer.unref();
    return this;
  }
}

/** The result of `what`, or undefined when the time was over before. Rejects if `what` does within the time. */
export async function within<T>(what: Promise<T>, ms: number): Promise<T | undefined> {
  let deadline: Deadline | undefined;
  const over = new Promise<undefined>((resolve) => {
    deadline = new Deadline(ms, () => resolve(undefined));
  });
  try {
    return await Promise.race([what, over]);
  } finally {
    deadline?.clear();
  }
}
