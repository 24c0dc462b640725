/** What a cluster says of itself after so many PUTs, for tests of rates. */
import { HISTOGRAM_BOUNDS } from '../../core/exposition.js';
import type { ClusterStatus } from '../../server/status.js';
import { requestsOf } from './request-counts.js';

const NONE = { count: 0, p50: 0, p99: 0, max: 0, below: Array<number>(HISTOGRAM_BOUNDS).fill(0) };
/** One server, after so many PUTs; `shards` of 1 KiB each. */
export const afterPuts = (put: number, shards = 1): ClusterStatus =>
  ({
    ...{ clusterId: 'ab'.repeat(16), leader: 's1', term: 3, mapEpoch: 1, answeredBy: 's1' },
    ...{ moves: [], moveErrors: [], failovers: [], replication: [] },
    members: [
      {
        ...{ id: 's1', state: 'up', leader: true, role: 'voter', draining: false, memoryBytes: 1 << 30 },
        node: {
          ...{
            group: { diskFull: false },
            processId: 1,
            version: '1',
            uptimeMs: 7_200_000,
            clients: 0,
            leaseHeld: true,
          },
          dataPlane: {
            workers: [
              {
                requests: requestsOf({ put }),
                readsServed: 0,
                reported: { hits: put, misses: 0, reads: 2 * put, readBytes: 0, twoSidedGets: 0 },
                latencyNs: { get: NONE, put: NONE },
              },
            ],
            shards: Array.from({ length: shards }, () => ({ usedBytes: 1 << 9, memoryBytes: 1 << 10 })),
          },
        },
      },
    ],
    shards: Array.from({ length: shards }, (_, shard) => ({ shard, owner: 's1', state: 'serving' })),
  }) as unknown as ClusterStatus;
