/** What a frame of `farkv top` says of servers, and beside what needs a person. */
import test from 'ava';
import { viewOf, type View } from '../http/view.js';
import type { ClusterStatus } from '../status.js';
import { topScreen } from './top-screen.js';

const MIB = 1 << 20;
const WIDE = { columns: Infinity, rows: Infinity };

function viewWith(more: object = {}, usedBytes = 0): View {
  const node = {
    ...{ group: { diskFull: false }, clients: 3, leaseHeld: true },
    dataPlane: { workers: [], shards: [{ shard: 0, usedBytes, indexBytes: 2 * MIB, heapBytes: 6 * MIB }] },
  };
  const server = { state: 'up', leader: false, role: 'voter', draining: false };
  const status = {
    ...{ clusterId: 'ab'.repeat(16), leader: 's1', term: 3, mapEpoch: 1, answeredBy: 's1' },
    members: [
      { ...server, id: 's1', leader: true, memoryBytes: 10 * MIB, node },
      { ...server, id: 's2', memoryBytes: 10 * MIB, node: { ...node, dataPlane: { workers: [], shards: [] } } },
      { ...server, id: 's3', memoryBytes: 0, witness: true, node: { ...node, dataPlane: undefined } },
    ],
    shards: [{ shard: 0, owner: 's1', state: 'serving' }],
    ...{ moves: [], moveErrors: [], failovers: [], replication: [] },
    ...more,
  };
  return viewOf({ atMs: 3000, status: status as unknown as ClusterStatus });
}

test('a witness is called that, and has no figures of values', (t) => {
  const lines = topScreen(viewWith(), WIDE).split('\n');
  t.regex(
    lines.find((line) => line.startsWith('s2 ')) ?? '',
    /^s2 +up +held +0 +0 +0 +0 B, 0 % +0 B +10\.0 MiB +0 +0 /,
  );
  t.regex(lines.find((line) => line.startsWith('s3 ')) ?? '', /^s3 +up, witness +held +(- +){11}3$/);
});

test('how near the memory of a server is to its limit is seen on a narrow screen, too', (t) => {
  const view = viewWith({}, 9.5 * MIB);
  t.regex(topScreen(view, WIDE), /^s1 .* 9\.5 MiB, 95 % +8\.0 MiB +10\.0 MiB /m);
  t.regex(topScreen(view, { columns: 80, rows: 24 }), /^s1 .* 9\.5 MiB, 95 % /m);
});

test('shards are said to be as they should be only where nothing else is wrong', (t) => {
  t.regex(topScreen(viewWith(), WIDE), /\nevery shard is as it should be$/);
  const full = topScreen(viewWith({}, 9.5 * MIB), WIDE);
  t.regex(full, /^needs attention: s1 uses 95 % of its --memory/m);
  t.regex(full, /\nevery shard is served$/);
});

test('what shards wait for is said above them', (t) => {
  const fresh = topScreen(viewWith({ shards: [{ shard: 0, state: 'unassigned' }] }), WIDE);
  t.regex(fresh, /^shard 0: no server has it yet: the leader waits for servers .*\nshard 0: unassigned at nobody/m);
});

test('what is shown of a server that does not answer any more is said to be old', (t) => {
  const [first, second] = topScreen(viewWith(), { columns: 80, rows: 24 }, true).split('\n');
  t.is(first, 's1 does not answer: this is of 00:00:03 UTC, and each known server is asked');
  t.regex(second ?? '', /^farkv /);
});
