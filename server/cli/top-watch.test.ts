import test from 'ava';
import type { Look } from '../http/view.js';
import { watch, type WithServer } from './top-watch.js';

const at = (atMs: number): Look => ({ atMs }) as Look;
const gone = (): Promise<Look> => Promise.reject(new Error('gone'));
const still = (): Promise<void> => Promise.resolve();

/** Each connection gives these looks, and breaks. */
function servers(...all: number[][]): WithServer {
  return async (use) => {
    const looks = all.shift();
    if (looks === undefined) throw new Error('no server answers');
    await use(() => {
      const next = looks.shift();
      return next === undefined ? gone() : Promise.resolve(at(next));
    });
  };
}

test('when its server is gone, farkv top goes on with another until there is none', async (t) => {
  const shown: [number, number | undefined][] = [];
  const show = (now: Look, before: Look | undefined): number => shown.push([now.atMs, before?.atMs]);
  const { signal } = new AbortController();
  await t.throwsAsync(watch(servers([1, 2], [3]), show, still, signal), { message: 'no server answers' });
  t.deepEqual(shown, [
    [1, undefined],
    [2, 1],
    [3, 2],
  ]);
});

test('farkv top ends when it is told to, and where a server answers but shows nothing', async (t) => {
  const end = new AbortController();
  await t.notThrowsAsync(watch(servers([1, 2, 3]), ({ atMs }) => atMs === 2 && end.abort(), still, end.signal));
  const { signal } = new AbortController();
  await t.throwsAsync(
    watch(servers([], [1]), () => undefined, still, signal),
    { message: 'gone' },
  );
});
