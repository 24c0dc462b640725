import test from 'ava';
import type { DataPlaneStats, LogStats } from '../../native/data-plane-stats.js';
import type { ClusterStatus, NodeStatus } from '../status.js';
import { diskLines, diskTable } from './disk-lines.js';

const log: LogStats = {
  bytes: 100 << 20,
  freeFiles: 2,
  diskFull: false,
  syncNs: { count: 100, p50: 500_000, p99: 2_000_000, max: 40_000_000, sum: 0, below: [] },
  records: 250,
};
const statusOf = (values: NodeStatus['values'], logs: readonly LogStats[]): ClusterStatus => {
  const node = {
    ...(values === undefined ? {} : { values }),
    ...(logs.length === 0
      ? {}
      : { dataPlane: { workers: logs.map((one) => ({ log: one })), shards: [] } as unknown as DataPlaneStats }),
  };
  return { members: [{ id: 's1', node }, { id: 's2' }] } as unknown as ClusterStatus;
};

test('a server with logs has a row, with the slowest of its threads', (t) => {
  const slow = { ...log, syncNs: { ...log.syncNs, p50: 700_000, p99: 1_000_000, max: 1_000_000 }, records: 150 };
  t.is(
    diskTable(statusOf({ snapshots: 3, oldestSnapshotMs: 5_400_000 }, [log, slow])),
    'DISK      LOG  FREE FILES  SYNC P50 / P99 / MAX   CHANGES/SYNC  SNAPSHOTS  OLDEST\n' +
      's1    200 MiB           4  700 µs / 2 ms / 40 ms           2.0          3   1.5 h\n',
  );
  t.deepEqual(diskLines(statusOf({ snapshots: 3 }, [log])), []);
});

test('a server that keeps nothing on a disk has none', (t) => {
  t.is(diskTable(statusOf(undefined, [])), '');
  t.deepEqual(diskLines(statusOf(undefined, [])), []);
});

test('a server that answers before its disk has a change is named', (t) => {
  t.deepEqual(diskLines(statusOf({ snapshots: 0, syncMs: 50 }, [log])), [
    's1 answers changes before its disk has them (--sync 50ms): if all copies lose their power, or are killed, at once, those of about that time are lost',
  ]);
});

test('how far a server has read is shown while it recovers', (t) => {
  const status = statusOf({ recovering: { bytes: 3 << 20, all: 8 << 20 }, snapshots: 1, oldestSnapshotMs: 1 }, []);
  t.regex(diskTable(status), /^s1 +- +-/m);
  t.deepEqual(diskLines(status), ['s1 recovers its values: 37 % of 8.0 MiB read']);
});
