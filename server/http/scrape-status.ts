/**
 * The part of a server's own status that /metrics is made from. The thread of Raft picks it, since the status goes to the
 * thread of clients as a copy: with many shards the copy of all costs several times what this one does. Not for: what
 * operators and the page see (status.ts).
 */
import type { DataPlaneStats, ReplicaStats } from '../../native/data-plane-stats.js';
import type { ClusterStatus, MemberStatus, NodeStatus, ShardStatus } from '../status.js';
import type { CopiesStatus } from '../status-copies.js';

type Table = DataPlaneStats['shards'][number];

const OF_SHARD = ['shard', 'owner', 'state'] as const;
const OF_OWNED = [...OF_SHARD, 'entries', 'keyValueBytes', 'usedBytes', 'memoryLimitBytes'] as const;
const OF_COPIES = ['inSync', 'wanted', 'trouble', 'lag'] as const;
const OF_TABLE = [
  ...(['shard', 'usedBytes', 'indexBytes', 'indexFreeBytes', 'liveBytes', 'preparedBytes', 'overflowBytes'] as const),
  ...(['quarantineBytes', 'slackBytes', 'freeBytes', 'smallPageBytes', 'transparentPageBytes'] as const),
  ...(['reservedPageBytes', 'retiredBytes', 'privateBytes', 'buckets', 'overflowBuckets', 'longestChain'] as const),
  ...(['snapshotErrno'] as const),
] as const;

/** Of shards of other servers there is no more than OF_SHARD. */
export type ScrapedShard = Pick<ShardStatus, (typeof OF_OWNED)[number]> & {
  readonly copies?: Pick<CopiesStatus, (typeof OF_COPIES)[number]>;
};
export type ScrapedTable = Pick<Table, (typeof OF_TABLE)[number]> & { readonly copy?: Pick<ReplicaStats, 'role'> };
export type ScrapedNode = Omit<NodeStatus, 'dataPlane'> & {
  readonly dataPlane?: Omit<DataPlaneStats, 'shards'> & { readonly shards: readonly ScrapedTable[] };
};
export type ScrapedMember = Omit<MemberStatus, 'node'> & { readonly node?: ScrapedNode };
export type ScrapeStatus = Omit<ClusterStatus, 'members' | 'shards'> & {
  readonly members: readonly ScrapedMember[];
  readonly shards: readonly ScrapedShard[];
};

function pick<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Pick<T, K> {
  const picked: Partial<Pick<T, K>> = {};
  for (const key of keys) if (key in from) picked[key] = from[key];
  return picked as Pick<T, K>;
}

/** Of the status as the server of this id alone knows it. */
export function scrapeStatus(status: ClusterStatus, id: string): ScrapeStatus {
  return {
    ...status,
    members: status.members.map(({ node, ...member }) =>
      node === undefined ? member : { ...member, node: ofNode(node) },
    ),
    shards: status.shards.map((shard) => (shard.owner === id ? ofOwned(shard) : pick(shard, OF_SHARD))),
  };
}

function ofNode({ dataPlane, ...node }: NodeStatus): ScrapedNode {
  return dataPlane === undefined
    ? node
    : { ...node, dataPlane: { ...dataPlane, shards: dataPlane.shards.map(ofTable) } };
}

function ofTable(table: Table): ScrapedTable {
  const { copy } = table;
  return { ...pick(table, OF_TABLE), ...(copy === undefined ? {} : { copy: { role: copy.role } }) };
}

function ofOwned(shard: ShardStatus): ScrapedShard {
  const { copies } = shard;
  return { ...pick(shard, OF_OWNED), ...(copies === undefined ? {} : { copies: pick(copies, OF_COPIES) }) };
}
