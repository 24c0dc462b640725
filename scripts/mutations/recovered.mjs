/** What must not be missing where durable copies come back from disks (docs/durable-cluster.md). */
import { by, inFile } from './checks/in-file.mjs';

const recovered = (title) => ({ test: 'core/metadata/recovered.test.ts', title });
const lives = (title) => ({ test: 'core/shards/recovered.test.ts', title });
const NAMES = recovered('what a disk has under another name is none of the copies');
const DAMAGED = recovered(
  'a copy that is damaged goes where another may come; the only one waits, for a later start or an operator',
);
const LONGEST = recovered('the longest log leads, when all copies are back');
const SOLE = recovered('a sole copy that comes back is its owner again at once, where it is');

export const mutations = [
  ...inFile('native/dataplane/snapshots.c', [
    [
      'recovered: the snapshot of a new shard waits until it is served',
      by('dataplane_snapshot')('a_new_shard_is_on_the_disk_when_it_is_asked_for'),
      '    if (s->state == SHARD_OPEN && !s->copy && !s->snapshot.owed && !durable_has_begun(s)) durable_begins(s);\n',
      '',
    ],
  ]),
  ...inFile('core/metadata/reduce-promotions.ts', [
    [
      'recovered: a copy comes back under another name',
      NAMES,
      'if (present.id === recovered?.copy) {',
      'if (recovered) {',
    ],
    [
      'recovered: the only copy is forgotten when it could not be read',
      DAMAGED,
      "return policy.level === 'durable' && waitsOnLoss(policy) && isWhole(present) && !others ? present : undefined;",
      'return undefined;',
    ],
    [
      'recovered: a damaged copy stays where another may come',
      DAMAGED,
      'isWhole(present) && !others ? present',
      'isWhole(present) ? present',
    ],
    ['recovered: a sole copy waits for the leader', SOLE, 'left.filter(isWhole).length === 1)', 'left.length < 0)'],
  ]),
  ...inFile('core/metadata/reduce.ts', [
    [
      'recovered: a shard goes to another worker than its copy',
      SOLE,
      'if (s.owner === c.id && sets.get(s.shard)?.copies.some((copy) => copy.member === c.id && isWhole(copy))) return s;',
      '',
    ],
  ]),
  ...inFile('core/metadata/reduce-copies.ts', [
    [
      'recovered: open shards become durable',
      recovered('shards that are open do not become durable, nor are durable ones anything else'),
      "if (isOpen && (level === 'durable')",
      "if (!isOpen && (level === 'durable')",
    ],
  ]),
  ...inFile('core/metadata/copy-sets.ts', [
    [
      'recovered: a new durable shard is waited for before its copy counts',
      recovered('a new durable shard has nothing to wait for before its copy counts'),
      "(policy.replicas > 1 || policy.level === 'durable')",
      'policy.replicas > 1',
    ],
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
      'recovered: what was away leads before what was not',
      recovered('a copy that was never away leads at once'),
      'return x === undefined ? -1 : 1;',
      'return x === undefined ? 1 : -1;',
    ],
    [
      'recovered: the first copy that is back leads at once',
      LONGEST,
      'return heir?.recovered !== undefined && !isOver &&',
      'return heir === undefined && !isOver &&',
    ],
    [
      'recovered: copies that do not come are waited for',
      recovered('a copy that is back leads when the others did not come for a time'),
      'return (this.#back.get(shard) ?? Infinity) + RECOVER_MS;',
      'return Infinity;',
    ],
    [
      'recovered: a copy that did not come back with its member is given the shard',
      DAMAGED,
      'mayCome(state, c) && c.id !== undefined && isUsable(c.member))',
      'isWhole(c) && c.id !== undefined && isUsable(c.member))',
    ],
    [
      'recovered: of a dead owner the first copy that is back leads',
      recovered('where the owner did not come back, its copies that did are waited for in the same way'),
      'if (isAwaited(state, set, heir, isUsable, nowMs >= absences.recoveredMs(shard))) return undefined;',
      '',
    ],
  ]),
  ...inFile('core/shards/recovered.ts', [
    [
      'recovered: a copy that the metadata has no more goes on',
      lives('what the metadata has no more is thrown away, also what could not be read'),
      'if (entry?.start === c.memberIncarnation) comeBack(c, life, entry);',
      'if (entry !== undefined || c) comeBack(c, life, entry ?? { state: "joining" });',
    ],
    [
      'recovered: the only copy is thrown away when it could not be read',
      lives('the only copy is kept when it could not be read'),
      "if (entry === undefined) c.act({ do: 'discard', shard, copy });",
      "c.act({ do: 'discard', shard, copy });",
    ],
  ]),
  ...inFile('core/shards/backup.ts', [
    [
      'recovered: a copy that is back takes the place of its owner at once',
      lives('a copy that is back gives its owner time to come'),
      'const ms = before * TURN_MS + life.patienceMs;',
      'const ms = before * TURN_MS;',
    ],
    [
      'recovered: what stays on a disk is taken away when its server ends',
      lives('a server that ends keeps what is on its disk'),
      '!(c.leaving && !isDurable(c, shard))',
      '!c.leaving',
    ],
  ]),
  ...inFile('server/status-copies.ts', [
    [
      'recovered: a shard whose disk came back without it is not found by a reset of all',
      {
        test: 'server/status-copies.test.ts',
        title: 'a shard is gone when the only server with a copy came back without it, in memory or on a disk',
      },
      'of !== undefined && isGone(state, of)',
      "set.copies.every((c) => c.state === 'joining')",
    ],
  ]),
  ...inFile('server/node.ts', [
    [
      'recovered: metadata of an earlier time says what is removed',
      {
        test: 'test/integration/durable.long.test.ts',
        title: 'a server alone leaves its disk as it is, since its metadata may be old',
      },
      'if (isDurable(driver.state))\n      await whenCurrent(',
      'if (driver.state.clusterId === "")\n      await whenCurrent(',
    ],
  ]),
  ...inFile('core/shards/held.ts', [
    [
      'recovered: what is on the disk is removed when the server ends',
      lives('a server that ends keeps what is on its disk'),
      "do: isDurable(c, life.shard) ? 'pause' : 'close'",
      "do: 'close'",
    ],
    [
      'recovered: a new shard counts before it is on the disk',
      lives('a new durable shard is on the disk before it counts'),
      'if (isNew && !state.kept && isDurable(c, shard))',
      'if (!isNew && !state.kept && isDurable(c, shard))',
    ],
  ]),
];
