/** What the fuzzer runs inputs on. A target lies in a file of its own and is listed in targets.ts. */
import type { Input } from './input.js';

export interface FuzzTarget {
  /** And of its folder in corpus/. */
  readonly name: string;
  /** Well-formed inputs, from which others are made. */
  readonly first: readonly Input[];
  readonly open: () => Promise<Rig>;
}

export interface Rig {
  /** Gives one input to the product; throws when something is broken that must hold. */
  readonly run: (input: Input) => void | Promise<void>;
  readonly close: () => Promise<void>;
}

/** Something that must hold is broken. */
export class Broken extends Error {
  override readonly name = 'Broken';
}

export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Broken(what);
}
