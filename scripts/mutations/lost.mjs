/**
 * What must not be missing where nobody is left of a shard but a copy that joins (docs/copies.md), and where copies cannot
 * be made: each with the test that notices.
 */
import { inFile } from './checks/in-file.mjs';

const lost = (title) => ({ test: 'core/shards/lost-shard.test.ts', title });
const loss = (title) => ({ test: 'core/metadata/shard-loss.test.ts', title });
const copies = (title) => ({ test: 'core/shards/copies.test.ts', title });
const rests = (title) => ({ test: 'core/metadata/join-rests.test.ts', title });
const policy = (title) => ({ test: 'core/metadata/copy-policy.test.ts', title });

const VACANT = lost('a copy that joins is kept while the shard has no owner, and leads when an operator says so');
const UNFOLLOWED = lost(
  'what has not followed cannot lead: it is given up, and the metadata is told before that it is',
);
const GIVEN_UP = loss('a copy that its server has given up is offered to nobody, and the refusal says what to do');
const MISSING = loss('a shard that came with a copy which is not there waits for another copy, or for an operator');
const SAID = lost('a server that is to serve a copy which is not here says so, and goes on; the shard waits');

export const mutations = [
  ...inFile('core/shards/backup.ts', [
    [
      'lost: the last copy is thrown away while the shard has no owner',
      VACANT,
      'if (s === undefined || owner === undefined) return true;',
      'if (s === undefined || owner === undefined) return false;',
    ],
    [
      'lost: the last copy is thrown away while its owner is gone',
      lost('a copy that joins is kept while its owner is gone, and begins anew when that one is back'),
      'return isSame && orphan !== undefined;',
      'return false;',
    ],
    [
      'lost: a copy waits for an owner that is there and does not know it',
      lost('an owner that does not know the copy is there'),
      '    state.orphan = undefined;\n  }\n  advanceBackup',
      '  }\n  advanceBackup',
    ],
    [
      'lost: what is given up counts as a copy',
      UNFOLLOWED,
      'name(c, life, state.name, true);',
      'name(c, life, state.name);',
    ],
    [
      'lost: a copy that has a name is thrown away under it',
      lost(
        'a copy of which the metadata has heard in the same look as of the end of its owner is given up in the same way',
      ),
      'else if (source === undefined && life.named) renounce(c, life);',
      '',
    ],
    [
      'joins: a copy that cannot be made is tried again and again',
      copies('what fails again and again is called off by its server, until the metadata has it no more'),
      'if (life.attempts >= ATTEMPTS) {',
      'if (life.attempts > 99 * ATTEMPTS) {',
    ],
    [
      'joins: a copy that does not get in sync is made again and again',
      copies('a copy that follows and does not get in sync is called off, too'),
      'if (!life.full && sourceOf(c, life) !== undefined)',
      'if (life.full)',
    ],
  ]),
  ...inFile('core/shards/shards.ts', [
    [
      'lost: a server ends whose copy is not here',
      SAID,
      'if (incarnation !== undefined || epoch === undefined || config === undefined) {',
      'if (epoch !== -1 || config === undefined) {',
    ],
    [
      'lost: an owner that is replaced before it has opened leaves a copy that is none',
      lost('an owner that is replaced before it has opened has nothing left, and the metadata is told'),
      'for (const s of changed) this.#renounce(s);',
      '',
    ],
  ]),
  ...inFile('core/shards/held.ts', [
    [
      'lost: a server ends whose table never followed',
      lost('a table that never followed and is to lead is closed, and its server says that it is none'),
      "else if (state.is === 'leading' && failed.none === true) c.noCopy(life);",
      '',
    ],
  ]),
  ...inFile('core/metadata/shard-loss.ts', [
    ['lost: operators are offered a copy that is none', GIVEN_UP, '      !isRenounced(c) &&\n', ''],
  ]),
  ...inFile('core/metadata/reduce-promotions.ts', [
    [
      'lost: a shard is reset to a copy that is none',
      GIVEN_UP,
      'one.id === c.from?.copy && !isRenounced(one)',
      'one.id === c.from?.copy',
    ],
    [
      'lost: a shard that may have been served is given up by its owner',
      MISSING,
      ' || at.shard.incarnation !== undefined) return late(c.shard);',
      ') return late(c.shard);',
    ],
    [
      'lost: what joins loses its id when its owner starts again',
      VACANT,
      'isKept ? left : owner === undefined ? others : undefined;',
      'isKept ? left : undefined;',
    ],
  ]),
  ...inFile('core/metadata/reduce-copies.ts', [
    [
      'lost: what is given up becomes in sync',
      GIVEN_UP,
      'if (isRenounced(present)) return refused(',
      'if (c.lsn < 0) return refused(',
    ],
    [
      'joins: what failed before a copy was in sync counts after it',
      rests('a join that is called off is counted, until it succeeds, or a server of the two has begun anew'),
      'withFailed(set, otherFailed(state, c.shard, c.member))',
      'set',
    ],
  ]),
  ...inFile('core/metadata/copy-policy.ts', [
    [
      'lost: the leader removes a copy that joins while its owner is away',
      policy('a copy that joins is not removed while its owner is away: it may be all that is left'),
      'isServed && (draining',
      '(draining',
    ],
    [
      'joins: a copy that is named and does not get in sync keeps its places',
      policy('a copy that has a name and does not get in sync is called off, while its owner is there'),
      ' || absences.isStuck(s.shard, c, nowMs))',
      ')',
    ],
    [
      'joins: a copy that cannot be made is begun again at once',
      rests('what was called off is made elsewhere, and there again after a rest that doubles'),
      '.filter((m) => !absences.joins.rests(state, s.shard, m.id, nowMs));',
      ';',
    ],
  ]),
  ...inFile('core/shards/companions.ts', [
    [
      'joins: an owner begins anew a copy that it cannot require, again and again',
      copies('an owner that could not require a copy so many times calls it off'),
      'one.attempts >= ATTEMPTS ? ({ failed: true } as const) : {};',
      '{};',
    ],
  ]),
];
