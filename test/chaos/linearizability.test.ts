/** The checker takes what a register can have answered, and refuses what it cannot. */
import test from 'ava';
import { seeded } from '../support/random.js';
import { checkKey } from './linearizability.js';
import type { Delete, Get, Has, Loss, Operation, Put, Swap } from './operation.js';
import { anyHistory, isLinearizable, randomHistory } from './random-histories.js';

const get = (call: number, end: number, value: string | undefined, version?: bigint): Get => ({
  kind: 'get',
  call,
  end,
  by: 'reader',
  value,
  version,
});
const has = (call: number, end: number): Has => ({ kind: 'has', call, end, by: 'reader' });
const put = (call: number, end: number, value: string): Put => ({
  kind: 'put',
  call,
  end,
  by: 'writer',
  value,
  outcome: end === Infinity ? 'open' : 'stored',
});
const remove = (call: number, end: number, found: boolean): Delete => ({
  kind: 'delete',
  call,
  end,
  by: 'remover',
  outcome: end === Infinity ? 'open' : found ? 'deleted' : 'absent',
});
const swap = (
  call: number,
  end: number,
  expected: bigint,
  value: string | undefined,
  swapped: boolean,
  version: bigint,
): Swap => ({
  kind: 'swap',
  call,
  end,
  by: 'swapper',
  expected,
  value,
  outcome: end === Infinity ? 'open' : { swapped, version },
});
const loss = (call: number, end: number): Loss => ({ kind: 'loss', call, end, by: 'nemesis' });

const right: Readonly<Record<string, readonly Operation[]>> = {
  'an empty history': [],
  'a read before and after a write': [get(0, 1, undefined), put(2, 3, 'a'), get(4, 5, 'a', 1n)],
  'reads during a write may see either value': [
    put(0, 1, 'a'),
    put(10, 20, 'b'),
    get(11, 12, 'a'),
    get(13, 14, 'b'),
    get(21, 22, 'b'),
  ],
  'an open write is seen late': [put(0, 1, 'a'), put(2, Infinity, 'b'), get(5, 6, 'a'), get(100, 101, 'b')],
  'a presence after a write, and one that an open write explains': [
    put(0, 1, 'a'),
    has(2, 3),
    remove(4, 5, true),
    put(6, Infinity, 'b'),
    has(7, 8),
  ],
  'a delete that did not say whether there was something': [
    { ...remove(0, 1, false), outcome: 'gone' },
    put(2, 3, 'a'),
    { ...remove(4, 5, true), outcome: 'gone' },
    get(6, 7, undefined),
  ],
  'an open write is never seen': [put(0, 1, 'a'), put(2, Infinity, 'b'), get(5, 6, 'a'), get(100, 101, 'a')],
  'an open write explains what a delete found': [
    put(0, 1, 'a'),
    remove(2, 3, true),
    put(4, Infinity, 'b'),
    remove(5, 6, true),
  ],
  'an open delete is seen late': [put(0, 1, 'a'), remove(2, Infinity, true), get(5, 6, 'a'), get(100, 101, undefined)],
  'a swap by the version that was read': [
    put(0, 1, 'a'),
    get(2, 3, 'a', 7n),
    swap(4, 5, 7n, 'b', true, 8n),
    swap(6, 7, 7n, 'c', false, 8n),
    get(8, 9, 'b', 8n),
  ],
  'a swap that lost tells a version that nobody read': [
    put(0, 1, 'a'),
    swap(2, 3, 0n, 'b', false, 5n),
    swap(4, 5, 5n, 'c', true, 6n),
  ],
  'of two swaps by one version one wins': [
    put(0, 1, 'a'),
    get(2, 3, 'a', 1n),
    swap(4, 9, 1n, 'b', true, 2n),
    swap(4, 9, 1n, 'c', false, 2n),
  ],
  'an open swap took effect': [
    put(0, 1, 'a'),
    get(2, 3, 'a', 1n),
    swap(4, Infinity, 1n, 'b', true, 2n),
    swap(4, 9, 1n, 'c', false, 2n),
    get(10, 11, 'b', 2n),
  ],
  'a miss after a loss': [
    put(0, 1, 'a'),
    loss(2, Infinity),
    get(3, 4, 'a'),
    get(5, 6, undefined),
    put(7, 8, 'b'),
    get(9, 10, 'b'),
  ],
  'a loss that did not happen': [put(0, 1, 'a'), loss(2, 3), get(4, 5, 'a')],
  'a write is acknowledged after the loss began and lost': [
    put(0, 1, 'a'),
    loss(2, 20),
    put(3, 4, 'b'),
    get(5, 6, 'b'),
    get(21, 22, undefined),
  ],
  'of two writes at once the one that ends later came before a loss': [
    put(0, 100, 'b'),
    loss(0, 10),
    swap(0, 30, 1n, 'c', false, 5n),
    put(20, 90, 'a'),
    get(31, 40, undefined),
    swap(50, 60, 1n, 'd', false, 6n),
  ],
  'an absent key stays absent across the end of a loss': [
    put(0, 10, 'a'),
    loss(0, 5),
    get(6, 7, undefined),
    get(11, 12, undefined),
  ],
};

