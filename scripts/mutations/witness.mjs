/** What keeps shards and copies away from servers that vote and keep no values (core/metadata/placement.ts). */
import { inFile } from './checks/in-file.mjs';

const witness = (title) => ({ test: 'core/metadata/witness.test.ts', title });
const DEAD = witness('a dead owner loses its shards to servers that keep values, or to none');
const COPIES = witness('no copy comes to a witness, and it counts for no part of them');
const everybody = '[...state.members.values()]';

export const mutations = [
  ...inFile('core/metadata/placement.ts', [
    [
      'witness: a first shard is placed on it',
      witness('shards go to servers that keep values'),
      'filter((m) => !isWitness(m))',
      'filter(() => true)',
    ],
    [
      'witness: a part of the shards is expected of it',
      witness('who has not said that it is a witness is expected to keep its part of values'),
      'members.get(id)?.memoryBytes !== 0',
      'id.length > 0',
    ],
  ]),
  ...inFile('core/metadata/leader-policy.ts', [
    ['witness: it takes the shards of the dead', DEAD, 'return keepersOf(state)', `return ${everybody}`],
  ]),
  ...inFile('core/metadata/reduce-moves.ts', [
    ['witness: it may be given what was taken', DEAD, 'whyNoKeeper(state, to) !== undefined', '!state.members.has(to)'],
    [
      'witness: a shard moves there',
      witness('an operator is told that a witness keeps no values'),
      'if (why !== undefined) return',
      "if (why?.includes('joined') === true) return",
    ],
  ]),
  ...inFile('core/metadata/reduce.ts', [
    [
      'witness: an owner comes back as one',
      witness('a server that owns shards does not come back as a witness'),
      'isWitness(c) && state.shards.some((s) => s.owner === c.id)',
      'false',
    ],
  ]),
  ...inFile('core/metadata/reduce-copies.ts', [
    ['witness: a copy is added there', COPIES, 'if (whyNoKeeper(state, member) !== undefined) continue;', ''],
  ]),
  ...inFile('core/metadata/copy-policy.ts', [
    [
      'witness: the leader wants a copy there',
      COPIES,
      'const candidates = keepersOf(state)',
      `const candidates = ${everybody}`,
    ],
  ]),
  ...inFile('core/metadata/reduce-promotions.ts', [
    [
      'witness: a shard is reset to it',
      COPIES,
      'if (why !== undefined) return',
      "if (why?.includes('joined') === true) return",
    ],
  ]),
];
