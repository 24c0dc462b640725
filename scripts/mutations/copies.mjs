/**
 * What must not be missing from copy sets: each rule of docs/copy-sets.md, taken out, is found by the simulation of
 * copies; what keeps values available, or is refused by another rule as well, is noticed by a unit test.
 */
import { inFile } from './checks/in-file.mjs';

const copies = (title) => ({ test: 'core/metadata/copies.test.ts', title });
const promotions = (title) => ({ test: 'core/metadata/promotions.test.ts', title });
const policy = (title) => ({ test: 'core/metadata/copy-policy.test.ts', title });
const loss = (title) => ({ test: 'core/metadata/shard-loss.test.ts', title });
const simulated = (simulation) => ({ simulation, application: 'copies', seeds: 40, steps: 20_000 });
const LACKS = simulated(/: (seen values|copies|one owner|shrinking): /);
const GIVEN_UP = simulated(/: (given up|shrinking): /);
const CONFIG = simulated(/: config: /);
const leader = (title) => ({ test: 'core/metadata/leader-policy.test.ts', title });
const NAMES = 'a command about copies is refused with any of its names another one: epoch, config, starts, owner';

export const mutations = [
  ...inFile('core/metadata/leader-policy.ts', [
    [
      'copies: a vacant shard is given away while clients may rely on its last owner',
      leader(
        'shards that never had an owner get one at once, others when no earlier owner is relied on, and by the map of then',
      ),
      'if (isVacant && (leases === undefined || nowMs < leases.earlierStartsOverAt())) return undefined;',
      '',
    ],
  ]),
  ...inFile('core/metadata/reduce-copies.ts', [
    [
      'copies: a command of an earlier config fits',
      simulated(/: (config|copies|seen values): /),
      'shard?.epoch === c.epoch && set?.config === c.config ? { shard, set }',
      'shard?.epoch === c.epoch && set !== undefined ? { shard, set }',
    ],
    [
      'copies: a command of an earlier epoch fits',
      copies(NAMES),
      'shard?.epoch === c.epoch && set?.config === c.config ?',
      'shard !== undefined && set?.config === c.config ?',
    ],
    [
      'copies: the owner may be another start of its member',
      copies(NAMES),
      's.owner === by.owner && state.members.get(by.owner)?.incarnation === by.memberIncarnation',
      's.owner === by.owner',
    ],
    [
      'copies: a copy that may lack some of what came with the shard is eligible',
      { ...LACKS, from: 90 },
      "isWhole && tooFew ? 'eligible' : 'joining'",
      "tooFew ? 'eligible' : 'joining'",
    ],
    [
      'copies: a copy that joins is eligible when it is removed',
      LACKS,
      "if (copy.state !== 'in-sync' || isMarked(copy)) return 'gone';",
      '',
    ],
    [
      'copies: an owner removes the only copy of a new shard that counts',
      copies('the only copy of a new shard stays until its owner counts its own'),
      "becomes !== 'eligible' && isWhole(present) && !others.some(isWhole)",
      'false',
    ],
    [
      "copies: the owner's copy is removed",
      copies(NAMES),
      'copy.start === start && member !== shard.owner',
      'copy.start === start',
    ],
  ]),
  ...inFile('core/metadata/copy-sets.ts', [
    [
      'copies: the last copy goes because it is damaged',
      { ...GIVEN_UP, from: 119 },
      'if (isDamaged) return others.some((one) => isWhole(one) && (isMarked(copy) || !isMarked(one)));',
      'if (isDamaged) return true;',
    ],
    [
      'copies: a change keeps its config',
      CONFIG,
      'config: set.config + 1,\n    ...(barrier',
      'config: set.config,\n    ...(barrier',
    ],
    [
      'copies: copies that join go on with other contents',
      simulated(/: copies: copy \w+ truncates /),
      'return joining.map(({ id: _id, renounced: _renounced, ...copy }) => copy);',
      'return [...joining];',
    ],
    [
      'copies: a vacant shard that somebody has is assigned empty',
      promotions('an owner that starts again does not get a shard empty that others have: it goes to one of those'),
      '!set.copies.some(isWhole) && !waitsOnLoss(policyOf(state, s.shard))',
      '!waitsOnLoss(policyOf(state, s.shard))',
    ],
    [
      'copies: a shard that is to wait for an operator is assigned empty',
      promotions('when the last copy is gone a shard waits, or is served empty, as its policy says'),
      '!set.copies.some(isWhole) && !waitsOnLoss(policyOf(state, s.shard))',
      '!set.copies.some(isWhole)',
    ],
  ]),
  ...inFile('core/metadata/reduce-promotions.ts', [
    [
      'copies: an eligible copy promotes itself',
      LACKS,
      "if (heir?.state !== 'in-sync') continue;",
      'if (heir === undefined) continue;',
    ],
    [
      'copies: an owner that starts again gets a shard empty that others have',
      GIVEN_UP,
      'const owner = isKept || (isLost && waitsOnLoss(policy)) ? undefined : id;',
      'const owner = isLost && !isKept && waitsOnLoss(policy) ? undefined : id;',
    ],
    [
      'copies: what a member had before it started again is a copy',
      copies('a member that starts again has no copies, and every set that it was in has a new config'),
      'c.member !== id ? [c] : own === undefined ? [] : [own]',
      'c.member !== id ? [c] : [own ?? c]',
    ],
    [
      "copies: a dead owner's shard goes empty though it is to wait",
      promotions('a dead owner of the only copy keeps its shard where that waits, and loses it where it does not'),
      "return isLost && waitsOnLoss(policyOf(state, s.shard)) ? 'nobody' : undefined;",
      "return isLost && s.shard < 0 ? 'nobody' : undefined;",
    ],
    [
      'copies: an operator resets a shard that a copy may come back for',
      GIVEN_UP,
      "isWhole(copy) && !c.lost.includes(copy.id ?? '')",
      "isWhole(copy) && c.lost.includes('')",
    ],
  ]),
  ...inFile('core/metadata/copy-policy.ts', [
    [
      'copies: a shard goes empty while a member with a copy may come back',
      policy('a dead owner with nobody to follow: the shard waits, or is emptied when all of its copies are dead'),
      'const allDead = set.copies.every((c) => !isWhole(c) || leases.dead(c.member, nowMs));\n  return allDead &&',
      'return',
    ],
  ]),
  ...inFile('core/metadata/shard-loss.ts', [
    [
      'copies: a shard is reset while a server with a copy may come back',
      loss('a shard is not reset while a copy may come back, and its server is named'),
      'mayCome(state, c) && !leases.dead(c.member, nowMs)',
      'mayCome(state, c) && leases.withheld(c.member)',
    ],
    [
      'copies: a vacant shard is reset while its last owner may be relied on',
      loss('a vacant shard is reset only when the leases of earlier starts are over'),
      'owner === undefined && endsMs > 0',
      'owner !== undefined && endsMs > 0',
    ],
  ]),
  ...inFile('core/metadata/reduce-servers.ts', [
    [
      'copies: a server is removed with a copy that is in sync',
      copies('a server with a copy in sync is not removed; one whose copy joins is, with that'),
      'if (kept.length > 0)',
      'if (kept.length < 0)',
    ],
  ]),
];
