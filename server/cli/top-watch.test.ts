import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import type { Look } from '../http/view.js';
import { watch, type Watched } from './top-watch.js';

type Reply = number | 'gone' | 'refused' | 'nothing';

/** Every server knows of a and b. */
const at = (atMs: number): Look =>
  ({ atMs, status: { members: [{ control: ['a'] }, { control: ['b'] }] } }) as unknown as Look;

/** What each server says to one look after the other, the last for ever; and what happened. */
function rig(replies: Record<string, Reply[]>, more: Partial<Watched> = {}) {
  const [shown, closed, asked]: [string[], Set<string>, string[]] = [[], new Set(), []];
  const server: Watched['server'] = (address) => {
    asked.push(address);
    closed.delete(address);
    let end = (): void => undefined;
    const ended = new Promise<never>((_, reject) => {
      end = () => reject(new FarkvError('ERR_DISCONNECTED', `${address} closed`));
    });
    ended.catch(() => undefined);
    return {
      look: () => {
        const list = replies[address] ?? ['gone'];
        const reply = list.length > 1 ? list.shift() : list[0];
        if (typeof reply === 'number') return Promise.resolve(at(reply));
        if (reply === 'nothing') return ended;
        return Promise.reject(
          new FarkvError(reply === 'refused' ? 'ERR_UNAUTHORIZED' : 'ERR_DISCONNECTED', `${address} ${reply ?? ''}`),
        );
      },
      close: () => {
        closed.add(address);
        end();
      },
    };
  };
  const watched: Watched = {
    ...{ addresses: ['a'], timeoutMs: 0, server },
    show: (now, before) => shown.push(`${now.atMs} after ${before?.atMs ?? 'none'}`),
    silent: () => shown.push('silent'),
    wait: () => new Promise((resolve) => setImmediate(resolve)),
    ...more,
  };
  return { watched, shown, closed, asked };
}

const never = new AbortController().signal;

test('a server that is gone is replaced by one that it has told of, until none answers', async (t) => {
  const { watched, shown, closed } = rig({ a: [1, 2, 'gone'], b: [3, 'gone'] });
  await t.throwsAsync(watch(watched, never), { message: 'a gone; b gone' });
  t.deepEqual(shown, ['1 after none', '2 after 1', 'silent', '3 after 2', 'silent']);
  t.deepEqual([...closed].sort(), ['a', 'b']);
});

test('a server that says nothing is said to be silent, and replaced, long before the time-out', async (t) => {
  const end = new AbortController();
  const { watched, shown, closed } = rig({ a: [1, 'nothing'], b: [2, 3] }, { timeoutMs: 1e9 });
  const show: Watched['show'] = (now, before) => {
    watched.show(now, before);
    if (now.atMs === 3) end.abort();
  };
  await watch({ ...watched, show }, end.signal);
  t.deepEqual(shown, ['1 after none', 'silent', '2 after 1', '3 after 2']);
  t.deepEqual([...closed].sort(), ['a', 'b']);
});

test('servers that all start again are waited for, up to the time-out', async (t) => {
  const end = new AbortController();
  const { watched, shown } = rig({ a: [1, 'gone', 'gone', 'gone', 2] }, { timeoutMs: 1e9 });
  const show: Watched['show'] = (now, before) => {
    watched.show(now, before);
    if (now.atMs === 2) end.abort();
  };
  await watch({ ...watched, show }, end.signal);
  t.deepEqual([shown[0], shown.at(-1)], ['1 after none', '2 after 1']);
});

test('it ends at once with the signal, whatever is waited for', async (t) => {
  for (const replies of [['nothing'], [1, 'nothing']] as Reply[][]) {
    const end = new AbortController();
    const { watched, closed } = rig({ a: replies, b: ['nothing'] }, { timeoutMs: 1e9 });
    setTimeout(() => end.abort(), 50);
    await t.notThrowsAsync(watch(watched, end.signal));
    t.true(closed.has('a'));
  }
  // Before it is said that the server is silent: then no other is asked any more.
  const end = new AbortController();
  const wait: Watched['wait'] = (_, signal) =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
  const { watched, shown, closed, asked } = rig({ a: [1, 'nothing'], b: ['nothing'] }, { timeoutMs: 1e9 });
  let waits = 0;
  const paced: Watched['wait'] = (ms, signal) => (waits++ === 0 ? watched.wait(ms, signal) : wait(ms, signal));
  const show: Watched['show'] = (now, before) => {
    watched.show(now, before);
    setTimeout(() => end.abort(), 50);
  };
  await t.notThrowsAsync(watch({ ...watched, show, wait: paced }, end.signal));
  t.deepEqual([shown, asked, [...closed]], [['1 after none'], ['a'], ['a']]);
});

test('where nothing was ever shown, or a server refuses, it says so at once', async (t) => {
  const first = rig({}, { timeoutMs: 1e9, addresses: ['a', 'c'] });
  await t.throwsAsync(watch(first.watched, never), { message: 'a gone; c gone' });
  t.deepEqual(first.asked, ['a', 'c']);
  const refused = rig({ a: [1, 'gone', 'refused'], b: ['refused'] }, { timeoutMs: 1e9 });
  await t.throwsAsync(watch(refused.watched, never), { code: 'ERR_UNAUTHORIZED', message: 'a refused; b refused' });
});
