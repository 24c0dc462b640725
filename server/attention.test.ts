import test from 'ava';
import { advice } from './advice.js';
import { attention, underWay } from './attention.js';
import { statusDocument } from './cli/commands/status.js';
import { commandNamed } from './cli/command-list.js';
import { OPTION_NAMES } from './config/options.js';
import type { ClusterStatus, MemberStatus, ShardStatus } from './status.js';

const member = (
  id: string,
  { node, ...more }: { readonly node?: object | undefined } & Partial<Omit<MemberStatus, 'node'>> = {},
): MemberStatus =>
  ({
    ...{ id, state: 'up', role: 'voter', draining: false, control: [`${id}:7400`], ...more },
    ...(node === undefined ? {} : { node: { group: { diskFull: false }, ...node } }),
  }) as unknown as MemberStatus;
const shard = (number: number, more: object = {}): ShardStatus =>
  ({ shard: number, owner: 's1', state: 'serving', ...more }) as ShardStatus;
const status = (more: object = {}): ClusterStatus =>
  ({
    leader: 's1',
    moves: [],
    replication: [],
    members: [member('s1'), member('s2'), member('s3')],
    shards: [shard(0), shard(1)],
    ...more,
  }) as unknown as ClusterStatus;

test('a cluster in order, and one that mends itself, need nobody', (t) => {
  t.deepEqual(attention(status()), []);
  t.deepEqual(attention(status({ leader: undefined })), [], 'an election');
  const copies = { trouble: 'degraded', copies: [{ member: 's2', state: 'joining' }] };
  t.deepEqual(attention(status({ shards: [shard(0, { copies }), shard(1, { state: 'open' })] })), []);
});

test('what makes the exit code 1 has a line, also where it ends by itself', (t) => {
  t.deepEqual(underWay(status()), []);
  t.regex(underWay(status({ leader: undefined }))[0] ?? '', /^no server leads: one is elected within seconds/);
  t.regex(underWay(status({ shards: [] }))[0] ?? '', /^the cluster has no shards yet/);
  const shards = [
    shard(0),
    shard(1, { state: 'open', owner: 's2' }),
    shard(2, { state: 'unassigned', owner: undefined }),
  ];
  t.deepEqual(underWay(status({ shards })), [
    'shard 2: no server has it yet: the leader waits for servers that have not come, for a while; if it stays so, look at the log of s1',
    'shard 1: not served yet: a new owner waits until the lease of the last one has ended; if it stays so, look at the log of s1',
  ]);
  const recovering = [member('s1'), member('s2', { node: { values: { recovering: { bytes: 1, all: 2 } } } })];
  t.deepEqual(
    underWay(status({ members: recovering, shards: [shard(0), shard(1, { owner: 's2', state: 'closed' })] })),
    ['s2 reads its values from the disk: shards are served when that is done'],
  );
  const few = [member('s1'), member('s2', { state: 'unreachable' }), member('s3', { state: 'unreachable' })];
  t.deepEqual(underWay(status({ leader: undefined, members: few, shards })), [], 'who is needed is told');
  t.is(underWay(status({ leader: undefined, members: [], shards: [] })).length, 1, 'before there is a cluster');
  for (const state of ['unassigned', 'closed', 'open', 'unreachable'])
    for (const more of [undefined, {}, { gone: true }, { awaits: ['s2'] }]) {
      const copies = more === undefined ? undefined : { copies: [], ...more };
      const one = status({ shards: [shard(0, { state, copies })] });
      t.true(underWay(one).length + attention(one).length > 0, `${state} ${JSON.stringify(copies)}`);
    }
});

test('the JSON document has the same lines, so that it says why the exit code is 1', (t) => {
  t.like(statusDocument(status()), { leader: 's1', underWay: [], attention: [] });
  const waits = status({ shards: [shard(0), shard(1, { state: 'open' })] });
  t.like(statusDocument(waits), { underWay: underWay(waits), attention: [] });
  t.is(underWay(waits).length, 1);
  const silent = status({ members: [member('s1'), member('s2', { state: 'unreachable' })] });
  t.like(statusDocument(silent), { underWay: [], attention: attention(silent) });
});

