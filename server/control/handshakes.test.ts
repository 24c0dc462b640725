import test from 'ava';
import { Handshakes, type HandshakesOptions } from './handshakes.js';

/** Handshakes whose turns come when the test says so. */
function handshakes(options: Partial<HandshakesOptions> = {}) {
  const clock = { ms: 0 };
  const later: (() => void)[] = [];
  const begun: string[] = [];
  const gone = new Set<string>();
  const rate = { perSecond: 10, burst: 2 };
  const made = new Handshakes({
    strangers: rate,
    known: rate,
    turn: 100,
    now: () => clock.ms,
    later: (serve) => later.push(serve),
    ...options,
  });
  const add = (name: string, known = false, source = '192.0.2.1'): void =>
    made.add(known, { source, alive: () => !gone.has(name), begin: () => void begun.push(name) });
  const turn = (): void => {
    for (const serve of later.splice(0)) serve();
  };
  return { add, turn, begun, clock, gone };
}

test('so many begin at once, then so many per second, the newest first', (t) => {
  const { add, turn, begun, clock } = handshakes();
  for (let i = 0; i < 5; i++) add(`x${i}`);
  turn();
  t.deepEqual(begun, ['x4', 'x3']);
  turn();
  t.is(begun.length, 2);
  clock.ms += 100;
  turn();
  t.deepEqual(begun, ['x4', 'x3', 'x2']);
});

test('known addresses have a rate of their own', (t) => {
  const { add, turn, begun } = handshakes();
  for (let i = 0; i < 50; i++) add(`x${i}`);
  turn();
  add('server', true);
  turn();
  t.is(begun.at(-1), 'server');
  t.is(begun.length, 3);
});

test('addresses take turns: a flood of one delays another by one handshake', (t) => {
  const { add, turn, begun, clock } = handshakes();
  for (let i = 0; i < 1000; i++) add(`x${i}`);
  turn();
  add('y0', false, '192.0.2.2');
  add('y1', false, '192.0.2.2');
  for (let i = 1000; i < 2000; i++) add(`x${i}`);
  for (let i = 0; i < 3; i++) {
    clock.ms += 100;
    turn();
  }
  t.deepEqual(begun.slice(2), ['x1999', 'y1', 'x1998']);
});

test('in one turn only a few begin', (t) => {
  const plenty = { perSecond: 1000, burst: 1000 };
  const { add, turn, begun } = handshakes({ strangers: plenty, turn: 3 });
  for (let i = 0; i < 8; i++) add(`x${i}`);
  turn();
  t.is(begun.length, 3);
  turn();
  t.is(begun.length, 6);
});

test('a connection that is gone takes no turn', (t) => {
  const { add, turn, begun, gone } = handshakes();
  for (let i = 0; i < 4; i++) add(`x${i}`);
  gone.add('x3');
  gone.add('x2');
  turn();
  t.deepEqual(begun, ['x1', 'x0']);
});
