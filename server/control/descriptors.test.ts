import test from 'ava';
import { CONTROL_PLACES } from './bounds.js';
import { descriptorsMax, withinDescriptors } from './descriptors.js';

test('the limit is the one that counts now', (t) => {
  const text = (soft: string): string =>
    `Limit                     Soft Limit           Hard Limit           Units     \nMax processes             7                    7                    processes \nMax open files            ${soft}                 1048576              files     \n`;
  t.is(descriptorsMax(text('1024')), 1024);
  t.is(descriptorsMax(text('unlimited')), Infinity);
  t.is(descriptorsMax(''), Infinity);
  t.true(descriptorsMax() >= 64);
});

test('connections without a login leave most descriptors to others', (t) => {
  t.deepEqual(withinDescriptors(CONTROL_PLACES, 1 << 20), CONTROL_PLACES);
  t.deepEqual(withinDescriptors(CONTROL_PLACES, Infinity), CONTROL_PLACES);
  t.deepEqual(withinDescriptors(CONTROL_PLACES, 1024), { ...CONTROL_PLACES, strangers: 64, known: 64 });
  t.deepEqual(withinDescriptors({ strangers: 5, known: 500 }, 160), { strangers: 5, known: 10 });
});
