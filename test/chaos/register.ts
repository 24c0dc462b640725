/**
 * What one key does when nothing happens at the same time: the model that histories are compared with.
 *
 *   state    absent, or a value with its version; and the highest version that is known to have been given
 *   get      tells it
 *   has      tells that it is not absent
 *   put      replaces it, under a higher version than any before
 *   delete   takes it away; tells whether there was something
 *   swap     put or delete, if the version is the expected one (0n: if absent); else tells the version and changes
 *            nothing
 *   loss     takes it away. It stands for memory that died with its owner, which a `cache` may lose and nothing else
 *            may
 *
 * So a miss is right after a loss, but a value that was read as gone, or was replaced, never comes back: no operation
 * but a write makes a value, and each value is written once.
 *
 * The SDK does not tell the version that a put gave. Where nobody learned it from a read, it is unknown until a
 * compare-and-swap that lost tells it. Values that nobody saw are one value here, UNSEEN, so that states that no answer
 * tells apart are one state.
 */
import type { Operation } from './operation.js';

export interface State {
  /** 0: absent. */
  readonly value: number;
  /** Rank of the version; 0: absent or unknown. */
  readonly version: number;
  /** Rank of the highest version known to have been given. */
  readonly floor: number;
}

export const ABSENT: State = { value: 0, version: 0, floor: 0 };
/** The value of every write whose value nobody saw. */
export const UNSEEN = 1;

/** An operation in numbers. Versions are ranks among the versions of the history, 0 is none. */
export interface Step {
  readonly kind: 'get' | 'has' | 'put' | 'delete' | 'swap' | 'lost-swap' | 'loss';
  /** get: what was read, 0: absent. put, swap: what is written; swap 0: deletes. */
  readonly value: number;
  /** put, swap: under which version, 0: unknown. lost-swap: which one the key had, 0: absent. */
  readonly version: number;
  /** swap: 0: absent. */
  readonly expected: number;
  /** delete: whether there was something; undefined: nobody was told. */
  readonly found: boolean | undefined;
}

/** The next state; undefined: this is not what the key would have answered. The same object: nothing changed. */
export type Register = (state: State, step: Step) => State | undefined;

/** `givenTo`: the value that a version is known to belong to. */
export function register(givenTo: ReadonlyMap<number, number>): Register {
  /** The state, when its version can be `version`. */
  function withVersion(state: State, version: number): State | undefined {
    if (state.value === 0) return undefined;
    if (state.version !== 0) return state.version === version ? state : undefined;
    if (version <= state.floor || givenTo.has(version)) return undefined;
    return { value: state.value, version, floor: version };
  }

  function stored(state: State, value: number, version: number): State | undefined {
    if (value === 0) return { value: 0, version: 0, floor: state.floor };
    if (version === 0) return { value, version: 0, floor: state.floor };
    return version > state.floor ? { value, version, floor: version } : undefined;
  }

  return (state, step) => {
    switch (step.kind) {
      case 'get':
        return state.value === step.value ? state : undefined;
      case 'has':
        return state.value === 0 ? undefined : state;
      case 'put':
        return stored(state, step.value, step.version);
      case 'delete':
        if (step.found !== undefined && step.found !== (state.value !== 0)) return undefined;
        return state.value === 0 ? state : stored(state, 0, 0);
      case 'swap': {
        const compared =
          step.expected === 0 ? (state.value === 0 ? state : undefined) : withVersion(state, step.expected);
        return compared === undefined ? undefined : stored(compared, step.value, step.version);
      }
      case 'lost-swap':
        if (step.version === step.expected) return undefined;
        if (step.version === 0) return state.value === 0 ? state : undefined;
        return withVersion(state, step.version);
      case 'loss':
        return stored(state, 0, 0);
    }
  };
}

/** The value that the key must have for this step, where the step names it; else 0. */
export function valueNeeded({ kind, value, version, expected }: Step, givenTo: ReadonlyMap<number, number>): number {
  switch (kind) {
    case 'get':
      return value;
    case 'swap':
      return givenTo.get(expected) ?? 0;
    case 'lost-swap':
      return givenTo.get(version) ?? 0;
    default:
      return 0;
  }
}

/** Ranks of all versions that a history names. */
export function rankVersions(
  operations: readonly Operation[],
  versionOf: ReadonlyMap<string, bigint>,
): ReadonlyMap<bigint, number> {
  const all = new Set(versionOf.values());
  for (const o of operations) {
    if (o.kind === 'get' && o.version !== undefined) all.add(o.version);
    if (o.kind !== 'swap') continue;
    all.add(o.expected);
    if (typeof o.outcome === 'object') all.add(o.outcome.version);
  }
  all.delete(0n);
  const sorted = [...all].sort((a, b) => (a < b ? -1 : 1));
  return new Map([[0n, 0], ...sorted.map((version, i) => [version, i + 1] as const)]);
}