test('servers that do not answer are named, with what to do, and what is lost with them', (t) => {
  const members = [member('s1'), member('s2', { state: 'unreachable' }), member('s3', { state: 'absent' })];
  const shards = [shard(0), shard(1, { owner: 's2', state: 'unreachable' })];
  t.deepEqual(attention(status({ members, shards, leader: undefined })), [
    'no server leads: 1 of 3 voters answer, and more than half are needed; start the others again, each with its --data-dir',
    's2 does not answer: start it again, with its --data-dir, once its process has ended',
    's3 has never come: start it',
    'shard 1 can be reached at no other server: their values come back with s2, started again with its --data-dir, or not',
  ]);
});

test('servers that announce one address are named, for who looks for one may reach another', (t) => {
  const at = (...control: string[]): { readonly control: string[] } => ({ control });
  const members = [member('s1', at('a:1', 'b:1')), member('s2', at('c:1')), member('s3', at('b:1'))];
  t.regex(attention(status({ members })).join('\n'), /^s1, s3 announce the same address, b:1, .*--fabric-listen/);
  t.deepEqual(attention(status({ members: members.slice(0, 2) })), []);
  // It may have left the address to the one that has it now.
  const gone = [...members.slice(0, 2), member('s3', { ...at('b:1'), state: 'unreachable' })];
  t.notRegex(attention(status({ members: gone })).join('\n'), /announce the same/);
});

test('shards that are lost, that take no changes, and too few servers are told with the command', (t) => {
  const lines = attention(
    status({
      members: [member('s1'), member('s2', { witness: true })],
      shards: [shard(0, { copies: { trouble: 'lost', gone: true } }), shard(1, { copies: { trouble: 'too few' } })],
      replication: [{ level: 'replicated', replicas: 2, minInSync: 2, onLoss: 'wait' }],
    }),
  );
  t.is(lines.length, 3);
  t.regex(lines[0]!, /^shard 0: every copy is lost; farkv shard reset all .*--accept-loss/);
  t.regex(lines[1]!, /^shard 1: no changes are taken.*farkv replication set --min-in-sync/);
  t.is(
    lines[2],
    '2 copies of each value are wanted, and one server keeps values: add servers (farkv server --join), or want fewer copies (farkv replication set --replicas)',
  );
});

test('shards that only servers can bring back which are away are told with those, and with what gives them up', (t) => {
  const members = [member('s1'), member('s2', { state: 'unreachable' }), member('s3', { state: 'unreachable' })];
  const lost = (awaits: readonly string[] | undefined, copies: readonly object[] = []): object => ({
    owner: undefined,
    copies: { trouble: 'lost', copies, ...(awaits === undefined ? {} : { awaits }) },
  });
  const of = (...shards: object[]): readonly string[] =>
    attention(status({ members, shards })).filter((line) => line.startsWith('shard'));
  t.deepEqual(of(shard(3, lost(['s2'])), shard(4, lost(undefined))), [
    'shard 3: no server that answers has all its values: bring s2 back with what it had; if that is lost, farkv shard reset 3 says what is given up',
  ]);
  t.deepEqual(of(shard(0, lost(['s2', 's3'])), shard(1, lost(['s2', 's3']))), [
    'shards 0, 1: no server that answers has all their values: bring s2 or s3 back with what it had; if that is lost, farkv shard reset SHARD, for each of them, says what is given up',
  ]);
  const marked = [
    { member: 's1', state: 'in-sync', marked: true },
    { member: 's2', state: 'in-sync' },
  ];
  t.deepEqual(of(shard(0, lost(['s2'], marked))), [
    'shard 0: no server that answers has all its values: bring s2 back with what it had; if that is lost, farkv shard reset 0 --from s1 says what is given up',
  ]);
});

