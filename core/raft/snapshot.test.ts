/** A snapshot crosses a network that loses, repeats and reorders its chunks, between ends that restart. */
import test from 'ava';
import { seeded } from '../../test/support/random.js';
import type { SnapshotChunk } from './messages.js';
import { SnapshotReceiver, SnapshotSender } from './snapshot.js';

const meta = { index: 9, term: 2, config: { voters: [1, 2], outgoing: [], learners: [] } };
const CHUNK = 10;

function message(sender: SnapshotSender, next: { offset: number; chunk: Uint8Array }): SnapshotChunk {
  return {
    type: 'snapshot-chunk',
    from: 1,
    to: 2,
    term: 3,
    snapshot: sender.snapshot.meta,
    bytes: sender.snapshot.data.length,
    ...next,
  };
}

test('a snapshot arrives whole and unchanged however its chunks fare', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let round = 0; round < 300; round++) {
    const data = random.bytes(random.pick([0, 1, 9, 10, 11, 100, 237]));
    const window = 1 + random.below(4);
    const sender = new SnapshotSender({ meta, data }, CHUNK, window);
    let receiver = new SnapshotReceiver(1000);
    let toReceiver: SnapshotChunk[] = [];
    let toSender: number[] = [];
    let whole: Uint8Array | undefined;
    for (let step = 0; whole === undefined; step++) {
      if (step > 20_000) {
        t.fail(`no progress with ${data.length} bytes, window ${window}`);
        return;
      }
      for (let next = sender.nextChunk(); next !== undefined; next = sender.nextChunk())
        toReceiver.push(message(sender, next));
      t.true(new Set(toReceiver.map(({ offset }) => offset)).size <= data.length / CHUNK + 1);
      const chunk = toReceiver.splice(random.below(toReceiver.length + 1), 1)[0];
      if (chunk !== undefined && random.below(5) > 0) {
        const taken = receiver.take(chunk);
        whole = taken.whole?.data;
        if (whole === undefined) toSender.push(taken.received);
        if (random.below(5) === 0) toReceiver.push(chunk);
      }
      const reply = toSender.splice(random.below(toSender.length + 1), 1)[0];
      if (reply !== undefined && random.below(5) > 0) sender.received(reply);
      if (random.below(10) === 0) sender.heartbeat();
      if (random.below(100) === 0) {
        receiver = new SnapshotReceiver(1000);
        toReceiver = [];
        toSender = [];
      }
    }
    t.deepEqual(whole, data);
  }
});

test('no more chunks are under way than the window allows', (t) => {
  const sender = new SnapshotSender({ meta, data: new Uint8Array(100) }, CHUNK, 3);
  const all: number[] = [];
  for (let next = sender.nextChunk(); next !== undefined; next = sender.nextChunk()) all.push(next.offset);
  t.deepEqual(all, [0, 10, 20]);
  sender.received(10);
  t.is(sender.nextChunk()?.offset, 30);
  t.is(sender.nextChunk(), undefined);
});

test('a chunk out of the middle of an unknown snapshot, or of one that is too large, costs no memory', (t) => {
  const receiver = new SnapshotReceiver(50);
  const sender = new SnapshotSender({ meta, data: new Uint8Array(100) }, CHUNK, 3);
  const first = message(sender, sender.nextChunk()!);
  t.deepEqual(receiver.take(first), { received: 0, whole: undefined });
  t.deepEqual(receiver.take({ ...first, bytes: 40, offset: 20 }), { received: 0, whole: undefined });
  t.deepEqual(receiver.take({ ...first, bytes: 40 }), { received: 10, whole: undefined });
});

test('a newer snapshot, or one of another leader, takes the place of one that is half received', (t) => {
  const receiver = new SnapshotReceiver(1000);
  const of = (index: number, from: number, offset: number): SnapshotChunk => ({
    type: 'snapshot-chunk',
    from,
    to: 2,
    term: 3,
    snapshot: { ...meta, index },
    bytes: 20,
    offset,
    chunk: new Uint8Array(10).fill(from),
  });
  t.is(receiver.take(of(9, 1, 0)).received, 10);
  t.is(receiver.take(of(12, 1, 0)).received, 10);
  t.is(receiver.take(of(9, 1, 10)).received, 0, 'the older one is forgotten');
  t.is(receiver.take(of(12, 4, 0)).received, 10);
  t.deepEqual(receiver.take(of(12, 4, 10)).whole?.data, new Uint8Array(20).fill(4));
});
