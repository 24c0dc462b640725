/** What `farkv drain` waits for, and what it says of copies that cannot go. */
import test from 'ava';
import { copyLines, drainLine, isDrained, restLines, shardsWithCopy, stayText } from './drained-copies.js';
import type { ClusterStatus } from './status.js';

interface Given {
  /** By id; `witness`, `draining` or a state. Default: s2 is drained, s1 and s3 are up. */
  readonly members?: Readonly<Record<string, string>>;
  /** Of each shard: its owner first. */
  readonly copies: readonly (readonly string[])[];
  readonly wanted?: number;
  readonly minInSync?: number;
  readonly more?: object;
}

function status(given: Given): ClusterStatus {
  const { members = { s1: 'up', s2: 'draining', s3: 'up' }, copies, wanted = 2, minInSync = 1, more = {} } = given;
  return {
    moveErrors: [],
    members: Object.entries(members).map(([id, is]) => ({
      ...{ id, role: 'voter', state: ['witness', 'draining'].includes(is) ? 'up' : is, draining: is === 'draining' },
      ...(is === 'witness' ? { witness: true } : {}),
    })),
    shards: copies.map((at, shard) => ({
      ...{ shard, owner: at[0], state: 'serving' },
      copies: {
        wanted,
        minInSync,
        inSync: at.length,
        copies: at.map((member) => ({ member, state: 'in-sync' })),
        ...more,
      },
    })),
  } as unknown as ClusterStatus;
}

const TWO = { s1: 'up', s2: 'draining', s3: 'witness' };

test('a server is drained when it owns nothing and others have its copies', (t) => {
  t.false(isDrained(status({ copies: [['s2', 's1']] }), 's2'), 'it owns one');
  t.false(isDrained(status({ copies: [['s1', 's2']] }), 's2'), 's3 is to have one');
  t.false(isDrained(status({ copies: [['s1', 's3', 's2']] }), 's2'), 'it goes next');
  const done = status({ copies: [['s1', 's3']] });
  t.true(isDrained(done, 's2'));
  t.is(stayText(done, 's2'), undefined);
  t.deepEqual(
    shardsWithCopy(status({ copies: [['s1', 's2']], more: { copies: [{ member: 's2', state: 'joining' }] } }), 's2'),
    [],
  );
});

test('where too few servers are left the copies stay, and what an operator can do is said', (t) => {
  const two = status({ members: TWO, copies: [['s1', 's2'], ['s1'], ['s1', 's2']] });
  t.true(isDrained(two, 's2'));
  t.is(
    stayText(two, 's2'),
    's2 owns no shards and gets none, but the copies of shards 0, 2 stay there: 2 copies of each value are wanted, and one other server keeps values; s2 may be stopped: the owners have all values, in fewer copies; to remove it, add a server (farkv server --join) or want fewer copies (farkv replication set --replicas 1), then farkv drain s2 again',
  );
  const three = stayText(status({ copies: [['s1', 's3', 's2']], wanted: 3, minInSync: 3 }), 's2') ?? '';
  t.regex(
    three,
    /of shard 0 stay there: 3 copies .* and 2 other servers keep values; s2 may not be stopped: shard 0 would/,
  );
  t.regex(three, /\(farkv replication set --replicas 2 --min-in-sync 2\)/);
  const absent = { ...TWO, s4: 'absent' };
  t.not(stayText(status({ members: absent, copies: [['s1', 's2']] }), 's2'), undefined, 's4 has never come');
});

test('where all others are drained, one of them is to keep values again', (t) => {
  const members = { s1: 'draining', s2: 'draining' };
  const text = stayText(status({ members, copies: [['s1', 's2']] }), 's2') ?? '';
  t.regex(text, /add a server \(farkv server --join\), or keep a drained one \(farkv drain SERVER --undo\), then/);
  t.notRegex(text, /--replicas 0/);
});

test('each tenant is named whose copies cannot go', (t) => {
  const { shards, ...rest } = status({
    members: TWO,
    copies: [
      ['s1', 's2'],
      ['s1', 's2'],
    ],
  });
  const tenants = [{ name: 'shop', firstShard: 1, shards: 1 }];
  t.regex(
    stayText({ ...rest, shards, tenants }, 's2') ?? '',
    /\(farkv replication set --replicas 1; farkv replication set --tenant shop --replicas 1\)/,
  );
});