test('a full disk and snapshots that fail are told with what to do', (t) => {
  const node = {
    dataPlane: {
      workers: [{ log: { diskFull: false } }, { log: { diskFull: true } }, { log: { diskFull: true } }],
      shards: [{ shard: 1 }, { shard: 2, snapshotErrno: 28 }, { shard: 5, snapshotErrno: 5 }],
    },
  };
  t.deepEqual(attention(status({ members: [member('s1', { node })] })), [
    'the disk of s1 is full, and changes are refused: free space on the file system of its --data-dir, up to 256 MiB for its log; changes go on by themselves within seconds',
    's1 has no new snapshot of shards 2, 5: ENOSPC, no space left on device. Nothing is lost, but the log grows: look at the disk of its --data-dir, and at the log of s1; it is tried again each minute',
  ]);
});

test('a server that waits for others before it puts its log aside is told, and not its shards beside it', (t) => {
  const copies = { copies: [{ member: 's1' }, { member: 's2' }] };
  const members = [member('s1', { node: { values: { waitsFor: ['s2', 's3'] } } }), member('s2'), member('s3')];
  const shards = [shard(0, { state: 'unassigned', owner: undefined, epoch: 2, copies }), shard(1)];
  t.deepEqual(underWay(status({ members, shards })), [
    's1 found the write-ahead log of its values damaged, and waits for s2, s3 to be there with what was in it: it does not end before they have had a minute',
  ]);
});

test('a log that was put aside is told until somebody has looked', (t) => {
  t.deepEqual(attention(status({ members: [member('s1', { node: { values: { aside: true } } }), member('s2')] })), [
    's1 found the write-ahead log of its values damaged, and has put it aside: look at its disk, and remove values.damaged in its --data-dir when every shard is served with as many copies as are wanted',
  ]);
});

test('a server without a lease is named while another leads, and not while it stops', (t) => {
  const of = (node: object, leader: string | undefined = 's2'): readonly string[] =>
    attention(status({ leader, members: [member('s1', { node }), member('s2'), member('s3')] }));
  t.deepEqual(of({ leaseHeld: false }), [
    's1 has no lease from the metadata group, and answers nothing: look at its log, and at the network between it and s2: farkv status --connect s1:7400 shows which servers it reaches',
  ]);
  t.deepEqual(of({ leaseHeld: true }), []);
  t.deepEqual(of({}), [], 'it has not asked for one yet');
  t.deepEqual(of({ leaseHeld: false, stopping: true }), []);
  const members = [member('s1', { node: { leaseHeld: false } }), member('s2'), member('s3')];
  t.deepEqual(attention(status({ leader: undefined, members })), [], 'an election');
  const shards = [shard(0, { state: 'open' }), shard(1, { owner: 's2', state: 'open' })];
  t.deepEqual(underWay(status({ leader: 's2', members, shards })), [
    'shard 1: not served yet: a new owner waits until the lease of the last one has ended; if it stays so, look at the log of s2',
  ]);
});

test('servers whose leases are over since most voters are away are named with their shards, and with whom to start', (t) => {
  const of = (up: number, all: number, node: object = { leaseHeld: false }): string | undefined =>
    attention(
      status({
        leader: undefined,
        members: Array.from({ length: all }, (_, i) =>
          member(`s${i + 1}`, i < up ? { node } : { state: 'unreachable' }),
        ),
        shards: [shard(0), shard(1, { owner: up > 1 ? 's2' : 's1' }), shard(2, { owner: `s${all}` })],
      }),
    ).find((line) => line.includes('no lease'));
  t.is(
    of(1, 3),
    's1 has no lease, since it reaches no leader: shards 0, 1 are not served until one of s2, s3 can be reached: start one of them again, with --data-dir; where a server runs, look at the network',
  );
  t.is(
    of(1, 2),
    's1 has no lease, since it reaches no leader: shards 0, 1 are not served until s2 can be reached: start it again, with --data-dir; where a server runs, look at the network',
  );
  t.regex(
    of(2, 5) ?? '',
    /^s1, s2 have no lease, since they reach no leader: shards 0, 1 are not served until one of s3, s4, s5 can/,
  );
  t.is(of(2, 3), undefined, 'an election');
  t.is(of(1, 3, { leaseHeld: true }), undefined, 'served until the lease is over');
  t.is(of(1, 3, { leaseHeld: false, stopping: true }), undefined);
});

