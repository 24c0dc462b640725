/**
 * A progress bar on standard error: drawn in place on a terminal, one line at the beginning and one at the end
 * elsewhere.
 */
const CELLS = 32;

export class ProgressBar {
  readonly #what: string;
  readonly #start = performance.now();
  readonly #terminal = process.stderr.isTTY;
  #drawn = false;

  constructor(what: string) {
    this.#what = what;
    if (!this.#terminal) process.stderr.write(`${what} ...\n`);
  }

  show(done: number, total: number): void {
    if (!this.#terminal) return;
    const share = total > 0 ? Math.min(1, done / total) : 1;
    const full = Math.round(share * CELLS);
    const seconds = (performance.now() - this.#start) / 1000;
    const rate = seconds > 0.2 ? `${Math.round(done / seconds).toLocaleString('en-US')}/s` : '';
    process.stderr.write(
      `\r${this.#what} [${'#'.repeat(full)}${'.'.repeat(CELLS - full)}] ${String(Math.floor(share * 100)).padStart(3)} % ${rate}\u001b[K`,
    );
    this.#drawn = true;
  }

  /** Ends the bar's line; with text, by a line that says how it went. */
  end(text: string): void {
    if (this.#drawn) process.stderr.write('\r\u001b[K');
    process.stderr.write(`${this.#what}: ${text}\n`);
  }
}
