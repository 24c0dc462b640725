import test from 'ava';
import { Progress } from './progress.js';

function progressOf(isTTY: boolean) {
  const written: string[] = [];
  const clock = { now: 0 };
  const sink = { isTTY, write: (text: string) => written.push(text) };
  return { written, clock, progress: new Progress('backup', sink, () => clock.now) };
}

test('on a terminal a bar is drawn in place, at most ten times a second, and taken away at the end', (t) => {
  const { written, clock, progress } = progressOf(true);
  progress.at(0.1, () => 'too early');
  clock.now = 100;
  progress.at(0.5, () => '7 entries');
  clock.now = 150;
  progress.at(0.6, () => 'too early');
  t.deepEqual(written, [`\r\x1b[Kbackup [${'#'.repeat(15)}${'.'.repeat(15)}] 50 %, 7 entries`]);
  progress.end();
  progress.end();
  t.deepEqual(written.slice(1), ['\r\x1b[K']);
});

test('elsewhere there is a line every ten seconds', (t) => {
  const { written, clock, progress } = progressOf(false);
  for (; clock.now < 30_000; clock.now += 1000) progress.at(clock.now / 30_000, () => `${clock.now} entries`);
  progress.end();
  t.deepEqual(written, ['backup: 33 %, 10000 entries\n', 'backup: 66 %, 20000 entries\n']);
});