test('memory that is nearly full is told of the server, or of the shards that have used up what each may have', (t) => {
  const of = (usedBytes: number, shardUsedBytes: number): readonly string[] =>
    attention(
      status({
        members: [
          member('s1', { memoryBytes: 1000, node: { dataPlane: { workers: [], shards: [{ usedBytes }] } } }),
          member('s2'),
          member('s3'),
        ],
        shards: [shard(0, { usedBytes: shardUsedBytes, memoryLimitBytes: 100 }), shard(1)],
      }),
    );
  t.deepEqual(of(900, 90), []);
  t.deepEqual(of(500, 91), [
    'shard 0 at s1: more than 90 % of the memory that a shard may have is used, and changes fail when it is full. That is the --memory of all servers by the number of shards: add a server (farkv server --join), or start servers again with more --memory',
  ]);
  t.deepEqual(of(935, 91), [
    's1 uses 93 % of its --memory, and changes fail when it is full, also those of shards that have a copy there: add a server (farkv server --join), then farkv shard rebalance; or start s1 again with more --memory',
  ]);
});

test('changes that were refused lately are told where nothing that is full explains it', (t) => {
  const node = { changesRefusedAgoMs: 1000 };
  const others = [member('s2'), member('s3')];
  const shards = [shard(0, { usedBytes: 1 << 20, memoryLimitBytes: 21 << 20 }), shard(1, { owner: 's2' })];
  const small = status({ members: [member('s1', { node }), ...others], shards });
  const [line = '', ...more] = advice(small);
  t.deepEqual(more, []);
  t.regex(
    line,
    /^s1 refused changes in the last five minutes .* A shard has at most 21\.0 MiB, which is the --memory of/,
  );
  t.deepEqual(attention(small), [], 'a writer of large values makes no exit code');
  t.deepEqual(advice(status({ shards })), []);

  const plane = (more: object): object => ({ ...node, dataPlane: { workers: [], shards: [], ...more } });
  for (const full of [
    member('s2', { node: plane({ workers: [{ log: { diskFull: true } }] }) }),
    member('s2', { memoryBytes: 10, node: plane({ shards: [{ usedBytes: 10 }] }) }),
    member('s2', { node: { fullCopies: [0] } }),
  ]) {
    const explained = status({ members: [member('s1', { node }), full, member('s3')], shards });
    t.deepEqual([advice(explained).length, attention(explained).length], [0, 1]);
  }
});

test('of shards whose owner has a full disk nothing else is told', (t) => {
  const node = { dataPlane: { workers: [{ log: { diskFull: true } }], shards: [] } };
  const shards = [shard(0, { state: 'closed' }), shard(1, { copies: { trouble: 'too few' } })];
  const alone = status({ members: [member('s1', { node })], shards });
  t.deepEqual(underWay(alone), []);
  const lines = attention(alone);
  t.is(lines.length, 1);
  t.regex(lines[0]!, /^the disk of s1 is full/);
});

test('copies without room are told with the command, and where the disk is full only that is told', (t) => {
  const node = { fullCopies: [1, 4] };
  t.deepEqual(attention(status({ members: [member('s1', { node: { fullCopies: [3] } }), member('s2', { node })] })), [
    'the copy of shard 3 at s1 has no room for what its owner has: start s1 again with more --memory; or add a server (farkv server --join), then farkv drain s1',
    'the copies of shards 1, 4 at s2 have no room for what their owners have: start s2 again with more --memory; or add a server (farkv server --join), then farkv drain s2',
  ]);
  const workers = [{ log: { diskFull: true } }];
  const lines = attention(
    status({ members: [member('s2', { node: { ...node, dataPlane: { workers, shards: [] } } })] }),
  );
  t.is(lines.length, 1);
  t.regex(lines[0]!, /^the disk of s2 is full/);
});

