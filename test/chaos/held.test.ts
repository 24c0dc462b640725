/** Whatever memory a value lies in, it is seen when something else is written there later. */
import test from 'ava';
import { Random } from '../support/random.js';
import { HeldValues } from './held.js';
import { makeValue, readValue } from './values.js';

function holding(): { held: HeldValues; changed: string[]; add: (memory: Buffer, id: string) => void } {
  const changed: string[] = [];
  const held = new HeldValues((_, what) => changed.push(what));
  return {
    held,
    changed,
    add: (memory, id) => held.add({ key: '0:a', id, by: 'get', cameNs: 0, look: () => readValue('0:a', memory) }),
  };
}

test('a value that is written over after it was given is seen at the second look, with what lies there now', (t) => {
  const { held, changed, add } = holding();
  const memory = makeValue('0:a', 'w-1', 300);
  add(memory, 'w-1');
  add(makeValue('0:a', 'w-2', 300), 'w-2');
  makeValue('0:b', 'w-3', 300).copy(memory);
  held.lookAtAll();
  t.is(changed.length, 1);
  t.regex(changed[0]!, /^0:a by w-1, which get gave, had changed when 1 more values had come: .*0:b by w-3/);
});

test('a whole value of the same key in the place of another is seen too', (t) => {
  const { held, changed, add } = holding();
  const memory = makeValue('0:a', 'w-1', 300);
  add(memory, 'w-1');
  makeValue('0:a', 'w-4', 300).copy(memory);
  held.lookAtAll();
  t.deepEqual(changed.length, 1);
});

test('each value is looked at again, also when more come than are held', (t) => {
  const { held, changed, add } = holding();
  for (let i = 0; i < 1000; i++) {
    add(makeValue('0:a', `w-${i}`, 60), `w-${i}`);
    held.lookAtSome(new Random(i));
  }
  held.lookAtAll();
  t.is(held.looks, 1000);
  t.deepEqual(changed, []);
});
