/**
 * The second look at what a client was given: bytes belong to the program that got them, whatever the client does
 * afterwards. Values are held for a while, with whatever memory they lie in, and read again; those that changed were
 * written over.
 */
import type { Random } from '../support/random.js';
import type { Seen } from './values.js';

export interface HeldValue {
  readonly key: string;
  /** What the first look saw. */
  readonly id: string;
  /** The call that gave it. */
  readonly by: string;
  /** CLOCK_MONOTONIC, when it came. */
  readonly cameNs: number;
  readonly look: () => Seen;
}

/** Held at most: a value that is kept keeps its slab of 64 KiB. */
const VALUES_MAX = 400;

export class HeldValues {
  readonly #held: { readonly value: HeldValue; readonly number: number }[] = [];
  readonly #changed: (value: HeldValue, what: string) => void;
  #came = 0;
  looks = 0;

  constructor(changed: (value: HeldValue, what: string) => void) {
    this.#changed = changed;
  }

  add(value: HeldValue): void {
    this.#held.push({ value, number: this.#came++ });
    if (this.#held.length > VALUES_MAX) this.#look(0);
  }

  /** A second look at some of those that came lately. */
  lookAtSome(random: Random): void {
    for (let i = 0; i < 8 && this.#held.length > 0; i++) this.#look(random.below(this.#held.length));
  }

  lookAtAll(): void {
    while (this.#held.length > 0) this.#look(0);
  }

  #look(at: number): void {
    const [{ value, number } = { value: undefined, number: 0 }] = this.#held.splice(at, 1);
    if (value === undefined) return;
    this.looks++;
    const seen = value.look();
    if ('id' in seen && seen.id === value.id) return;
    const now = 'wrong' in seen ? seen.wrong : `it is that of ${seen.id}`;
    this.#changed(
      value,
      `${value.key} by ${value.id}, which ${value.by} gave, had changed when ${this.#came - number - 1} more values had come: ${now}`,
    );
  }
}