test('while a server is drained, copies without room are no reason to drain another one', (t) => {
  const full = { node: { fullCopies: [1] } };
  const drained = (id: string, more = {}): MemberStatus => member(id, { draining: true, ...more });
  const room = 'the copy of shard 1 at s1 has no room for what its owner has: start s1 again with more --memory';
  t.deepEqual(attention(status({ members: [member('s1', full), member('s2'), drained('s3')] })), [
    `${room}, add a server (farkv server --join), or keep s3, which is being drained (farkv drain s3 --undo)`,
  ]);
  t.deepEqual(attention(status({ members: [member('s1', full), drained('s2'), drained('s3')] })), [
    `${room}, add a server (farkv server --join), or keep s2, s3, which are being drained (farkv drain s2 --undo; farkv drain s3 --undo)`,
  ]);
  t.deepEqual(attention(status({ members: [drained('s1', full), member('s2'), member('s3')] })), [
    `${room}, or add a server (farkv server --join)`,
  ]);
});

test('a server that is drained has a line until nothing is left there', (t) => {
  const members = [member('s1'), member('s2', { draining: true }), member('s3')];
  t.deepEqual(underWay(status({ members })), []);
  t.deepEqual(underWay(status({ members, moveErrors: [], shards: [shard(0, { owner: 's2' }), shard(1)] })), [
    's2 is being drained, and still owns 1 shard',
  ]);
});

test('a copy that could not be made is told with both servers, one without room only once', (t) => {
  const notCopied = [
    { member: 's2', times: 3 },
    { member: 's3', times: 1, full: true },
  ];
  const copies = { trouble: 'degraded', copies: [], notCopied };
  t.deepEqual(attention(status({ shards: [shard(0), shard(1, { copies })] })), [
    'no copy of shard 1 could be made at s2 of what s1 has: the log of s2 says why; look at the network between the two. farkv status --connect s2:7400 shows whether s1 is reached, farkv doctor what is wrong with RDMA. It is tried again, later and later',
  ]);
});

test('a certificate near its end is named, with the command that renews it', (t) => {
  const now = Date.UTC(2026, 0, 1);
  const days = (n: number): { readonly node: object } => ({ node: { certificateEndsMs: now + n * 86_400_000 } });
  const members = [member('s1', days(14)), member('s2', days(1.5)), member('s3', days(-1)), member('s4', days(0.5))];
  t.deepEqual(attention(status({ members }), now), [
    'the certificate of s2 expires in 1 day: farkv secrets renew DIR --within 14, then copy it to s2; no restart is needed',
    'the certificate of s3 has expired: farkv secrets renew DIR --within 14, then copy it to s3; no restart is needed',
    'the certificate of s4 expires within a day: farkv secrets renew DIR --within 14, then copy it to s4; no restart is needed',
  ]);
});

test('a disk that is full is named, whatever it has no room for', (t) => {
  const log = { diskFull: true };
  const lines = attention(
    status({
      members: [
        member('s1', { node: { group: { diskFull: true } } }),
        member('s2', { node: { dataPlane: { workers: [{ log }], shards: [] } } }),
      ],
    }),
  );
  t.is(lines.length, 2);
  t.regex(lines[0] ?? '', /^the disk of s1 is full, and it takes no changes of the metadata: free space/);
  t.regex(lines[1] ?? '', /^the disk of s2 is full, and changes are refused: free space .* up to 128 MiB/);
});

