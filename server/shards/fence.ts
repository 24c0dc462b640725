/**
 * When the data plane has heard of every shard that was taken from it. What has been posted to its threads runs in
 * order, and a question that passes through all of them (stats) is behind it.
 */
export class Fence {
  readonly #through: () => Promise<unknown>;
  /** Something that was posted may not have reached the threads yet. */
  #raised = false;
  #passing: Promise<void> | undefined;

  constructor(through: () => Promise<unknown>) {
    this.#through = through;
  }

  /** A shard is being taken away: to be called before that is posted. */
  raise(): void {
    this.#raised = true;
  }

  /** Rejects when the data plane does not answer; what is before it then still is. */
  async pass(): Promise<void> {
    // Whoever comes while another waits, waits too: what that one waits for is not behind it yet.
    while (this.#passing !== undefined || this.#raised) {
      this.#passing ??= this.#ask().finally(() => (this.#passing = undefined));
      await this.#passing;
    }
  }

  async #ask(): Promise<void> {
    this.#raised = false;
    try {
      await this.#through();
    } catch (error) {
      this.#raised = true;
      throw error;
    }
  }
}
