import test from 'ava';
import type { Hello } from '../../core/protocol/index.js';
import { Credentials } from './auth.js';
import { identify, Logins } from './logins.js';

function logins() {
  const clock = { ms: 0 };
  return { made: new Logins(() => clock.ms), clock };
}

test('after some wrong tokens an address is told to wait, longer each time', (t) => {
  const { made, clock } = logins();
  for (let i = 0; i < 10; i++) t.is(made.wrong('a'), 0);
  const waits: number[] = [];
  for (let i = 0; i < 12; i++) {
    waits.push(made.wrong('a'));
    clock.ms += waits.at(-1)!;
    t.is(made.wrong('a'), 0);
  }
  t.deepEqual(waits.slice(0, 4), [100, 200, 400, 800]);
  t.is(waits.at(-1), 30_000);
  t.is(made.delayed, 12);
});

test('an address waits for its own wrong tokens alone, and is forgiven in time', (t) => {
  const { made, clock } = logins();
  for (let i = 0; i < 30; i++) made.wrong('a');
  t.true(made.wrong('a') > 0);
  t.is(made.wrong('b'), 0);
  clock.ms += 120_000;
  for (let i = 0; i < 10; i++) t.is(made.wrong('a'), 0);
  t.true(made.wrong('a') > 0);
});

test('an attacker with many addresses costs a bounded memory', (t) => {
  const { made } = logins();
  for (let i = 0; i < 10; i++) made.wrong('first');
  t.true(made.wrong('first') > 0);
  for (let i = 0; i < 5000; i++) made.wrong(`a${i}`);
  t.is(made.wrong('first'), 0);
});

test('a right token is let in at once, whatever others of its address show', (t) => {
  const { made } = logins();
  const credentials = new Credentials({ writer: { text: 'secret' }, operator: { text: 'of operators' }, tenants: [] });
  const come = (role: 'client' | 'admin', token: string): string => {
    const hello: Hello = { t: 'hello', magic: 'farkv', versions: [1, 1], role, token };
    return identify(made, credentials, { source: 'a' }, hello).access;
  };
  for (let i = 0; i < 10; i++) t.throws(() => come('client', `guess ${i}`), { code: 'ERR_UNAUTHORIZED' });
  for (let i = 0; i < 10; i++) t.throws(() => come('client', `guess ${i}`), { code: 'ERR_BUSY' });
  t.is(come('client', 'secret'), 'writer');
  for (let i = 0; i < 20; i++) t.throws(() => come('admin', `guess ${i}`));
  t.is(come('admin', 'of operators'), 'operator');
  t.throws(() => come('client', 'another guess'), { code: 'ERR_BUSY' });
});

test('a certificate opens its role, whatever token comes with it, where no token opens that role', (t) => {
  const { made } = logins();
  const certificate = { uris: ['farkv://prod/peer/s2'], expiresMs: Infinity };
  const hello: Hello = { t: 'hello', magic: 'farkv', versions: [1, 1], role: 'peer', token: 'of all servers' };
  const come = (more: { readonly peer?: { readonly text: string } }, shown?: typeof certificate): string | undefined =>
    identify(
      made,
      new Credentials({ cluster: 'prod', writer: { text: 'secret' }, tenants: [], ...more }),
      { source: 'a', ...(shown === undefined ? {} : { certificate: shown }) },
      hello,
    ).serverId;
  t.is(come({}, certificate), 's2');
  t.is(come({ peer: { text: 'of all servers' } }, certificate), 's2');
  t.is(made.failed, 0, 'none was a guess');
  t.throws(() => come({ peer: { text: 'another' } }, certificate), { code: 'ERR_UNAUTHORIZED', message: /not one of/ });
  t.throws(() => come({}), { code: 'ERR_UNAUTHORIZED', message: /not one of/ });
});