const wrong: Readonly<Record<string, readonly Operation[]>> = {
  'a stale read': [put(0, 1, 'a'), put(2, 3, 'b'), get(4, 5, 'a')],
  'a stale read after another reader saw the open write': [
    put(0, 1, 'a'),
    put(2, Infinity, 'b'),
    get(5, 6, 'b'),
    get(7, 8, 'a'),
  ],
  'a read of a write that is still to come': [get(0, 1, 'a'), put(2, 3, 'a')],
  'a lost update': [put(0, 1, 'a'), get(2, 3, undefined)],
  'an acknowledged write below one that was there before': [
    put(0, 1, 'a'),
    get(2, 3, 'a', 5n),
    put(4, 5, 'b'),
    get(6, 7, 'b', 4n),
  ],
  'a resurrected value': [put(0, 1, 'a'), remove(2, 3, true), get(4, 5, undefined), get(6, 7, 'a')],
  'a delete that finds what was deleted': [put(0, 1, 'a'), remove(2, 3, true), remove(4, 5, true)],
  'a swap that won twice': [
    put(0, 1, 'a'),
    get(2, 3, 'a', 1n),
    swap(4, 9, 1n, 'b', true, 2n),
    swap(4, 9, 1n, 'c', true, 3n),
  ],
  'two swaps of an absent key that both won': [swap(0, 9, 0n, 'a', true, 1n), swap(0, 9, 0n, 'b', true, 2n)],
  'a swap that lost to the version that it expected': [
    put(0, 1, 'a'),
    get(2, 3, 'a', 1n),
    swap(4, 5, 1n, 'b', false, 1n),
  ],
  'one write under two versions': [put(0, 1, 'a'), get(2, 3, 'a', 1n), get(4, 5, 'a', 2n)],
  'one version for two values': [put(0, 1, 'a'), get(2, 3, 'a', 1n), put(4, 5, 'b'), get(6, 7, 'b', 1n)],
  'a value that nobody wrote': [get(0, 1, 'a')],
  'a value whose write promised to have had no effect': [{ ...put(0, 1, 'a'), outcome: 'no-effect' }, get(2, 3, 'a')],
  'a value whose swap was told that it lost': [put(0, 1, 'a'), swap(2, 3, 9n, 'b', false, 1n), get(4, 5, 'b')],
  'a value from before a loss after a miss': [put(0, 1, 'a'), loss(2, Infinity), get(3, 4, undefined), get(5, 6, 'a')],
  'a miss before the loss began': [put(0, 1, 'a'), get(2, 3, undefined), loss(4, Infinity)],
  'a miss of what was written after the loss was over': [
    put(0, 1, 'a'),
    loss(2, 3),
    put(4, 5, 'b'),
    get(6, 7, undefined),
  ],
  'a presence after a delete': [put(0, 1, 'a'), remove(2, 3, true), has(4, 5)],
  'a presence of what nobody wrote': [has(0, 1), put(2, 3, 'a')],
  'a value after a delete that did not say whether there was something': [
    put(0, 1, 'a'),
    { ...remove(2, 3, true), outcome: 'gone' },
    get(4, 5, 'a'),
  ],
  'one loss that takes two values': [
    put(0, 1, 'a'),
    loss(2, Infinity),
    get(3, 4, undefined),
    put(5, 6, 'b'),
    get(7, 8, undefined),
  ],
};

