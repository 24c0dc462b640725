/**
 * A member under bounds and in corners that the traces (test/sim/traces) do not show. Whole histories are the
 * simulator's.
 */
import test from 'ava';
import { bootstrapState, emptyState } from './bootstrap.js';
import { EntryType, type Entry } from './entry.js';
import type { Append, RaftMessage } from './messages.js';
import { RaftNode } from './node.js';
import type { RaftOptions } from './options.js';
import type { Ready } from './ready.js';

function member(id: number, voters: readonly number[], options: Partial<RaftOptions> = {}): RaftNode {
  return new RaftNode(
    { id, incarnation: 1, random: () => 0, ...options },
    voters.length > 0 ? bootstrapState(voters) : emptyState(),
  );
}

/** Does what is ready as a driver does; returns what was sent and applied. */
function work(node: RaftNode): { messages: RaftMessage[]; committed: Entry[]; readies: Ready[] } {
  const done = { messages: [] as RaftMessage[], committed: [] as Entry[], readies: [] as Ready[] };
  while (node.hasReady()) {
    const ready = node.ready();
    done.messages.push(...ready.early, ...ready.messages);
    done.committed.push(...ready.committed);
    done.readies.push(ready);
    node.advance();
  }
  return done;
}

/** A leader of 1, 2, 3 in term 2 whose first entry is committed. */
function leader(options: Partial<RaftOptions> = {}): RaftNode {
  const node = member(1, [1, 2, 3], options);
  node.campaign();
  work(node);
  node.step({ type: 'pre-vote-reply', from: 2, to: 1, term: 2, granted: true });
  work(node);
  node.step({ type: 'vote-reply', from: 2, to: 1, term: 2, granted: true });
  work(node);
  for (const from of [2, 3]) node.step({ type: 'append-accept', from, to: 1, term: 2, index: 2 });
  work(node);
  return node;
}

const bytes = (size: number) => new Uint8Array(size).fill(7);

test('a leader refuses proposals beyond its bound of uncommitted bytes, and takes them again when they are committed', (t) => {
  const node = leader({ maxUncommittedBytes: 100 });
  t.deepEqual(node.propose(bytes(300)), { ok: true, index: 3, term: 2 }, 'the first always');
  t.deepEqual(node.propose(bytes(1)), { ok: false, reason: 'busy' });
  work(node);
  node.step({ type: 'append-accept', from: 2, to: 1, term: 2, index: 3 });
  t.true(node.propose(bytes(60)).ok);
  t.deepEqual(node.propose(bytes(60)), { ok: false, reason: 'busy' });
});

test('a log that the driver does not compact stops growing', (t) => {
  const node = leader({ maxLogBytes: 500 });
  const results = Array.from({ length: 10 }, () => node.propose(bytes(50)));
  t.deepEqual(results.at(-1), { ok: false, reason: 'log-full' });
  work(node);
  node.step({ type: 'append-accept', from: 2, to: 1, term: 2, index: node.lastIndex });
  work(node);
  const meta = node.snapshotMeta();
  t.truthy(meta);
  if (meta !== undefined) node.compact({ meta, data: bytes(1) }, 0);
  t.true(node.propose(bytes(50)).ok);
});

test('appends to a follower that does not answer stop at the window, and each is bounded', (t) => {
  const node = leader({ maxInflightMessages: 3, maxMessageBytes: 300 });
  const sent: Append[] = [];
  for (let i = 0; i < 20; i++) {
    node.propose(bytes(100));
    sent.push(...work(node).messages.filter((m): m is Append => m.type === 'append' && m.to === 2));
  }
  const withEntries = sent.filter(({ entries }) => entries.length > 0);
  t.is(withEntries.length, 3);
  for (const { entries } of withEntries) t.true(entries.length * 164 <= 300);
  // One answer opens the window, and the rest goes in messages as large as allowed.
  node.step({ type: 'append-accept', from: 2, to: 1, term: 2, index: 5 });
  const more = work(node).messages.filter(
    (m): m is Append => m.type === 'append' && m.to === 2 && m.entries.length > 0,
  );
  t.is(more.length, 3);
  t.true(more.every(({ entries }) => entries.length === 1));
});

