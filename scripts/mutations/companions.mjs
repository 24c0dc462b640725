/** What must not be missing where a server that goes away, or is full, is told from a copy that is there. */
import { inFile } from './checks/in-file.mjs';

const full = (title) => ({ test: 'core/shards/full.test.ts', title });
const handover = (title) => ({ test: 'core/shards/handover.test.ts', title });

export const mutations = [
  ...inFile('core/shards/backup.ts', [
    [
      'full: what was acknowledged goes with a copy that changes need',
      full('a copy that is full and that changes need stays, with all that was acknowledged, and its server says so'),
      'policyOf(c.metadata, shard), damaged);',
      'policyOf(c.metadata, shard), damaged || full);',
    ],
  ]),
  ...inFile('core/shards/report.ts', [
    [
      'companions: a server that ends with the only copy waits for no other one',
      handover(
        'a server that ends with the only copy waits for another one, while a server is there that may be given it',
      ),
      'policyOf(c.metadata, shard).replicas > 1',
      'false',
    ],
  ]),
];