for (const [what, history] of Object.entries(right)) {
  test(`accepted: ${what}`, (t) => {
    const verdict = checkKey(history);
    t.true(verdict.linearizable, verdict.linearizable ? '' : verdict.why);
    t.true(isLinearizable(history));
  });
}

for (const [what, history] of Object.entries(wrong)) {
  test(`refused: ${what}`, (t) => {
    const verdict = checkKey(history);
    t.false(verdict.linearizable);
    if (!verdict.linearizable) t.false(verdict.undecided, verdict.why);
  });
}

/** Values that are all written and read at the same time: each order of them is another way. */
const intertwined = (count: number): Operation[] =>
  Array.from({ length: count }, (_, i) => [put(0, 100, `v${i}`), get(0, 100, `v${i}`)]).flat();

test('a search that is given up is no acceptance', (t) => {
  const verdict = checkKey([...intertwined(12), get(101, 102, undefined)], 100);
  t.like(verdict, { linearizable: false, undecided: true });
});

// Every choice of the open operations, or every order of the writes, is 2^40 configurations and more.
const MANY = 40;
const FEW_CONFIGURATIONS = 2000;
const many = (one: (i: number) => Operation): Operation[] => Array.from({ length: MANY }, (_, i) => one(i));
const refusedSoon: Readonly<Record<string, readonly Operation[]>> = {
  'many open writes and deletes that nobody saw': [
    ...many((i) => (i % 2 === 0 ? put(10 * i, Infinity, `open ${i}`) : remove(10 * i, Infinity, true))),
    ...many((i) => put(10 * i + 1, 10 * i + 2, `v${i}`)),
    ...many((i) => get(10 * i + 3, 10 * i + 4, `v${i}`)),
  ],
  'many losses that may have been': [
    ...many((i) => loss(10 * i, 10 * i + 15)),
    ...many((i) => put(10 * i + 1, 10 * i + 2, `v${i}`)),
    ...many((i) => get(10 * i + 3, 10 * i + 4, `v${i}`)),
  ],
  'many writes at once that nobody saw': many((i) => put(i, 1000 + i, `v${i}`)),
  'many deletes and writes at once': many((i) => (i % 2 === 0 ? put(0, 1000, `v${i}`) : remove(0, 1000, true))),
  'many writes at once, each of which is read later than another one ends': [
    ...many((i) => put(10 * i, 10 * i + 1000, `v${i}`)),
    ...many((i) => get(10 * i + 995, 10 * i + 1005, `v${i}`)),
  ],
};
for (const [what, history] of Object.entries(refusedSoon)) {
  test(`accepted, and with a stale read refused, in few configurations: ${what}`, (t) => {
    const verdict = checkKey([...history, put(2000, 2001, 'a'), get(2002, 2003, 'a')], FEW_CONFIGURATIONS);
    t.true(verdict.linearizable, verdict.linearizable ? '' : verdict.why);
    const stale = [...history, put(2000, 2001, 'a'), put(2002, 2003, 'b'), get(2004, 2005, 'a')];
    t.like(checkKey(stale, FEW_CONFIGURATIONS), { linearizable: false, undecided: false });
  });
}

