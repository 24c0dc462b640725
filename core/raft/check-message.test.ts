/** Messages from outside: what is right goes through unchanged, what is not is named, and nothing throws. */
import test from 'ava';
import { seeded } from '../../test/support/random.js';
import { checkRaftMessage } from './check-message.js';
import { encodeConfiguration } from './configuration.js';
import { EntryType } from './entry.js';
import type { RaftMessage } from './messages.js';

const envelope = { from: 1, to: 2, term: 5 };
const config = { voters: [1, 2], outgoing: [], learners: [3] };
const messages: RaftMessage[] = [
  {
    type: 'append',
    ...envelope,
    prevIndex: 0,
    prevTerm: 0,
    commit: 9,
    entries: [
      { index: 1, term: 1, type: EntryType.Config, data: encodeConfiguration(config) },
      { index: 2, term: 5, type: EntryType.Normal, data: new Uint8Array([1, 2]) },
    ],
  },
  { type: 'append', ...envelope, prevIndex: 7, prevTerm: 4, commit: 7, entries: [] },
  { type: 'append-accept', ...envelope, index: 7 },
  { type: 'append-reject', ...envelope, index: 7, hintIndex: 3, hintTerm: 2 },
  { type: 'heartbeat', ...envelope, commit: 7, round: 3 },
  { type: 'heartbeat-reply', ...envelope, round: 3 },
  { type: 'vote', ...envelope, lastIndex: 7, lastTerm: 4, transfer: true },
  { type: 'pre-vote', ...envelope, lastIndex: 7, lastTerm: 4, transfer: false },
  { type: 'vote-reply', ...envelope, granted: true },
  { type: 'pre-vote-reply', ...envelope, granted: false },
  {
    type: 'snapshot-chunk',
    ...envelope,
    snapshot: { index: 7, term: 4, config },
    bytes: 10,
    offset: 8,
    chunk: new Uint8Array(2),
  },
  {
    type: 'snapshot-chunk',
    ...envelope,
    snapshot: { index: 7, term: 4, config },
    bytes: 0,
    offset: 0,
    chunk: new Uint8Array(0),
  },
  { type: 'snapshot-reply', ...envelope, index: 7, received: 8 },
  { type: 'read-index', ...envelope, incarnation: 77, request: 1 },
  { type: 'read-index-reply', ...envelope, incarnation: 77, request: 1, index: 7 },
  { type: 'timeout-now', ...envelope },
  { type: 'stale', ...envelope },
];

test('every kind of message goes through, without what else a peer put into it', (t) => {
  for (const message of messages) {
    t.deepEqual(checkRaftMessage(message), { ok: true, message });
    t.deepEqual(checkRaftMessage({ ...message, extra: { deep: 1 } }), { ok: true, message });
  }
});

test('a message whose parts do not fit together is refused, and the reason is told', (t) => {
  const [append] = messages as [RaftMessage & { type: 'append' }];
  const [first, second] = append.entries as [(typeof append.entries)[0], (typeof append.entries)[0]];
  const chunk = messages[10] as RaftMessage & { type: 'snapshot-chunk' };
  const wrong: [unknown, RegExp][] = [
    [{ ...append, term: 0 }, /term 0/],
    [{ ...append, from: 2 }, /two members/],
    [{ ...append, prevTerm: 3 }, /prevTerm/],
    [{ ...append, entries: [second, first] }, /follow each other/],
    [{ ...append, entries: [first, { ...second, term: 6 }] }, /newer than their message/],
    [
      {
        ...append,
        entries: [
          { ...first, term: 3 },
          { ...second, term: 2 },
        ],
      },
      /terms of entries fall/,
    ],
    [{ ...append, entries: [{ ...first, data: new Uint8Array([1, 0, 0]) }] }, /no valid configuration/],
    [{ ...append, entries: [{ ...first, type: 2 }] }, /type 2/],
    [{ ...append, entries: 'many' }, /list/],
    [{ ...append, commit: -1 }, /commit/],
    [{ ...append, commit: 2 ** 53 }, /commit/],
    [{ ...append, type: 'propose' }, /type is unknown/],
    [{ ...chunk, offset: 9 }, /outside/],
    [{ ...chunk, chunk: new Uint8Array(0), offset: 0 }, /outside/],
    [
      { ...chunk, snapshot: { ...chunk.snapshot, config: { voters: [], outgoing: [], learners: [] } } },
      /no valid configuration/,
    ],
    [{ ...chunk, snapshot: { ...chunk.snapshot, term: 6 } }, /newer/],
    [{ ...messages[3], hintIndex: 8 }, /hint/],
    [{ ...messages[3], hintTerm: 6 }, /hint/],
    [{ ...messages[6], lastTerm: 5 }, /not older/],
    [{ ...messages[8], granted: 1 }, /granted/],
    [undefined, /not an object/],
    ['append', /not an object/],
  ];
  for (const [value, why] of wrong) {
    const checked = checkRaftMessage(value);
    t.false(checked.ok, String(why));
    if (!checked.ok) t.regex(checked.why, why);
  }
});

test('no value that takes the place of a field makes the check throw', (t) => {
  const random = seeded(t, import.meta.filename);
  const values = [
    undefined,
    null,
    NaN,
    Infinity,
    -1,
    0.5,
    2 ** 60,
    '',
    'x',
    true,
    [],
    {},
    [[]],
    new Uint8Array(3),
    7n,
    Symbol('s'),
    () => 1,
  ];
  for (let i = 0; i < 20_000; i++) {
    const message = structuredClone(random.pick(messages)) as unknown as Record<string, unknown>;
    let target = message;
    let key = random.pick(Object.keys(target));
    for (;;) {
      const inner = target[key];
      if (
        typeof inner !== 'object' ||
        inner === null ||
        inner instanceof Uint8Array ||
        Object.keys(inner).length === 0 ||
        random.below(2) === 0
      )
        break;
      target = inner as Record<string, unknown>;
      key = random.pick(Object.keys(target));
    }
    target[key] = values[random.below(values.length)];
    const checked = checkRaftMessage(message);
    if (checked.ok) t.deepEqual(checkRaftMessage(checked.message), checked);
  }
  t.pass();
});
