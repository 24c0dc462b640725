/** What the check of lists and counters accepts, and which known faults it finds in recorded histories. */
import test from 'ava';
import { Random } from '../support/random.js';
import type { Loss } from './operation.js';
import { checkTail, digitOf, makePiece, type TailChange, type TailOperation, type TailRead } from './tails.js';

const interval = (call: number, end = call + 1) => ({ call, end, by: `at ${call}` });
const append = (call: number, id: string, outcome: TailChange['outcome']): TailChange => ({
  kind: 'append',
  ...interval(call, outcome === 'open' ? Infinity : undefined),
  id,
  client: 0,
  outcome,
});
const increment = (call: number, client: number, outcome: TailChange['outcome']): TailChange => ({
  ...append(call, `${call}`, outcome),
  kind: 'increment',
  client,
});
const told = (result: bigint | number): { readonly result: string } => ({ result: String(result) });
const read = (call: number, value: string | bigint): TailRead => ({
  kind: 'read',
  ...interval(call),
  value: String(value),
});
const loss: Loss = { kind: 'loss', ...interval(0, 100) };
const whys = (operations: readonly TailOperation[], losses: readonly Loss[] = []): string =>
  checkTail(operations, losses)
    .map(({ why }) => why)
    .join('; ');

test('a list that has what was appended, in order, is accepted', (t) => {
  const all = [
    append(0, 'a', told(2)),
    append(2, 'b', 'open'),
    append(4, 'c', told(6)),
    append(6, 'd', 'no-effect'),
    append(6, 'e', 'open'),
    read(1.5, 'a;'),
    read(8, 'a;b;c;'),
    { kind: 'touch', ...interval(9), outcome: true } as const,
  ];
  t.is(whys(all), '');
  t.is(whys([read(0, ''), { kind: 'touch', ...interval(1), outcome: false }]), '');
});

test('what a list cannot be is found', (t) => {
  const all = [append(0, 'a', told(2)), append(2, 'b', told(4)), append(4, 'n', 'no-effect'), append(4, 'o', 'open')];
  const refused = (more: TailOperation, why: RegExp): unknown => t.regex(whys([...all, read(6, 'a;b;'), more]), why);
  refused(read(8, 'a;b;b;'), /in it twice: b/);
  refused(read(8, 'a;b;o;o;'), /in it twice: o/);
  refused(read(8, 'a;'), /b was acknowledged before, and is not in it/);
  refused(read(8, 'b;a;'), /does not begin as/);
  refused(read(8, 'a;b;n;'), /n is in it, and was told to have no effect/);
  refused(read(8, 'a;b;x;'), /x is in it, and nobody appended it/);
  refused(read(8, 'a;b;tor'), /no pieces: tor/);
  refused(append(8, 'late', told(4)), /b was told the same length/);
  refused({ kind: 'touch', ...interval(8), outcome: false }, /touch found nothing/);
  t.regex(whys([append(0, 'a', told(7)), read(2, 'a;')]), /told the length 7, and ends at 2/);
  t.regex(whys([append(0, 'a', told(4)), append(2, 'b', told(2)), read(4, 'b;a;')]), /a lies behind what was asked/);
  t.regex(whys([read(0, 'a;'), append(2, 'a', told(2))]), /before it was asked for/);
  // Where the memory was lost the list may begin anew, and what is in it is still there once.
  t.is(whys([...all, read(6, 'a;b;'), read(8, 'o;')], [loss]), '');
  t.regex(whys([...all, read(8, 'o;o;')], [loss]), /in it twice: o/);
});

test('a counter that counts each acknowledged increment once, and others at most once, is accepted', (t) => {
  const [one, two] = [digitOf(1), digitOf(2)];
  const all = [
    increment(0, 1, told(one)),
    increment(2, 2, told(one + two)),
    increment(4, 1, 'open'),
    increment(4, 2, 'no-effect'),
  ];
  t.is(whys([...all, read(6, one + two)]), '');
  t.is(whys([...all, read(6, 2n * one + two)]), '');
});

test('what a counter cannot be is found', (t) => {
  const [one, two] = [digitOf(1), digitOf(2)];
  const all = [increment(0, 1, told(one)), increment(2, 1, told(2n * one)), increment(4, 2, 'open')];
  const refused = (more: TailOperation, why: RegExp): unknown => t.regex(whys([...all, more]), why);
  refused(read(6, one), /1 increments of client 1 are in it, and 2 must be/);
  refused(read(6, 3n * one), /3 increments of client 1 are in it, and 2 were asked for/);
  refused(read(6, 2n * one + 2n * two), /2 increments of client 2 are in it, and 1 were asked for/);
  refused(increment(6, 1, told(2n * one)), /told the sum/);
  refused(increment(6, 3, told(2n * one)), /0 increments of client 3 are in it, and 1 must be/);
  t.regex(whys([...all, read(6, 2n * one + two), read(8, 2n * one)]), /less of client 2 than an earlier answer/);
  t.is(whys([...all, read(6, 0n)], [loss]), '');
  t.regex(whys([...all, read(6, 3n * one)], [loss]), /were asked for/);
});

const AGAIN = 20;

/** Changes at known moments within their intervals, some of them without an answer; `again`: one is made twice. */
function random(of: 'list' | 'counter', seed: Random, again: boolean): TailOperation[] {
  const history: TailOperation[] = [];
  let [list, sum] = ['', 0n];
  const open = new Set([...Array(40).keys()].filter(() => seed.below(4) === 0));
  for (let i = 0; i < 40; i++) {
    const span = { call: 10 * i - seed.below(15), end: 10 * i + seed.below(15), by: `${i}` };
    // Nobody else's changes without an answer could stand for the second one.
    const client = i === AGAIN ? 3 : seed.below(3);
    const isMade = !open.has(i) || i === AGAIN || seed.below(2) === 0;
    if (isMade) {
      for (let times = again && i === AGAIN ? 2 : 1; times > 0; times--) {
        list += makePiece(`p${i}`, i % 3).toString();
        sum += digitOf(client);
      }
    }
    const result = of === 'list' ? String(list.length) : String(sum);
    const outcome = open.has(i) ? 'open' : { result };
    const end = outcome === 'open' ? Infinity : span.end;
    history.push({ kind: of === 'list' ? 'append' : 'increment', ...span, end, id: `p${i}`, client, outcome });
    const value = of === 'list' ? list : String(sum);
    history.push({ kind: 'read', call: 10 * i + 1, end: 10 * i + 2 + seed.below(9), by: `read ${i}`, value });
  }
  return history;
}

for (const of of ['list', 'counter'] as const) {
  test(`random histories of a ${of} are accepted, and a change that was made twice is found`, (t) => {
    for (let seed = 1; seed <= 300; seed++) {
      t.is(whys(random(of, new Random(seed), false)), '', `seed ${seed}`);
      t.not(whys(random(of, new Random(seed), true)), '', `seed ${seed}`);
    }
  });
}
