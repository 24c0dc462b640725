import test from 'ava';
import { formatSize, parseSize } from './size.js';

test('sizes are read in powers of 1,024', (t) => {
  t.deepEqual(['4096', '1k', '64mb', '64 MiB', '1gb', '1.5G', '2tb', 100].map(parseSize), [
    4096,
    1024,
    2 ** 26,
    2 ** 26,
    2 ** 30,
    1.5 * 2 ** 30,
    2 ** 41,
    100,
  ]);
  for (const bad of ['', 'gb', '-1', '1 pb', '1e3', '0x10', '1gbb', 'NaN', undefined])
    t.throws(() => parseSize(bad), { message: /is not a size/ }, String(bad));
});

test('sizes are shown with the unit that fits', (t) => {
  t.deepEqual([0, 1023, 1024, 1.5 * 2 ** 20, 200 * 2 ** 30].map(formatSize), [
    '0 B',
    '1023 B',
    '1.0 KiB',
    '1.5 MiB',
    '200 GiB',
  ]);
});
