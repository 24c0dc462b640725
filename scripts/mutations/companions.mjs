/** What must not be missing where a server that goes away, or is full, is told from a copy that is there. */
import { by, inFile } from './checks/in-file.mjs';

const full = (title) => ({ test: 'core/shards/full.test.ts', title });
const attention = (title) => ({ test: 'server/attention.test.ts', title });
const handover = (title) => ({ test: 'core/shards/handover.test.ts', title });
const backup = by('dataplane_backup');
const brake = (title) => ({ test: 'core/shards/brake.test.ts', title });

export const mutations = [
  ...inFile('core/shards/companions.ts', [
    [
      'companions: a copy that joins again is taken away for having been late before',
      brake('a copy that joins again is not late for what was sent before the data plane had that config'),
      "  if (what === 'late' && one.joins === 'when back') return;\n",
      '',
    ],
  ]),
  ...inFile('native/dataplane/backup.c', [
    [
      'full: a copy without room tells nobody',
      backup('a_copy_that_is_full_says_so_once_and_acknowledges_nothing_more'),
      'if (why == FKV_TABLE_FULL || why == FKV_NO_MEMORY) backup_tell',
      'if (why == FKV_OK) backup_tell',
    ],
  ]),
  ...inFile('core/shards/backup.ts', [
    [
      'full: a copy that acknowledges nothing is kept though enough others are in sync',
      full('a copy that is full has itself removed where enough others are in sync, and its server says so'),
      'if (!damaged && !full && !(',
      'if (!damaged && !(',
    ],
    [
      'full: what was acknowledged goes with a copy that changes need',
      full('a copy that is full and that changes need stays, with all that was acknowledged, and its server says so'),
      'policyOf(c.metadata, shard), damaged);',
      'policyOf(c.metadata, shard), damaged || full);',
    ],
    [
      'full: a copy that takes nothing joins again with what it has',
      full('a copy that joins and is full is made anew, later and later, and is full until it is made'),
      'life.damaged || life.full || (!isLast',
      'life.damaged || (!isLast',
    ],
    [
      'full: operators are not told that no copy can be made',
      full('a copy for which there is no memory from the first is full'),
      '  life.full = full;\n',
      '',
    ],
  ]),
  ...inFile('core/shards/report.ts', [
    [
      'companions: a server that ends waits for copies that are gone',
      handover('a server that ends waits for a copy that joins, unless the server of that copy has ended'),
      'heirsTo(c, shard).some((id) => !gone.has(id))',
      'heirsTo(c, shard).length > 0',
    ],
    [
      'companions: a server that ends waits for no copy that joins',
      handover('a server that ends waits for a copy that joins, unless the server of that copy has ended'),
      '...copiesOf(c, shard).map(',
      '...copiesOf(c, shard).filter(isWhole).map(',
    ],
    [
      'companions: a server that ends with the only copy waits for no other one',
      handover(
        'a server that ends with the only copy waits for another one, while a server is there that may be given it',
      ),
      'policyOf(c.metadata, shard).replicas > 1',
      'false',
    ],
    [
      'companions: what only servers that end have is said to be elsewhere',
      handover('a server that ends looks at the others until they end too, and says what it leaves behind'),
      ' && !gone.has(copy.member)',
      '',
    ],
  ]),
  ...inFile('server/attention.ts', [
    [
      'full: the status does not say that a copy is full',
      attention('copies without room are told with the command, and where the disk is full only that is told'),
      '    ...members.flatMap(ofFull),\n',
      '',
    ],
    [
      'companions: the status does not say that servers are missing for copies',
      attention('shards that are lost, that take no changes, and too few servers are told with the command'),
      "level !== 'cache' && replicas > keepers",
      "level === 'cache' && replicas > keepers",
    ],
    [
      'companions: servers that keep no values count for copies',
      attention('shards that are lost, that take no changes, and too few servers are told with the command'),
      'witness !== true && !draining',
      '!draining',
    ],
  ]),
];
