import test from 'ava';
import { RecoveryBar } from './recovery-bar.js';

const at = (bytes: number) => ({ event: 'recovering', bytes, all: 4 << 20 }) as const;

test('on a terminal values that are read are a bar, above which other lines go', (t) => {
  const written: string[] = [];
  let ms = 0;
  const bar = new RecoveryBar({ isTTY: true, write: (text: string) => written.push(text) }, () => ms);
  ms = 300;
  t.true(bar.takes(at(1 << 20)));
  t.is(written.join(''), '\r\x1b[Krecovering values [########......................] 25 %, 1.0 MiB of 4.0 MiB');
  written.length = 0;
  t.false(bar.takes(undefined));
  t.false(bar.takes({ event: 'leader' }));
  t.deepEqual(written, ['\r\x1b[K']);
});

test('elsewhere they are a line every two seconds', (t) => {
  let ms = 0;
  const bar = new RecoveryBar(undefined, () => ms);
  const kept: number[] = [];
  for (ms = 0; ms < 5000; ms += 250) if (!bar.takes(at(ms))) kept.push(ms);
  t.deepEqual(kept, [2000, 4000]);
});
