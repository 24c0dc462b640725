import test from 'ava';
import { connect } from 'node:net';
import { pair, standStill, withResolve } from '../test/support/ends.js';
import { Deadline, within } from './deadline.js';

test('bytes that arrived while the process stood still are handled before the wait ends', async (t) => {
  const [dialed, accepted] = await pair(t);
  const log: string[] = [];
  const { promise, resolve } = withResolve<undefined>();
  dialed.on('data', () => log.push('data'));
  new Deadline(5, () => {
    log.push('over');
    resolve(undefined);
  });
  accepted.write('x');
  standStill(20);
  await promise;
  t.deepEqual(log, ['data', 'over']);
});

test('a connection that failed while the process stood still is closed before the wait ends', async (t) => {
  const log: string[] = [];
  const { promise, resolve } = withResolve<undefined>();
  connect(1, '127.0.0.1')
    .on('error', () => undefined)
    .on('close', () => log.push('closed'));
  new Deadline(5, () => {
    log.push('over');
    resolve(undefined);
  });
  standStill(20);
  await promise;
  t.deepEqual(log, ['closed', 'over']);
});

test('bytes that arrived in time may still end the wait', async (t) => {
  const [dialed, accepted] = await pair(t);
  const { promise, resolve } = withResolve<string>();
  const deadline = new Deadline(5, () => resolve('over'));
  dialed.on('data', () => {
    deadline.clear();
    new Deadline(0, () => resolve('taken'));
  });
  accepted.write('x');
  standStill(20);
  t.is(await promise, 'taken');
});

test('a wait that brings nothing ends, and one that is over for good does not', async (t) => {
  const log: string[] = [];
  const { promise, resolve } = withResolve<undefined>();
  new Deadline(1, () => log.push('cleared')).clear();
  new Deadline(2, () => resolve(undefined));
  await promise;
  t.deepEqual(log, []);
});

test('a wait for a promise has its result, its failure, or nothing when the time was over before', async (t) => {
  t.is(await within(Promise.resolve(7), 60_000), 7);
  await t.throwsAsync(within(Promise.reject(new Error('in time')), 60_000), { message: 'in time' });
  t.is(await within(new Promise<number>(() => undefined), 1), undefined);
});

test('what came in time, while the process stood still, is the result of a wait for a promise', async (t) => {
  const [dialed, accepted] = await pair(t);
  const { promise, resolve } = withResolve<string>();
  dialed.on('data', () => resolve('data'));
  const waited = within(promise, 5);
  accepted.write('x');
  standStill(20);
  t.is(await waited, 'data');
});
