/**
 * What must not be missing from copy sets: each rule of docs/copy-sets.md, taken out, is found by the simulation of
 * copies; what keeps values available, or is refused by another rule as well, is noticed by a unit test.
 */
import { always, drop, instead, never, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const policy = (title) => ({ test: 'core/metadata/copy-policy.test.ts', title });
const leader = (title) => ({ test: 'core/metadata/leader-policy.test.ts', title });
const copies = (title) => ({ test: 'core/metadata/copies.test.ts', title });
const simulated = (simulation) => ({ simulation, application: 'copies', seeds: 40, steps: 20_000 });
const LACKS = simulated(/: (seen values|copies|one owner|shrinking): /);
const GIVEN_UP = simulated(/: (given up|shrinking): /);
const CONFIG = simulated(/: config: /);
const promotions = (title) => ({ test: 'core/metadata/promotions.test.ts', title });
const loss = (title) => ({ test: 'core/metadata/shard-loss.test.ts', title });

export const mutations = rows('copies', {
  'given-while-relied-on': [
    drop(),
    leader(
      'shards that never had an owner get one at once, others when no earlier owner is relied on, and by the map of then',
    ),
  ],
  'earlier-config': [
    instead('set?.config === c.config', 'set !== undefined'),
    simulated(/: (config|copies|seen values): /),
  ],
  'half-a-copy-eligible': [without('isWhole'), { ...LACKS, from: 90 }],
  'joining-becomes-eligible': [drop(), LACKS],
  'last-copy-damaged': [always('others.some'), { ...GIVEN_UP, from: 119 }],
  'same-config': [instead('set.config + 1', 'set.config'), CONFIG],
  'joining-keeps-its-id': [instead('=> copy', '=> ({ ...copy, id: _id })'), simulated(/: copies: copy \w+ truncates /)],
  'waiting-assigned-empty': [
    without('waitsOnLoss'),
    promotions('when the last copy is gone a shard waits, or is served empty, as its policy says'),
  ],
  'eligible-promoted': [instead("heir?.state !== 'in-sync'", 'heir === undefined'), LACKS],
  'restarted-owner-empty': [without('isKept'), GIVEN_UP],
  'dead-owner-empty': [
    never(),
    promotions('a dead owner of the only copy keeps its shard where that waits, and loses it where it does not'),
  ],
  'reset-while-it-may-return': [never('c.lost'), GIVEN_UP],
  'emptied-while-it-may-return': [
    without('allDead'),
    policy('a dead owner with nobody to follow: the shard waits, or is emptied when all of its copies are dead'),
  ],
  'reset-while-relied-on': [never(), loss('a vacant shard is reset only when the leases of earlier starts are over')],
  'reset-while-it-recovers': [
    always(),
    {
      test: 'server/shard-reset.test.ts',
      title: 'copies are not given up while their server reads them from its disk',
    },
  ],
  'durable-served-empty': [
    never(),
    {
      test: 'core/metadata/recovered.test.ts',
      title: 'durable values wait for servers that are silent, since these come back with their disks',
    },
  ],
  'server-with-a-copy-removed': [
    never(),
    copies('a server with a copy in sync is not removed; one whose copy joins is, with that'),
  ],
});