test('the verdict on small random histories is that of trying every order', (t) => {
  const random = seeded(t, import.meta.filename);
  let accepted = 0;
  for (let round = 0; round < 30_000; round++) {
    const history = anyHistory(random);
    const expected = isLinearizable(history) && !readsALoser(history);
    const verdict = checkKey(history);
    if (verdict.linearizable !== expected)
      t.fail(`round ${round}: ${JSON.stringify(history, (_, v: unknown) => (typeof v === 'bigint' ? `${v}n` : v), 1)}`);
    if (expected) accepted++;
  }
  t.log(`${accepted} of 30000 are linearizable`);
  t.true(accepted > 3000 && accepted < 27_000);
});

/**
 * A value of a swap that lost was read: the order of what happened does not show it, because such a swap changes
 * nothing.
 */
function readsALoser(history: readonly Operation[]): boolean {
  const lost = new Set(
    history.flatMap((o) => (o.kind === 'swap' && typeof o.outcome === 'object' && !o.outcome.swapped ? [o.value] : [])),
  );
  return history.some((o) => o.kind === 'get' && o.value !== undefined && lost.has(o.value));
}

test('what a register answered is accepted, with open operations and losses in it', (t) => {
  const random = seeded(t, import.meta.filename);
  let configurations = 0;
  for (let round = 0; round < 60; round++) {
    const history = randomHistory(random, {
      operations: 1500,
      clients: 1 + random.below(12),
      open: random.below(4),
      loss: random.below(2),
    });
    const verdict = checkKey(shuffled(history, (n) => random.below(n)));
    if (!verdict.linearizable) t.fail(`round ${round}: ${verdict.why}`);
    else configurations += verdict.configurations;
  }
  t.log(`${configurations} configurations for ${60 * 1500} operations`);
  t.pass();
});

function shuffled<T>(list: readonly T[], below: (n: number) => number): T[] {
  const all = [...list];
  for (let i = all.length - 1; i > 0; i--) {
    const j = below(i + 1);
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}

test('one stale read in a long history of a register is refused', (t) => {
  const random = seeded(t, import.meta.filename);
  let mutated = 0;
  for (let round = 0; round < 60; round++) {
    const history = randomHistory(random, { operations: 600, clients: 6, open: random.below(3), loss: 0 });
    const puts = history.filter((o) => o.kind === 'put' && o.outcome === 'stored');
    const candidates = history.flatMap((o, i) => {
      if (o.kind !== 'get') return [];
      const later = puts.filter((p) => p.end < o.call);
      const old = later.find((p) => later.some((q) => q.call > p.end));
      return old?.kind === 'put' && old.value !== o.value ? [{ i, value: old.value }] : [];
    });
    if (candidates.length === 0) continue;
    const { i, value } = random.pick(candidates);
    const verdict = checkKey(
      history.map((o, at) => (at === i && o.kind === 'get' ? { ...o, value, version: undefined } : o)),
    );
    t.false(verdict.linearizable, `round ${round}, operation ${i}`);
    mutated++;
  }
  t.true(mutated > 50);
});

test('one swap that wins although it lost, in a long history of a register, is refused', (t) => {
  const random = seeded(t, import.meta.filename);
  let mutated = 0;
  for (let round = 0; round < 60; round++) {
    const history = randomHistory(random, { operations: 600, clients: 6, open: 0, loss: 0 });
    // The version that it compared with was replaced by another swap that won: it cannot be replaced again.
    const won = new Set(
      history.flatMap((o) =>
        o.kind === 'swap' && typeof o.outcome === 'object' && o.outcome.swapped && o.expected !== 0n
          ? [o.expected]
          : [],
      ),
    );
    const losers = history.flatMap((o, i) =>
      o.kind === 'swap' && typeof o.outcome === 'object' && !o.outcome.swapped && won.has(o.expected) ? [i] : [],
    );
    if (losers.length === 0) continue;
    const chosen = random.pick(losers);
    const verdict = checkKey(
      history.map((o, i) =>
        i === chosen && o.kind === 'swap' ? { ...o, outcome: { swapped: true, version: 1_000_000n } } : o,
      ),
    );
    t.false(verdict.linearizable, `round ${round}, operation ${chosen}`);
    mutated++;
  }
  t.true(mutated > 20);
});
