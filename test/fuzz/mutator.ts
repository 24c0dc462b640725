/**
 * Changes inputs at random, by their form: one value of a frame becomes another, or goes, or comes twice; steps are
 * repeated, exchanged with those of another input, or become bytes of which some are wrong. Values come from a
 * dictionary of all that the first inputs have, so that ids, tokens and kinds of frames meet.
 */
import type { Random } from '../support/random.js';
import { framed, type Input, type Step } from './input.js';

const nested = (depth: number): unknown => (depth === 0 ? 0 : [nested(depth - 1)]);
const EDGES: readonly unknown[] = [
  ...[0, 1, -1, 1.5, NaN, Infinity, 127, 128, 255, 256, 65_535, 65_536, 2 ** 31, 2 ** 32 - 1, 2 ** 32],
  ...[2 ** 53 - 1, 2 ** 53, -(2 ** 53), null, true, false, '', '0', '__proto__', 'constructor', '\0', '\u{1f600}'],
  ...['x'.repeat(64), 'x'.repeat(5000), '00'.repeat(8), 'ff'.repeat(16), 10n ** 18n],
  ...[[], {}, [[]], nested(20), Array(9000).fill(0), Array(70).fill('a'), { __proto__: null, a: { b: {} } }],
  ...[new Uint8Array(0), new Uint8Array(16), new Uint8Array(300).fill(255), new Uint8Array(70_000)],
];

type Container = unknown[] | Record<string, unknown>;
const isContainer = (value: unknown): value is Container =>
  typeof value === 'object' && value !== null && !(value instanceof Uint8Array);

function set(container: Container, key: string, value: unknown): void {
  Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true });
}

export class Mutator {
  readonly #random: Random;
  readonly #words: unknown[] = [...EDGES];
  readonly #keys = new Set<string>(['t', 'id', '__proto__', 'length', 'then', 'toString']);

  constructor(random: Random, first: readonly Input[]) {
    this.#random = random;
    for (const input of first) for (const step of input) if (step[0] === 'frame') this.#learn(step[1]);
  }

  #learn(value: unknown): void {
    this.#words.push(value);
    if (!isContainer(value)) return;
    for (const [key, inside] of Object.entries(value)) {
      if (!Array.isArray(value)) this.#keys.add(key);
      this.#learn(inside);
    }
  }

  /** `input` with one to four things changed; `other` may lend steps. */
  mutate(input: Input, other: Input): Input {
    const steps: Step[] = structuredClone([...input]);
    for (let n = 1 + this.#random.below(4); n > 0; n--) this.#change(steps, other);
    return steps.slice(0, 40);
  }

  #change(steps: Step[], other: Input): void {
    const random = this.#random;
    const at = random.below(steps.length + 1);
    const step = steps[at];
    switch (random.below(10)) {
      case 0:
        steps.splice(at, 0, ['turn']);
        break;
      case 1:
        steps.splice(at, 1);
        break;
      case 2:
        if (other.length > 0) steps.splice(at, 0, structuredClone(random.pick(other)));
        break;
      case 3:
        if (step !== undefined) steps.splice(random.below(steps.length + 1), 0, structuredClone(step));
        break;
      case 4:
        if (step !== undefined) steps[at] = ['bytes', this.#corrupt(step)];
        break;
      case 5:
        // In pieces.
        if (step !== undefined && step[0] !== 'turn') {
          const bytes = step[0] === 'frame' ? framed(step[1]) : step[1];
          const cut = random.below(bytes.length + 1);
          steps.splice(at, 1, ['bytes', bytes.slice(0, cut)], ['bytes', bytes.slice(cut)]);
        }
        break;
      default:
        if (step?.[0] === 'frame') steps[at] = ['frame', this.#changeValue(step[1])];
    }
  }

  #corrupt(step: Step): Uint8Array {
    const random = this.#random;
    if (step[0] === 'turn') return random.bytes(random.below(64));
    const bytes = (step[0] === 'frame' ? framed(step[1]) : step[1]).slice();
    if (bytes.length === 0) return random.bytes(8);
    const at = random.below(random.below(2) === 0 ? Math.min(8, bytes.length) : bytes.length);
    switch (random.below(4)) {
      case 0:
        return bytes.slice(0, at);
      case 1:
        bytes[at] = random.next() & 0xff;
        return bytes;
      case 2:
        bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
        return bytes;
      default:
        return Uint8Array.from([...bytes.subarray(0, at), ...random.bytes(1 + random.below(4)), ...bytes.subarray(at)]);
    }
  }

  #word(): unknown {
    return structuredClone(this.#random.pick(this.#words));
  }

  #changeValue(value: unknown): unknown {
    const random = this.#random;
    if (!isContainer(value) || random.below(8) === 0) return this.#changeLeaf(value);
    const keys = Object.keys(value);
    const key = keys.length > 0 ? random.pick(keys) : '0';
    switch (random.below(8)) {
      case 0:
        if (Array.isArray(value)) value.splice(random.below(value.length + 1), 1);
        else Reflect.deleteProperty(value, key);
        break;
      case 1:
        if (Array.isArray(value)) value.push(this.#word());
        else set(value, random.pick([...this.#keys]), this.#word());
        break;
      default:
        set(value, key, this.#changeValue((value as Record<string, unknown>)[key]));
    }
    return value;
  }

  #changeLeaf(value: unknown): unknown {
    const random = this.#random;
    const what = random.below(4);
    if (typeof value === 'number' && what === 0) return value + (random.below(2) === 0 ? 1 : -1);
    if (typeof value === 'number' && what === 1) return random.below(256);
    if (typeof value === 'string' && what === 0) return `${value}${value}`;
    if (typeof value === 'string' && what === 1) return value.slice(0, random.below(value.length + 1));
    if (value instanceof Uint8Array && what < 3) return this.#corrupt(['bytes', value]);
    return this.#word();
  }
}