test('a request for a vote of any term is ignored by one that hears a leader, but not when the leader asked for it', (t) => {
  const node = member(2, [1, 2, 3]);
  node.step({ type: 'heartbeat', from: 1, to: 2, term: 2, commit: 1, round: 0 });
  work(node);
  const request = { from: 3, to: 2, term: 9, lastIndex: 9, lastTerm: 8, transfer: false } as const;
  node.step({ type: 'vote', ...request });
  node.step({ type: 'pre-vote', ...request });
  t.deepEqual(work(node).messages, []);
  t.is(node.term, 2);
  node.step({ type: 'vote', ...request, transfer: true });
  t.like(work(node).messages, [{ type: 'vote-reply', granted: true, term: 9 }]);
  t.is(node.term, 9);
});

test('after the minimum election time-out without a leader the same requests are heard', (t) => {
  const node = member(2, [1, 2, 3], { random: () => 0.99 });
  node.step({ type: 'heartbeat', from: 1, to: 2, term: 2, commit: 1, round: 0 });
  work(node);
  for (let i = 0; i < 10; i++) node.tick();
  node.step({ type: 'pre-vote', from: 3, to: 2, term: 3, lastIndex: 1, lastTerm: 1, transfer: false });
  t.like(work(node).messages, [{ type: 'pre-vote-reply', granted: true, term: 3 }]);
  t.is(node.term, 2, 'a pre-vote changes nothing');
  node.step({ type: 'vote', from: 3, to: 2, term: 3, lastIndex: 1, lastTerm: 1, transfer: false });
  const { messages, readies } = work(node);
  t.like(messages, [{ type: 'vote-reply', granted: true, term: 3 }]);
  t.deepEqual(readies[0]?.hardState, { term: 3, vote: 3, commit: 1 });
  t.true(readies[0]?.mustSync);
});

test('a member votes once in a term, and not for a log behind its own', (t) => {
  const node = member(2, [1, 2, 3]);
  const vote = (from: number, term: number, lastIndex: number, lastTerm: number) => {
    node.step({ type: 'vote', from, to: 2, term, lastIndex, lastTerm, transfer: false });
    const [reply] = work(node).messages;
    return reply?.type === 'vote-reply' ? reply.granted : undefined;
  };
  t.true(vote(3, 2, 1, 1));
  t.true(vote(3, 2, 1, 1), 'the same again');
  t.false(vote(1, 2, 1, 1));
  t.false(vote(1, 3, 0, 0), 'shorter');
  t.true(vote(1, 4, 1, 1));
});

test('a follower commits no further than what it has in common with the leader', (t) => {
  const node = member(2, [1, 2, 3]);
  const entry = (index: number, term: number): Entry => ({ index, term, type: EntryType.Normal, data: bytes(3) });
  node.step({
    type: 'append',
    from: 1,
    to: 2,
    term: 2,
    prevIndex: 1,
    prevTerm: 1,
    commit: 1,
    entries: [entry(2, 2), entry(3, 2), entry(4, 2)],
  });
  work(node);
  // The leader of term 3 has other entries from 3 on, and has committed them; this message shows 2 only.
  node.step({ type: 'append', from: 3, to: 2, term: 3, prevIndex: 1, prevTerm: 1, commit: 4, entries: [entry(2, 2)] });
  t.deepEqual(
    work(node).committed.map(({ index }) => index),
    [2],
  );
  t.is(node.commit, 2);
});

test('a member that knows no configuration never campaigns, nor does a learner', (t) => {
  const empty = member(4, []);
  for (let i = 0; i < 50; i++) empty.tick();
  empty.campaign();
  t.deepEqual(work(empty).messages, []);
  t.is(empty.role, 'follower');

  const node = leader();
  t.true(node.proposeChange({ changes: [{ kind: 'learner', id: 4 }] }).ok);
  t.false(node.config.voters.includes(4));
  t.true(work(node).messages.some((m) => m.to === 4 && m.type === 'append'));
});

