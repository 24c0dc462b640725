import test from 'ava';
import { Logins } from './logins.js';

function logins() {
  const clock = { ms: 0 };
  return { made: new Logins(() => clock.ms), clock };
}

test('after some wrong tokens an address waits, longer each time', (t) => {
  const { made, clock } = logins();
  for (let i = 0; i < 9; i++) {
    made.wrong('a');
    t.is(made.waitMs('a'), 0);
  }
  const waits: number[] = [];
  for (let i = 0; i < 12; i++) {
    made.wrong('a');
    waits.push(made.waitMs('a'));
    clock.ms += waits.at(-1)!;
    t.is(made.waitMs('a'), 0);
  }
  t.deepEqual(waits.slice(0, 4), [100, 200, 400, 800]);
  t.is(waits.at(-1), 30_000);
});

test('an address waits for its own wrong tokens alone, and is forgiven in time', (t) => {
  const { made, clock } = logins();
  for (let i = 0; i < 30; i++) made.wrong('a');
  t.true(made.waitMs('a') > 0);
  t.is(made.waitMs('b'), 0);
  clock.ms += 120_000;
  t.is(made.waitMs('a'), 0);
  made.wrong('a');
  t.is(made.waitMs('a'), 0);
});

test('an attacker with many addresses costs a bounded memory', (t) => {
  const { made } = logins();
  for (let i = 0; i < 10; i++) made.wrong('first');
  t.true(made.waitMs('first') > 0);
  for (let i = 0; i < 5000; i++) made.wrong(`a${i}`);
  t.is(made.waitMs('first'), 0);
});

test('a token that an address was let in with is looked at whatever others of the address show', (t) => {
  const { made } = logins();
  made.right('a', 'right');
  for (let i = 0; i < 30; i++) made.wrong('a', `guess ${i}`);
  t.true(made.waitMs('a', 'another') > 0);
  t.is(made.waitMs('a', 'right'), 0);
  t.is(made.waitMs('b', 'right'), 0);
  for (let i = 0; i < 30; i++) made.wrong('b', `guess ${i}`);
  t.true(made.waitMs('b', 'right') > 0, 'of that address alone');
  made.wrong('a', 'right');
  t.true(made.waitMs('a', 'right') > 0, 'it is right no more');
});
