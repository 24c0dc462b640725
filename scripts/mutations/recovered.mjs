/** What must not be missing where durable copies come back from disks (docs/durable-cluster.md). */
import { inFile } from './checks/in-file.mjs';

const recovered = (title) => ({ test: 'core/metadata/recovered.test.ts', title });
const lives = (title) => ({ test: 'core/shards/recovered.test.ts', title });
const DAMAGED = recovered(
  'a copy that is damaged goes where another may come; the only one waits, for a later start or an operator',
);
const LONGEST = recovered('the longest log leads, when all copies are back');

export const mutations = [
  ...inFile('core/metadata/reduce-promotions.ts', [
    [
      'recovered: the only copy is forgotten when it could not be read',
      DAMAGED,
      "return policy.level === 'durable' && waitsOnLoss(policy) && isWhole(present) && !others ? present : undefined;",
      'return undefined;',
    ],
  ]),
  ...inFile('core/metadata/copy-sets.ts', [
    [
      'recovered: what was back once counts as back for ever',
      recovered('a copy that comes back while its owner lives stays what it was, with the new start'),
      '    const { recovered: _, ...c } = copy;',
      '    const c = copy;',
    ],
  ]),
  ...inFile('core/metadata/copy-policy.ts', [
    ['recovered: a shorter log of the same epoch leads', LONGEST, ' || y.lsn - x.lsn', ''],
    ['recovered: a longer log of an earlier epoch leads', LONGEST, 'return y.epoch - x.epoch || y.lsn', 'return y.lsn'],
    [
      'recovered: the first copy that is back leads at once',
      LONGEST,
      'return heir?.recovered !== undefined && !isOver &&',
      'return heir === undefined && !isOver &&',
    ],
    [
      'recovered: a copy that did not come back with its member is given the shard',
      DAMAGED,
      'mayCome(state, c) && c.id !== undefined && isUsable(c.member))',
      'isWhole(c) && c.id !== undefined && isUsable(c.member))',
    ],
  ]),
  ...inFile('core/shards/recovered.ts', [
    [
      'recovered: the only copy is thrown away when it could not be read',
      lives('the only copy is kept when it could not be read'),
      "if (entry === undefined) c.act({ do: 'discard', shard, copy });",
      "c.act({ do: 'discard', shard, copy });",
    ],
  ]),
  ...inFile('core/shards/held.ts', [
    [
      'recovered: a new shard counts before it is on the disk',
      lives('a new durable shard is on the disk before it counts'),
      'if (isNew && !state.kept && isDurable(c, shard))',
      'if (!isNew && !state.kept && isDurable(c, shard))',
    ],
  ]),
];