test('changes come one at a time, and those that mean nothing are refused at once', (t) => {
  const node = leader();
  t.deepEqual(node.proposeChange({ changes: [{ kind: 'voter', id: 2 }] }), { ok: false, reason: 'change-invalid' });
  t.true(node.proposeChange({ changes: [{ kind: 'voter', id: 4 }] }).ok);
  t.deepEqual(node.proposeChange({ changes: [{ kind: 'voter', id: 5 }] }), { ok: false, reason: 'change-in-progress' });
});

test('reads are bounded, and those that cannot be answered any more come back as given up', (t) => {
  const node = leader({ maxPendingReads: 3 });
  t.deepEqual(
    [1, 2, 3, 4].map((ctx) => node.readIndex(ctx)),
    [undefined, undefined, undefined, 'busy'],
  );
  work(node);
  node.step({ type: 'heartbeat', from: 2, to: 1, term: 3, commit: 0, round: 0 });
  t.deepEqual(
    work(node).readies.flatMap(({ abortedReads }) => abortedReads),
    [1, 2, 3],
  );
  t.is(member(9, [1, 9]).readIndex(1), 'no-leader');
});

test('a follower gives a read up that the leader does not answer', (t) => {
  const node = member(2, [1, 2, 3]);
  node.step({ type: 'heartbeat', from: 1, to: 2, term: 2, commit: 1, round: 0 });
  t.is(node.readIndex(5), undefined);
  let aborted: readonly number[] = [];
  for (let tick = 0; tick < 30 && aborted.length === 0; tick++) {
    node.step({ type: 'heartbeat', from: 1, to: 2, term: 2, commit: 1, round: 0 });
    node.tick();
    aborted = work(node).readies.flatMap(({ abortedReads }) => abortedReads);
  }
  t.deepEqual(aborted, [5]);
});

test('a read before the leader has committed an entry of its term waits for that', (t) => {
  const node = member(1, [1, 2, 3]);
  node.campaign();
  work(node);
  node.step({ type: 'pre-vote-reply', from: 2, to: 1, term: 2, granted: true });
  work(node);
  node.step({ type: 'vote-reply', from: 2, to: 1, term: 2, granted: true });
  work(node);
  t.is(node.role, 'leader');
  t.is(node.readIndex(1), undefined);
  work(node);
  node.step({ type: 'heartbeat-reply', from: 2, to: 1, term: 2, round: 0 });
  t.deepEqual(
    work(node).readies.flatMap(({ readStates }) => readStates),
    [],
  );
  node.step({ type: 'append-accept', from: 2, to: 1, term: 2, index: 2 });
  const heartbeat = work(node).messages.find((m) => m.type === 'heartbeat' && m.to === 2);
  t.like(heartbeat, { round: 1 });
  node.step({ type: 'heartbeat-reply', from: 2, to: 1, term: 2, round: 1 });
  t.deepEqual(
    work(node).readies.flatMap(({ readStates }) => readStates),
    [{ ctx: 1, index: 2 }],
  );
});

test('many reads of one round through the driver share their heartbeats', (t) => {
  const node = leader();
  for (let ctx = 1; ctx <= 100; ctx++) node.readIndex(ctx);
  const { messages } = work(node);
  t.is(messages.filter((m) => m.type === 'heartbeat').length, 2);
  node.step({ type: 'heartbeat-reply', from: 3, to: 1, term: 2, round: 1 });
  t.is(work(node).readies.flatMap(({ readStates }) => readStates).length, 100);
});

test('many proposals of one round share their messages and their write', (t) => {
  const node = leader();
  for (let i = 0; i < 50; i++) node.propose(bytes(10));
  const { readies, messages } = work(node);
  t.is(readies.filter(({ mustSync }) => mustSync).length, 1);
  t.is(messages.filter((m) => m.type === 'append' && m.to === 2 && m.entries.length > 0).length, 1);
});