test('two voters need nobody, and whoever reads the status is told to have a third', (t) => {
  const two = [member('s1'), member('s2')];
  const line =
    'the metadata group has two voters, and goes on only while both are there: if s1 or s2 is lost, nothing is answered; add a third server (farkv server --join), with --witness if it is to keep no values';
  const after = status({ members: two });
  t.deepEqual(advice(after), [line]);
  t.deepEqual(attention(after), []);
  t.like(statusDocument(after), { advice: [line] });
  t.deepEqual(advice(status({ members: [...two, member('s3', { role: 'announced', state: 'absent' })] })), [line]);
  for (const members of [
    [member('s1')],
    [...two, member('s3')],
    [...two, member('s3', { role: 'learner' })],
    [member('s1'), member('s2', { witness: true }), member('s3'), member('s4')],
  ])
    t.deepEqual(advice(status({ members })), []);
  t.deepEqual(advice(status({ members: two, leader: undefined })), [], 'nobody can join');
});

test('owners that a rebalance would spread are told with it, and only where it would move something', (t) => {
  const ids = ['s1', 's2', 's3'];
  const of = (owners: readonly number[], more: object = {}, ...changed: MemberStatus[]): string[] =>
    advice(
      status({
        members: ids.map(
          (id) => changed.find((one) => one.id === id) ?? member(id, { memoryBytes: 2 ** 30, node: {} }),
        ),
        shards: owners
          .flatMap((count, i) => Array.from({ length: count }, () => ids[i]))
          .map((owner, i) => shard(i, { owner })),
        ...more,
      }),
    );
  const after = (moves: string): string[] => [
    `shards are not spread by the memory of the servers: s1 owns 0, s2 owns 9, s3 owns 3; farkv shard rebalance moves ${moves}, and with --dry-run says which`,
  ];
  t.deepEqual(of([0, 9, 3]), after('5'));
  t.deepEqual(of([4, 4, 4]), []);
  t.deepEqual(of([5, 4, 4]), [], 'what one has more is nobody');
  t.regex(of([5, 4, 3])[0] ?? '', /; farkv shard rebalance moves one, /);
  const large = member('s1', { memoryBytes: 2 ** 31, node: {} });
  t.deepEqual(of([6, 3, 3], {}, large), [], 'by memory');
  t.is(of([4, 4, 4], {}, large).length, 1);
  t.deepEqual(of([0, 6, 6], {}, member('s1', { memoryBytes: 0, witness: true })), []);
  t.deepEqual(of([0, 6, 6], {}, member('s1', { memoryBytes: 2 ** 30, draining: true })), []);
  t.deepEqual(of([0, 9, 3], { moves: [{ shard: 1, to: 's1' }] }), [], 'it goes on');
  t.deepEqual(of([0, 9, 3], { leader: undefined }), []);
  for (const gone of [{ state: 'unreachable' }, { state: 'absent' }, { node: { stopping: true } }] as const)
    t.deepEqual(of([0, 9, 3], {}, member('s1', { memoryBytes: 2 ** 30, ...gone })), [], 'it is to come back first');
  t.deepEqual(of([1, 8, 3], {}, member('s1', { memoryBytes: 2 ** 30, draining: true })), [], 'it gives its shard away');
  // The fifth goes to s3, which has room.
  const full = { dataPlane: { workers: [], shards: [{ shard: 99, usedBytes: 0.95 * 2 ** 30 }] } } as object;
  t.regex(of([0, 9, 3], {}, member('s1', { memoryBytes: 2 ** 30, node: full }))[0] ?? '', /rebalance moves one,/);
});

