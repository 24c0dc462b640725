import test from 'ava';
import { bootstrapState } from './bootstrap.js';
import { EntryType, type Entry } from './entry.js';
import type { RaftMessage } from './messages.js';
import { RaftNode } from './node.js';
import { ImplausibleMessage } from './plausible.js';
import { TERMS_AT_ONCE } from './step.js';

function work(node: RaftNode): RaftMessage[] {
  const sent: RaftMessage[] = [];
  while (node.hasReady()) {
    const { early, messages } = node.ready();
    sent.push(...early, ...messages);
    node.advance();
  }
  return sent;
}

const entry = (index: number, term: number): Entry => ({ index, term, type: EntryType.Normal, data: Uint8Array.of(7) });
const of = { from: 2, to: 1, term: 5 };

/** Follows 2 in term 5, with entries 2 to 4 of terms 2, 3 and 5, the first two of them committed. */
function follower(): RaftNode {
  const node = new RaftNode({ id: 1, incarnation: 1, random: () => 0 }, bootstrapState([1, 2, 3]));
  const entries = [entry(2, 2), entry(3, 3), entry(4, 5)];
  node.step({ type: 'append', ...of, prevIndex: 1, prevTerm: 1, commit: 3, entries });
  work(node);
  return node;
}

test('a follower takes nothing that contradicts what it has committed, nor from a second leader of a term', (t) => {
  const append = { type: 'append', ...of, prevIndex: 4, prevTerm: 5, commit: 4, entries: [] } as const;
  const config = { voters: [1, 2, 3], outgoing: [], learners: [] };
  const wrong: RaftMessage[] = [
    { ...append, prevIndex: 3, prevTerm: 5 },
    { ...append, term: 6, prevIndex: 3, prevTerm: 2 },
    { ...append, prevIndex: 1, prevTerm: 1, entries: [entry(2, 2), entry(3, 2), entry(4, 2)] },
    { ...append, prevIndex: 0, prevTerm: 0, entries: [entry(1, 1), entry(2, 1), entry(3, 1), entry(4, 1)] },
    { ...append, from: 3 },
    { type: 'heartbeat', ...of, from: 3, commit: 0, round: 0 },
    { type: 'heartbeat', ...of, commit: 5, round: 0 },
    { type: 'heartbeat', ...of, term: 6, commit: 5, round: 0 },
    {
      type: 'snapshot-chunk',
      ...of,
      snapshot: { index: 2 ** 53 - 1, term: 5, config },
      bytes: 1,
      offset: 0,
      chunk: Uint8Array.of(1),
    },
  ];
  for (const message of wrong) {
    const node = follower();
    const before = node.status();
    t.throws(() => node.step(message), { instanceOf: ImplausibleMessage }, JSON.stringify(message));
    t.deepEqual(node.status(), before);
    t.deepEqual(work(node), []);
  }
  const node = follower();
  node.step({ ...append, prevIndex: 1, prevTerm: 1, entries: [entry(2, 2), entry(3, 3), entry(4, 5), entry(5, 5)] });
  t.is(node.lastIndex, 5);
  t.is(node.commit, 4);
});

test('a leader takes no answer about what it has not said, and none for its own place', (t) => {
  const node = new RaftNode({ id: 1, incarnation: 1, random: () => 0 }, bootstrapState([1, 2, 3]));
  node.campaign();
  work(node);
  const answer = { from: 2, to: 1, term: 2 };
  for (const type of ['pre-vote-reply', 'vote-reply'] as const) {
    node.step({ type, ...answer, granted: true });
    work(node);
  }
  t.is(node.role, 'leader');
  const before = node.status();
  const wrong: RaftMessage[] = [
    { type: 'append-accept', ...answer, index: 3 },
    { type: 'append-reject', ...answer, index: 3, hintIndex: 0, hintTerm: 0 },
    { type: 'heartbeat-reply', ...answer, round: 1 },
    { type: 'append', ...answer, prevIndex: 1, prevTerm: 1, commit: 2 ** 53 - 1, entries: [] },
    { type: 'heartbeat', ...answer, commit: 0, round: 0 },
  ];
  for (const message of wrong) {
    t.throws(() => node.step(message), { instanceOf: ImplausibleMessage }, JSON.stringify(message));
    t.deepEqual(node.status(), before);
  }
});

test('terms far apart come together by round trips, one step for each write to the disk', (t) => {
  const near = follower();
  const far = new RaftNode(
    { id: 2, incarnation: 1, random: () => 0 },
    { ...bootstrapState([1, 2, 3]), hardState: { term: 2 ** 24, vote: 0, commit: 1 } },
  );
  near.step({ type: 'stale', from: 2, to: 1, term: far.term });
  t.is(near.term, 5 + TERMS_AT_ONCE);
  near.step({ type: 'stale', from: 2, to: 1, term: far.term });
  t.is(near.term, 5 + TERMS_AT_ONCE);
  let steps = 0;
  for (let sent = work(near); sent.length > 0; steps++) {
    for (const message of sent) (message.to === 1 ? near : far).step(message);
    sent = [...work(near), ...work(far)];
  }
  t.true(far.term - near.term <= TERMS_AT_ONCE, `${near.term} after ${steps}`);
  t.is(far.term, 2 ** 24);
  // A pre-vote changes nothing, of whatever term.
  const { term } = near;
  near.step({ type: 'pre-vote', from: 3, to: 1, term: 2 ** 50, lastIndex: 9, lastTerm: 9, transfer: false });
  t.is(near.term, term);
  t.deepEqual(work(near), []);
});

test("reads of others leave room for a leader's own", (t) => {
  const node = new RaftNode({ id: 1, incarnation: 1, random: () => 0, maxPendingReads: 8 }, bootstrapState([1, 2, 3]));
  node.campaign();
  work(node);
  for (const type of ['pre-vote-reply', 'vote-reply'] as const) {
    node.step({ type, from: 2, to: 1, term: 2, granted: true });
    work(node);
  }
  for (let request = 1; request <= 100; request++)
    node.step({ type: 'read-index', from: 2, to: 1, term: 2, incarnation: 9, request });
  t.is(node.readIndex(1), undefined);
});
