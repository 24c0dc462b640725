/**
 * Histories for testing the checker: drawn from a register that is linearizable by construction, and a second checker
 * that is too simple to be wrong, and too slow for anything but a handful of operations.
 */
import type { Random } from '../support/random.js';
import { written, type Operation } from './operation.js';

interface Draw {
  readonly operations: number;
  readonly clients: number;
  /** In 100: how many changes stay without an answer. */
  readonly open: number;
  /** In 100: how many operations are the loss of the memory. */
  readonly loss: number;
}

/**
 * Each operation takes effect at a moment between its call and its end, on one register, in the order of these moments.
 */
export function randomHistory(random: Random, draw: Draw): Operation[] {
  interface Planned {
    readonly call: number;
    readonly effect: number;
    readonly end: number;
    readonly by: string;
    readonly kind: number;
  }
  const planned: Planned[] = [];
  const free = Array.from({ length: draw.clients }, () => 0);
  for (let i = 0; i < draw.operations; i++) {
    const client = random.below(draw.clients);
    const call = (free[client] ?? 0) + random.below(40);
    const effect = call + random.below(60);
    const end = effect + random.below(60);
    free[client] = end + 1;
    planned.push({ call, effect, end, by: `client ${client}`, kind: random.below(100) });
  }
  planned.sort((a, b) => a.effect - b.effect);

  const history: Operation[] = [];
  let value: string | undefined;
  let version = 0n;
  let given = 0n;
  /** Versions that somebody may compare with: the present ones and old ones. */
  let seen = [0n];
  for (const [i, { call, end, by, kind }] of planned.entries()) {
    const open = random.below(100) < draw.open;
    const answered = { call, end, by };
    const unanswered = { call, end: Infinity, by };
    const fresh = `v${i}`;
    if (random.below(100) < draw.loss) {
      history.push({ kind: 'loss', ...(random.below(2) === 0 ? answered : unanswered) });
      if (random.below(3) > 0) value = undefined;
    } else if (kind < 45) {
      const withVersion = random.below(2) === 0;
      history.push({
        kind: 'get',
        ...answered,
        value,
        version: withVersion && value !== undefined ? version : undefined,
      });
      if (withVersion) seen = [...seen.slice(-2), value === undefined ? 0n : version];
    } else if (kind < 65) {
      history.push(
        open
          ? { kind: 'put', ...unanswered, value: fresh, outcome: 'open' }
          : { kind: 'put', ...answered, value: fresh, outcome: 'stored' },
      );
      if (open && random.below(2) === 0) continue;
      value = fresh;
      version = ++given;
    } else if (kind < 75) {
      history.push(
        open
          ? { kind: 'delete', ...unanswered, outcome: 'open' }
          : { kind: 'delete', ...answered, outcome: value === undefined ? 'absent' : 'deleted' },
      );
      if (open && random.below(2) === 0) continue;
      value = undefined;
    } else {
      const expected = random.pick(seen);
      const present = value === undefined ? 0n : version;
      const swapped = expected === present;
      const stored = expected !== 0n && random.below(4) === 0 ? undefined : fresh;
      if (!open)
        history.push({
          kind: 'swap',
          ...answered,
          expected,
          value: stored,
          outcome: { swapped, version: swapped ? given + 1n : present },
        });
      else history.push({ kind: 'swap', ...unanswered, expected, value: stored, outcome: 'open' });
      if (!swapped || (open && random.below(2) === 0)) continue;
      value = stored;
      version = ++given;
    }
  }
  return history;
}