test('copies that a rebalance would spread are told with it once the owners are spread', (t) => {
  const ids = ['s1', 's2', 's3'];
  const of = (places: readonly string[], more: object = {}): string[] =>
    advice(
      status({
        members: ids.map((id, i) => member(id, { memoryBytes: 2 ** 30, control: [`10.0.0.${i}:7400`], node: {} })),
        shards: places.map((place, i) => {
          const at = place.split(' ');
          const copies = at.map((id) => ({ member: id, state: 'in-sync', ...more }));
          return shard(i, { owner: at[0], copies: { wanted: 2, inSync: 2, minInSync: 1, config: 1, copies } });
        }),
      }),
    );
  const uneven = ['s1 s2', 's2 s1', 's3 s1', 's1 s3', 's2 s1', 's3 s1'];
  t.deepEqual(of(uneven), [
    'copies of shards are not spread by the memory of the servers: s1 has 6, s2 has 3, s3 has 3; farkv shard rebalance spreads them',
  ]);
  t.deepEqual(of(['s1 s2', 's2 s3', 's3 s1', 's1 s2', 's2 s3', 's3 s1']), []);
  t.deepEqual(of(uneven, { state: 'joining' }), [], 'they come to be');
  // s3 is full, and has a copy of one: what is handed over takes nothing.
  for (const copied of [0, 1, 2]) {
    const full = { dataPlane: { workers: [], shards: [{ shard: copied, usedBytes: 2 ** 30 }] } };
    const copies = (n: number) =>
      (n === copied ? ['s1', 's3'] : ['s1']).map((id) => ({ member: id, state: 'in-sync' }));
    const handed = advice(
      status({
        members: [member('s1', { memoryBytes: 2 ** 30, node: {} }), member('s3', { memoryBytes: 2 ** 30, node: full })],
        shards: [0, 1, 2].map((n) =>
          shard(n, { owner: 's1', memory: { live: 9 }, copies: { wanted: 2, copies: copies(n) } }),
        ),
      }),
    );
    t.regex(handed.join('\n'), /rebalance moves one,/);
  }
});

test('shards whose copies share a zone are told where a server of another could have one', (t) => {
  const of = (places: readonly string[], zones: string, node: object = {}): string[] =>
    advice(
      status({
        members: Array.from(zones, (zone, i) =>
          member(`s${i + 1}`, { memoryBytes: 2 ** 30, failureDomain: `zone ${zone}`, node: zone === 'b' ? node : {} }),
        ),
        shards: places.map((place, i) => {
          const at = place.split(' ');
          const copies = at.map((id) => ({ member: id, state: 'in-sync' }));
          const memory = { live: 2 ** 29 } as object;
          return shard(i, { owner: at[0], memory, copies: { wanted: at.length, copies } });
        }),
      }),
    );
  const places = ['s1 s2', 's2 s3', 's3 s1', 's1 s2', 's2 s3', 's3 s1'];
  t.deepEqual(of(places, 'aab'), [
    'shards 0, 3 have all copies in zone a, and s3 is in another: if zone a fails, so do all of them; farkv shard move 0 s3 keeps one there, and so on',
  ]);
  t.regex(of(['s1 s2', ...places.slice(1, 3)], 'aab').join(), /^shard 0 has all copies in zone a, .* keeps one there$/);
  t.deepEqual(of(places, 'aaa'), [], 'nobody could');
  t.deepEqual(of(places, 'abc'), []);
  const full = { dataPlane: { workers: [], shards: [{ shard: 99, usedBytes: 0.8 * 2 ** 30 }] } };
  t.deepEqual(of(places, 'aab', full), [], 'there is no room');
  t.deepEqual(of(['s1', 's2', 's3'], 'aab'), [], 'of one copy');
});