test('while copies are waited for, what is in the way is said', (t) => {
  t.deepEqual(copyLines(status({ copies: [['s1', 's2']] }), 's2'), []);
  const silent = { s1: 'up', s2: 'draining', s3: 'unreachable' };
  t.deepEqual(
    copyLines(
      status({
        members: silent,
        copies: [
          ['s1', 's2'],
          ['s1', 's3'],
        ],
      }),
      's2',
    ),
    ['copies of shard 0 stay at s2 until their place is taken at s3, which cannot be reached'],
  );
  const notCopied = [{ member: 's3', times: 1, full: true }];
  t.deepEqual(copyLines(status({ copies: [['s1', 's2']], more: { notCopied } }), 's2'), [
    'no copy of shard 0 could be made at s3, which lacks memory for it: that of s2 stays meanwhile',
    WAYS,
  ]);
});

const WAYS =
  'to go on, add a server (farkv server --join), start s3 again with more --memory, or keep s2 (farkv drain s2 --undo)';

test('how far a drain is, what is in the way and the ways out have a line, until nothing is left', (t) => {
  t.deepEqual(drainLine(status({ copies: [['s1', 's3']] }), 's2'), []);
  t.deepEqual(restLines(status({ copies: [['s1', 's3']] }), 's2'), []);
  const plain = status({
    copies: [
      ['s2', 's1'],
      ['s1', 's2'],
      ['s3', 's2'],
      ['s3', 's1'],
    ],
  });
  t.deepEqual(drainLine(plain, 's2'), ['s2 is being drained, and still owns 1 shard and has copies of 2 other shards']);
  t.deepEqual(restLines(plain, 's2'), ['s2 still owns shard 0 and has copies of shards 1, 2']);

  // One is being tried again, the others rest.
  const copies = [
    { member: 's1', state: 'in-sync' },
    { member: 's2', state: 'in-sync' },
  ];
  const full = { member: 's3', full: true };
  const lacking = status({ copies: [['s1'], ['s1'], ['s1']], more: { copies } });
  const shards = lacking.shards.map((one, i) => {
    const more = [
      { copies: [...copies, { ...full, state: 'joining' }] },
      { notCopied: [{ ...full, times: 2 }] },
      { notCopied: [{ member: 's3', times: 1 }] },
    ][i];
    return { ...one, copies: { ...one.copies, ...more } };
  }) as unknown as ClusterStatus['shards'];
  const why = ['s3 has no room for copies of shards 0, 1', 's3 could not make a copy of shard 2, and its log says why'];
  t.deepEqual(drainLine({ ...lacking, shards }, 's2'), [
    ['s2 is being drained, and still has copies of 3 shards', ...why, WAYS].join('; '),
  ]);
  t.deepEqual(restLines({ ...lacking, shards }, 's2'), ['s2 still has copies of shards 0, 1, 2', ...why, WAYS]);
});

test('of a drain that waits for nobody is said why, and what else can be done', (t) => {
  const few = status({ members: TWO, copies: [['s1', 's2']] });
  t.deepEqual(drainLine(few, 's2'), [
    's2 is being drained, and still has copies of 1 shard; the copies of shard 0 stay there: 2 copies of each value are wanted, and one other server keeps values; to go on, add a server (farkv server --join), want fewer copies (farkv replication set --replicas 1), or keep s2 (farkv drain s2 --undo)',
  ]);
  const open = few.shards.map((one) => ({ ...one, state: 'open' as const }));
  t.is(restLines({ ...few, shards: open }, 's2')[1], 'shard 0 is not served at present');
  const moveErrors = [{ shard: 0, from: 's2', to: 's3', attempts: 1, reason: 'no room', calledOff: true, agoMs: 1 }];
  t.regex(
    restLines({ ...status({ copies: [['s2', 's1']] }), moveErrors }, 's2').join('; '),
    /^s2 still owns shard 0; to go on, add a server \(farkv server --join\), or keep s2/,
  );
});