/** Answers at random: some of these histories are linearizable, most are not. At most 8 operations. */
export function anyHistory(random: Random): Operation[] {
  const history = randomHistory(random, {
    operations: 2 + random.below(6),
    clients: 2 + random.below(5),
    open: random.pick([0, 25, 50]),
    loss: random.pick([0, 12, 30]),
  });
  const values = history.map(written).filter((value) => value !== undefined);
  return history.map((o): Operation => {
    if (random.below(4) !== 0) return o;
    if (o.kind === 'get' && random.below(3) === 0) return { kind: 'has', call: o.call, end: o.end, by: o.by };
    if (o.kind === 'get') return { ...o, value: values[random.below(values.length + 1)], version: undefined };
    if (o.kind === 'delete' && o.outcome !== 'open')
      return { ...o, outcome: random.pick(['deleted', 'absent', 'gone']) };
    if (o.kind === 'swap')
      return {
        ...o,
        expected: BigInt(random.below(4)),
        outcome: o.outcome === 'open' ? 'open' : { swapped: random.below(2) === 0, version: BigInt(random.below(5)) },
      };
    return o;
  });
}

/** Tries every order of every choice of open operations. */
export function isLinearizable(history: readonly Operation[]): boolean {
  const may = (o: Operation): boolean =>
    o.kind === 'loss' || (o.kind !== 'get' && o.kind !== 'has' && o.outcome === 'open');
  interface World {
    readonly value: string | undefined;
    readonly versions: readonly (readonly [string, bigint | undefined])[];
  }

  /**
   * `versions`: of all writes so far, in their order, where known. The last one is the key's, when there is a value.
   */
  function consistent(versions: World['versions']): boolean {
    const known = versions.map(([, v]) => v).filter((v) => v !== undefined);
    return known.every((v, i) => i === 0 || v > (known[i - 1] ?? 0n));
  }
  function bind({ value, versions }: World, version: bigint): World | undefined {
    const last = versions.at(-1);
    if (value === undefined || last === undefined || version === 0n) return undefined;
    if (last[1] !== undefined) return last[1] === version ? { value, versions } : undefined;
    const bound = { value, versions: [...versions.slice(0, -1), [last[0], version] as const] };
    return consistent(bound.versions) ? bound : undefined;
  }
  function store(world: World, value: string | undefined, version: bigint | undefined): World | undefined {
    if (value === undefined) return { ...world, value };
    if (version === 0n) return undefined;
    const next = { value, versions: [...world.versions, [value, version] as const] };
    return consistent(next.versions) ? next : undefined;
  }
  function apply(world: World, o: Operation): World | undefined {
    switch (o.kind) {
      case 'get':
        if (o.value !== world.value) return undefined;
        return o.version === undefined ? world : bind(world, o.version);
      case 'has':
        return world.value === undefined ? undefined : world;
      case 'put':
        return store(world, o.value, undefined);
      case 'delete':
        return o.outcome !== 'open' && o.outcome !== 'gone' && (o.outcome === 'deleted') !== (world.value !== undefined)
          ? undefined
          : { ...world, value: undefined };
      case 'loss':
        return { ...world, value: undefined };
      case 'swap': {
        if (o.outcome !== 'open' && typeof o.outcome === 'object' && !o.outcome.swapped) {
          if (o.outcome.version === o.expected) return undefined;
          if (o.outcome.version === 0n) return world.value === undefined ? world : undefined;
          return bind(world, o.outcome.version);
        }
        const compared = o.expected === 0n ? (world.value === undefined ? world : undefined) : bind(world, o.expected);
        return compared === undefined
          ? undefined
          : store(compared, o.value, typeof o.outcome === 'object' ? o.outcome.version : undefined);
      }
    }
  }
  function search(world: World, rest: readonly Operation[]): boolean {
    if (rest.every(may)) return true;
    return rest.some((o) => {
      const others = rest.filter((one) => one !== o);
      if (others.some((one) => one.end < o.call && !may(one))) return false;
      // What may be left out and would have had to happen before is left out from here on.
      const next = apply(world, o);
      return (
        next !== undefined &&
        search(
          next,
          others.filter((one) => one.end >= o.call),
        )
      );
    });
  }
  return search({ value: undefined, versions: [] }, history);
}