/** With every line that can be made: what begins it, and whose status it is of. */
const WRONG: readonly (readonly [line: string, status: ClusterStatus])[] = (() => {
  const away = member('s2', { state: 'unreachable' });
  const of = (node: object): ClusterStatus => status({ members: [member('s1', { node }), member('s2'), member('s3')] });
  const plane = (more: object): object => ({ dataPlane: { workers: [], shards: [], ...more } });
  const withCopies = (copies: object, ...members: MemberStatus[]): ClusterStatus =>
    status({ members: [member('s1'), ...members], shards: [shard(0, { copies: { copies: [], ...copies } })] });
  const full = { usedBytes: 91, memoryLimitBytes: 100 };
  return [
    ['no server leads', status({ leader: undefined, members: [member('s1'), away] })],
    ['s2 does not answer', status({ members: [member('s1'), away] })],
    ['s2 has never come', status({ members: [member('s1'), member('s2', { state: 'absent' })] })],
    ['s1 has not answered its clients', of({ frontStalledMs: 4000 })],
    ['s1 ran out of file descriptors', of(plane({ descriptorsMissed: 1 }))],
    ['the certificate of s1', of({ certificateEndsMs: 0 })],
    ['s1 has no lease from', of({ leaseHeld: false })],
    [
      's1 has no lease, since',
      status({ leader: undefined, members: [member('s1', { node: { leaseHeld: false } }), away] }),
    ],
    ['the disk of s1 is full, and changes', of(plane({ workers: [{ log: { diskFull: true } }] }))],
    ['the disk of s1 is full, and it takes', of({ group: { diskFull: true } })],
    ['s1 found the write-ahead log', of({ values: { aside: true } })],
    ['s1 has no new snapshot', of(plane({ shards: [{ shard: 0, usedBytes: 0, snapshotErrno: 5 }] }))],
    ['s1 uses', status({ members: [member('s1', { memoryBytes: 10, node: plane({ shards: [{ usedBytes: 10 }] }) })] })],
    ['shard 0 at s1: more than 90 %', status({ shards: [shard(0, full)] })],
    ['shard 0: every copy is lost', withCopies({ gone: true })],
    ['shard 0: no server that answers', withCopies({ awaits: ['s2'] }, away)],
    ['shard 0 can be reached', status({ members: [away], shards: [shard(0, { owner: 's2', state: 'unreachable' })] })],
    ['shard 0: no changes are taken', withCopies({ trouble: 'too few' })],
    ['the copy of shard 4', of({ fullCopies: [4] })],
    ['the copies of shards 4, 5', of({ fullCopies: [4, 5] })],
    [
      'the copy of shard 6',
      status({ members: [member('s1', { node: { fullCopies: [6] } }), member('s2', { draining: true })] }),
    ],
    ['no copy of shard 0', withCopies({ notCopied: [{ member: 's2', times: 1 }] }, member('s2'))],
    [
      '3 copies of each value',
      status({ members: [member('s1')], replication: [{ level: 'replicated', replicas: 3 }] }),
    ],
  ];
})();

test('each line names a command with its action, or an option of a server', async (t) => {
  const options = OPTION_NAMES.map((name) => `--${name}`);
  const two = status({ members: [member('s1'), member('s2')] });
  const skewed = status({ members: ['s1', 's2', 's3'].map((id) => member(id, { memoryBytes: 1, node: {} })) });
  const copies = ['s1', 's2'].map((id) => ({ member: id, state: 'in-sync' }));
  const zones = status({
    members: ['a', 'a', 'b'].map((zone, i) => member(`s${i + 1}`, { memoryBytes: 1, zone, node: {} })),
    shards: [shard(0, { copies: { wanted: 2, copies } }), shard(1, { owner: 's2' }), shard(2, { owner: 's3' })],
  });
  const node = { changesRefusedAgoMs: 0 };
  const refused = status({ members: [member('s1', { node }), member('s2'), member('s3')] });
  for (const [begin, wrong] of [
    ...WRONG,
    ['the metadata group has two voters', two],
    ['shards are not spread', skewed],
    ['s1 refused changes', refused],
    ['shard 0 has all copies in a', zones],
  ] as const) {
    const lines = [...advice(wrong), ...attention(wrong)];
    t.true(
      lines.some((line) => line.startsWith(begin)),
      `${begin}: ${lines.join('; ')}`,
    );
    for (const line of lines) {
      const commands = [...line.matchAll(/\bfarkv ([a-z-]+)(?: ([a-z-]+))?/g)];
      const named = (line.match(/--[a-z-]+/g) ?? []).filter((one) => options.includes(one));
      t.true(commands.length + named.length > 0, line);
      for (const [words, name = '', action = ''] of commands) {
        const command = await commandNamed(name)?.();
        t.truthy(command, `${words}: ${line}`);
        if (command?.actions !== undefined) t.true(Object.hasOwn(command.actions, action), `${words}: ${line}`);
      }
    }
  }
});
