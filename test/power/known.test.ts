/** What a cut of the power may leave of values, and what it may not. */
import test from 'ava';
import { makeValue } from '../chaos/values.js';
import { Known, lineOf, textOf, versionAt, versionOf, type Line } from './known.js';

function after(...lines: readonly Line[]): readonly string[] {
  const known = new Known();
  for (const line of lines) known.learn(line);
  return known.losses;
}
const ack = (version: number): Line => ({ t: 'ack', key: 'a', version });
const saw = (version: number): Line => ({ t: 'saw', key: 'a', version });
const has = (version: number | undefined): Line => ({ t: 'has', key: 'a', version });

test('a value that was acknowledged or READ is there afterwards, or a later one', (t) => {
  t.deepEqual(after(ack(1), ack(2), has(2)), []);
  t.deepEqual(after(ack(1), has(3)), [], 'one that was under way');
  t.deepEqual(after(has(undefined), ack(1), has(1), has(1)), []);
  t.deepEqual(after(ack(2), has(1)), ['a is at 1, and 2 was acknowledged or READ']);
  t.deepEqual(after(ack(2), has(undefined)), ['a is at nothing, and 2 was acknowledged or READ']);
  t.deepEqual(
    after(ack(1), saw(2), has(1)),
    ['a is at 1, and 2 was acknowledged or READ'],
    'READ, and not acknowledged',
  );
  t.is(after(ack(1), has(3), has(1)).length, 1, 'what was there after the first cut');
  t.is(after({ t: 'wrong', key: 'a', what: 'nothing' }).length, 1);
});

test('a line that was cut off says nothing', (t) => {
  const text = textOf(ack(1234)).trimEnd();
  t.deepEqual(lineOf(text), ack(1234));
  for (let i = 0; i < text.length; i++) t.is(lineOf(text.slice(0, i)), undefined);
});

test('versions rise from one start to the next, and are in the value', (t) => {
  t.true(versionAt(2, 0) > versionAt(1, 999_999));
  const value = makeValue('a', String(versionAt(3, 7)), 500);
  t.deepEqual(versionOf('a', value), { version: versionAt(3, 7) });
  t.true('wrong' in versionOf('b', value));
});