test('between ready and advance the member may go on: what the disk is told of is not confused with what came since', (t) => {
  const node = member(2, [1, 2, 3]);
  const append = (term: number, prevIndex: number, prevTerm: number, terms: number[]): Append => ({
    type: 'append',
    from: term === 2 ? 1 : 3,
    to: 2,
    term,
    prevIndex,
    prevTerm,
    commit: 1,
    entries: terms.map((of, i) => ({ index: prevIndex + 1 + i, term: of, type: EntryType.Normal, data: bytes(3) })),
  });
  node.step(append(2, 1, 1, [2, 2, 2]));
  const first = node.ready();
  t.deepEqual(
    first.entries.map(({ index }) => index),
    [2, 3, 4],
  );
  node.step(append(3, 2, 2, [3, 3]));
  node.advance();
  const second = node.ready();
  // 2 is written again: the disk was told of it together with entries that are no more.
  t.deepEqual(
    second.entries.map(({ index, term }) => [index, term]),
    [
      [2, 2],
      [3, 3],
      [4, 3],
    ],
  );
  t.deepEqual(second.hardState, { term: 3, vote: 0, commit: 1 });
  t.like(second.messages, [{ type: 'append-accept', term: 3, index: 4 }]);
  node.advance();
});

test('what was acknowledged while the disk was refusing is not said', (t) => {
  const node = member(2, [1, 2, 3]);
  const append = (prevIndex: number): Append => ({
    type: 'append',
    from: 1,
    to: 2,
    term: 2,
    prevIndex,
    prevTerm: prevIndex === 1 ? 1 : 2,
    commit: 1,
    entries: [{ index: prevIndex + 1, term: 2, type: EntryType.Normal, data: bytes(3) }],
  });
  node.step({ type: 'heartbeat', from: 1, to: 2, term: 2, commit: 1, round: 0 });
  work(node);
  node.step(append(1));
  node.ready();
  node.step(append(2));
  node.storageRefused();
  t.deepEqual(work(node).messages, []);
  node.step(append(1));
  t.deepEqual(
    work(node).messages.filter((m) => m.type === 'append-accept' && m.index > 1),
    [],
  );
  t.is(node.propose(bytes(1)).ok, false);
  node.retryStorage();
  t.deepEqual(
    work(node).readies.flatMap(({ entries }) => entries.map(({ index }) => index)),
    [2, 3],
  );
});

test('a leader sends its entries before they are on its disk, and says no more than that', (t) => {
  const node = leader();
  node.propose(bytes(1));
  node.step({ type: 'pre-vote', from: 3, to: 1, term: 3, lastIndex: 9, lastTerm: 2, transfer: false });
  const ready = node.ready();
  t.deepEqual(
    ready.entries.map(({ index }) => index),
    [3],
  );
  t.deepEqual(
    ready.early.map(({ type, to }) => [type, to]),
    [
      ['append', 2],
      ['append', 3],
    ],
  );
  t.false(ready.messages.some(({ type }) => type === 'append'));
  // Its own disk does not count yet: one follower is no quorum.
  node.step({ type: 'append-accept', from: 2, to: 1, term: 2, index: 2 });
  t.is(node.commit, 2);
  node.advance();
});

test('a Ready is finished once, and a new one is taken after that', (t) => {
  const node = leader();
  node.propose(bytes(1));
  node.ready();
  t.throws(() => node.ready(), { message: /one Ready at a time/ });
  node.advance();
  t.throws(() => node.advance(), { message: /only a Ready that was taken/ });
});

test('options that cannot work are refused', (t) => {
  t.throws(() => member(0, [1]), { message: /positive/ });
  t.throws(() => member(1, [1], { incarnation: 0 }), { message: /incarnation/ });
  t.throws(() => member(1, [1], { electionTicks: 1, heartbeatTicks: 1 }), { message: /slower/ });
  t.throws(() => bootstrapState([]), { message: /at least one/ });
  t.throws(() => bootstrapState([1, 1]), { message: /none twice/ });
});
