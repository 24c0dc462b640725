import test from 'ava';
import { Outbox, type Holder } from './outbox.js';

class Fake implements Holder {
  unsent = 0;
  overran = 0;
  readonly #outbox: Outbox;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  readonly overrun = (): void => {
    this.overran += 1;
    this.take(this.unsent);
  };

  add(bytes: number): void {
    this.unsent += bytes;
    this.#outbox.added(this, bytes);
  }

  take(bytes: number): void {
    this.unsent -= bytes;
    this.#outbox.removed(this, bytes);
  }
}

test('when the sum is too large, the connection with the most loses it', (t) => {
  const outbox = new Outbox(100);
  const [small, large, last] = [new Fake(outbox), new Fake(outbox), new Fake(outbox)];
  small.add(30);
  large.add(60);
  last.add(10);
  t.deepEqual([small.overran, large.overran, last.overran, outbox.bytes], [0, 0, 0, 100]);
  last.add(1);
  t.deepEqual([small.overran, large.overran, last.overran, outbox.bytes], [0, 1, 0, 41]);
});

test('bytes that were taken count no longer', (t) => {
  const outbox = new Outbox(100);
  const [one, other] = [new Fake(outbox), new Fake(outbox)];
  for (let i = 0; i < 10; i++) {
    one.add(90);
    one.take(90);
  }
  other.add(100);
  t.deepEqual([one.overran, other.overran, outbox.bytes], [0, 0, 100]);
});
