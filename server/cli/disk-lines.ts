/** What the command line says of the logs and snapshots of durable values. */
import { formatSize } from '../../core/size.js';
import { formatDuration } from '../config/units.js';
import type { ClusterStatus, MemberStatus } from '../status.js';
import { table } from './table.js';

type Node = NonNullable<MemberStatus['node']>;

const logsOf = ({ dataPlane }: Node) =>
  (dataPlane?.workers ?? []).flatMap(({ log }) => (log === undefined ? [] : [log]));
const percent = ({ bytes, all }: { readonly bytes: number; readonly all: number }): number =>
  Math.floor((100 * Math.min(bytes, all)) / Math.max(1, all));

function row(id: string, node: Node): string[] {
  const logs = logsOf(node);
  const { snapshots, oldestSnapshotMs } = node.values ?? {};
  if (logs.length === 0) return [id, ...Array.from({ length: 6 }, () => '-')];
  const sum = (of: (log: (typeof logs)[number]) => number): number => logs.reduce((n, log) => n + of(log), 0);
  const batches = sum(({ syncNs }) => syncNs.count);
  const slowest = (which: 'p50' | 'p99' | 'max'): string =>
    batches === 0 ? '-' : formatDuration(Math.max(...logs.map(({ syncNs }) => syncNs[which])));
  return [
    id,
    formatSize(sum(({ bytes }) => bytes)),
    String(sum(({ freeFiles }) => freeFiles)),
    `${slowest('p50')} / ${slowest('p99')} / ${slowest('max')}`,
    batches === 0 ? '-' : (sum(({ records }) => records) / batches).toFixed(1),
    snapshots === undefined ? '-' : String(snapshots),
    oldestSnapshotMs === undefined ? '-' : formatDuration(oldestSnapshotMs * 1e6),
  ];
}

/** One row for each server that keeps values on its disk; '' where none does. */
export function diskTable({ members }: ClusterStatus): string {
  const rows = members.flatMap(({ id, node }) => (node?.values === undefined ? [] : [row(id, node)]));
  return rows.length === 0
    ? ''
    : table(
        [
          { title: 'DISK' },
          { title: 'LOG', right: true },
          { title: 'FREE FILES', right: true },
          { title: 'SYNC P50 / P99 / MAX' },
          { title: 'CHANGES/SYNC', right: true },
          { title: 'SNAPSHOTS', right: true },
          { title: 'OLDEST', right: true },
        ],
        rows,
      );
}

/** Which servers are still reading their disks. */
export function diskLines({ members }: ClusterStatus): string[] {
  return members.flatMap(({ id, node }) => {
    const { recovering, syncMs } = node?.values ?? {};
    const early =
      syncMs === undefined
        ? []
        : [
            `${id} answers changes before its disk has them (--sync ${syncMs}ms): if all copies lose their power, or are killed, at once, those of about that time are lost`,
          ];
    return recovering === undefined
      ? early
      : [...early, `${id} recovers its values: ${percent(recovering)} % of ${formatSize(recovering.all)} read`];
  });
}
