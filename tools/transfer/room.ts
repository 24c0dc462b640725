/**
 * Room: so many bytes, and so many things, may be under way at once. What is larger than all of it goes alone. First
 * come, first served.
 */
export class Room {
  readonly #bytesMax: number;
  readonly #countMax: number;
  #bytes = 0;
  #count = 0;
  readonly #waiting: { readonly bytes: number; readonly enter: () => void }[] = [];

  constructor(bytesMax: number, countMax = Infinity) {
    this.#bytesMax = bytesMax;
    this.#countMax = countMax;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Resolves once there is room; each has to be followed by `leave` with the same number. */
  async enter(bytes: number): Promise<void> {
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#take(bytes);
      return;
    }
    await new Promise<void>((enter) => this.#waiting.push({ bytes, enter }));
  }

  leave(bytes: number): void {
    this.#bytes -= bytes;
    this.#count--;
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#take(next.bytes);
      next.enter();
    }
  }

  #fits(bytes: number): boolean {
    return this.#count === 0 || (this.#count < this.#countMax && this.#bytes + bytes <= this.#bytesMax);
  }

  #take(bytes: number): void {
    this.#bytes += bytes;
    this.#count++;
  }
}
