/** What `farkv drain` waits for, and what it says of copies that cannot go. */
import test from 'ava';
import { copyLines, isDrained, shardsWithCopy, stayText } from './drained-copies.js';
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
  t.deepEqual(copyLines(status({ members: TWO, copies: [['s1', 's2']] }), 's2'), [], 'those stay');
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
  ]);
});
