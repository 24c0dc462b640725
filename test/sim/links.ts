/** Which ways of the network carry nothing. */
const key = (from: number, to: number): number => from * 65_536 + to;

export class Links {
  readonly #cut = new Set<number>();

  cut(from: number, to: number): boolean {
    return this.#cut.size > 0 && this.#cut.has(key(from, to));
  }

  cutOneWay(from: number, to: number): void {
    this.#cut.add(key(from, to));
  }

  /** Nothing passes between those in `side` and the others; whatever was cut before is whole. */
  partition(ids: readonly number[], side: ReadonlySet<number>): void {
    this.#cut.clear();
    for (const a of ids) for (const b of ids) if (side.has(a) !== side.has(b)) this.#cut.add(key(a, b));
  }

  heal(): void {
    this.#cut.clear();
  }
}
