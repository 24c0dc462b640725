import test from 'ava';
import { zoneText } from './elements.js';

test('the zone of times is said as its offset, with minutes where it has some', (t) => {
  const zones = [0, -60, -330, 300, 210, -765].map(zoneText);
  t.deepEqual(zones, ['UTC', 'UTC+1', 'UTC+5:30', 'UTC-5', 'UTC-3:30', 'UTC+12:45']);
});
