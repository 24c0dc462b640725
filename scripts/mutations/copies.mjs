/**
 * What must not be missing from copy sets: each rule of docs/copy-sets.md, taken out, is found by the simulation of
 * copies; what keeps values available, or is refused by another rule as well, is noticed by a unit test.
 */
import { inFile } from './checks/in-file.mjs';

const copies = (title) => ({ test: 'core/metadata/copies.test.ts', title });
const promotions = (title) => ({ test: 'core/metadata/promotions.test.ts', title });
const plan = (title) => ({ test: 'core/metadata/copy-plan.test.ts', title });
const policy = (title) => ({ test: 'core/metadata/copy-policy.test.ts', title });
const operators = (title) => ({ test: 'server/status-copies.test.ts', title });
const failovers = (title) => ({ test: 'core/metadata/failovers.test.ts', title });
const loss = (title) => ({ test: 'core/metadata/shard-loss.test.ts', title });
const simulated = (simulation) => ({ simulation, application: 'copies', seeds: 40, steps: 20_000 });
const LACKS = simulated(/: (seen values|copies|one owner|shrinking): /);
const GIVEN_UP = simulated(/: (given up|shrinking): /);
const CONFIG = simulated(/: config: /);
const leader = (title) => ({ test: 'core/metadata/leader-policy.test.ts', title });
const NAMES = 'a command about copies is refused with any of its names another one: epoch, config, starts, owner';

export const mutations = [
  ...inFile('core/metadata/copy-sets.ts', [
    [
      'copies: a shard that was never served is waited for when it is lost',
      promotions('a shard that was never served has nothing to wait for; once it counts its own copy it has'),
      "isNew ? { ...own, state: 'joining' } : own",
      'own',
    ],
    [
      'copies: what came with a move is taken for a new shard',
      copies('a shard that came with its values is not new, whatever the policy is by then'),
      '!brought && waitsOnLoss(policy)',
      'waitsOnLoss(policy)',
    ],
  ]),
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
  ...inFile('core/metadata/reduce.ts', [
    [
      'copies: shards are given away by the map of before',
      leader(
        'shards that never had an owner get one at once, others when no earlier owner is relied on, and by the map of then',
      ),
      'c.mapEpoch !== undefined && c.mapEpoch !== state.mapEpoch',
      'c.mapEpoch === state.mapEpoch + 1',
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
      'copies: a copy that was late begins anew',
      copies(
        'a copy that its owner removes may join again; it stays eligible where too few are left for new changes, and it is whole',
      ),
      "isWhole && tooFew ? 'eligible' : 'joining'",
      "isWhole && tooFew ? 'eligible' : 'gone'",
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
    [
      'copies: an eligible copy comes back with another table',
      copies('an eligible copy comes back with its own table only'),
      '(present.id !== undefined && present.id !== c.copy)',
      'present.id === undefined && isTaken',
    ],
  ]),
  ...inFile('core/metadata/copy-sets.ts', [
    [
      'copies: the leader takes copies away that new changes need',
      copies('the leader removes what joins, and copies in sync down to what new changes need'),
      'owner !== undefined && inSync(others) >= minInSync',
      'owner !== undefined',
    ],
    [
      'copies: a damaged copy that changes need stays',
      copies('a damaged copy goes by the word of its member, however few stay, unless it is the last'),
      'if (isDamaged) return others.some((one) => isWhole(one) && (isMarked(copy) || !isMarked(one)));',
      '',
    ],
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
      'copies: that an epoch was handed over is forgotten with the next config',
      promotions('an owner hands its shard over to a copy in sync, and stays in sync itself'),
      '    ...(set.handed === undefined ? {} : { handed: set.handed }),\n',
      '',
    ],
    [
      'copies: a shard is emptied in its config',
      CONFIG,
      'return { config: set.config + 1, copies:',
      'return { config: set.config, copies:',
    ],
    [
      'copies: eligible copies stay so when enough are in sync',
      LACKS,
      "copies: enough ? copies.filter((c) => c.state !== 'eligible') : copies,",
      'copies: enough ? copies : [...copies],',
    ],
    [
      'copies: other eligible copies stay so under a new owner',
      LACKS,
      "if (c.state === 'eligible' || !fits(copy, heir)) return [];",
      '',
    ],
    [
      'copies: the last owner stays in sync though it was not asked',
      promotions(
        'a copy in sync is promoted: it is open at once in its worker, others stay in sync, the last owner joins',
      ),
      "return ends ? [] : [{ ...c, state: 'joining' }];",
      'return ends ? [] : [c];',
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
    [
      'copies: a shard that is opened with a copy is taken for a new one',
      simulated(/: (shrinking|given up): /),
      '(s.owner === owner && set.copies.some((c) => c.member === owner && isWhole(c)))',
      's.shard < 0',
    ],
  ]),
  ...inFile('core/metadata/reduce-promotions.ts', [
    [
      'copies: the move of a shard outlives its epoch',
      copies('a shard with copies is handed over, not copied: its move is over with its epoch'),
      'moves: state.moves.filter((m) => !byNumber.has(m.shard)),',
      '',
    ],
    [
      'copies: the last owner, whose disk may lack what it sent, stays eligible',
      { ...LACKS, from: 125 },
      'const copies = inherited(set, heir, shard.owner);',
      "const copies = inherited(set, heir, shard.owner).map((c): Copy => (c.member === shard.owner ? { ...c, state: 'eligible' } : c));",
    ],
    [
      'copies: nobody is told that an epoch was handed over',
      promotions('an owner hands its shard over to a copy in sync, and stays in sync itself'),
      ', handed: opened.epoch };',
      ' };',
    ],
    [
      'copies: the copy of an owner that ends stays in sync',
      promotions('the copy of an owner that ends goes with the handover'),
      'c.ends ? c.owner : undefined',
      'undefined',
    ],
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
      'copies: an owner that starts again gets a shard empty that is to wait',
      promotions('when the last copy is gone a shard waits, or is served empty, as its policy says'),
      'const owner = isKept || (isLost && waitsOnLoss(policy)) ? undefined : id;',
      'const owner = isKept ? undefined : id;',
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
  ...inFile('core/metadata/owner-leases.ts', [
    [
      'copies: vacant shards are given while a start that has ended is relied on',
      policy('a vacant shard goes to a living copy when the leases of every earlier start are over'),
      'return Math.max(this.#earlier, this.#startsOver);',
      'return this.#earlier;',
    ],
  ]),
  ...inFile('core/metadata/reduce-moves.ts', [
    [
      'copies: a shard with copies is handed over to a server that is drained',
      copies('a shard is not handed over to a server that is drained, nor beyond the copies that there may be'),
      's.id === to && s.draining',
      'false',
    ],
    [
      'copies: the server that a shard is handed over to says that it copies it',
      copies('a shard with copies is handed over, not copied: its move is over with its epoch'),
      'present?.to !== c.to || present.handover === true',
      'present?.to !== c.to',
    ],
    [
      'copies: what a cache has left is handed over',
      copies('a cache that has copies left is moved when they are gone'),
      "policyOf(state, shard).level === 'cache'",
      'false',
    ],
  ]),
  ...inFile('core/metadata/leader-policy.ts', [
    [
      'copies: a handover to which no copy will come stands for ever',
      policy('a handover is called off when no copy will come to that server'),
      '!leases.dead(m.to, nowMs) && !getsNone(state, m)',
      '!leases.dead(m.to, nowMs)',
    ],
  ]),
  ...inFile('core/metadata/plan.ts', [
    [
      'copies: a rebalance copies what could be handed over',
      {
        test: 'core/metadata/plan.test.ts',
        title: 'a shard with copies goes to a server that has one rather, and such shards go first',
      },
      'Number(elsewhere.has(b)) - Number(elsewhere.has(a)) ||',
      '',
    ],
  ]),
  ...inFile('core/metadata/copy-policy.ts', [
    [
      'copies: the copy to which a shard is handed over is one too many',
      policy('a server that a shard is moved to gets a copy beyond the factor; one goes when it is the owner'),
      'staying <= replicas || heir !== undefined) return leaving;',
      'staying <= replicas) return leaving;',
    ],
    [
      'copies: the copy that is one too many goes wherever it is',
      policy('the copy that is one too many goes where most copies are'),
      'crowd(b.member) - crowd(a.member) || b.rank - a.rank',
      'b.rank - a.rank',
    ],
    [
      'copies: the leader gives vacant shards at once',
      { ...LACKS, from: 310 },
      'if (nowMs < leases.earlierStartsOverAt()) return [];',
      '',
    ],
    [
      'copies: a dead member is replaced at once',
      policy('a dead member has its place for a time; then another has the copy'),
      'nowMs >= this.endMs(id, REPLACE_MS)',
      'nowMs >= this.endMs(id, 0)',
    ],
    [
      'copies: any number of copies is made from and to a server at a time',
      policy('at most 2 copies are made from a server, and to a server, at a time'),
      'return (this.#joins.get(id) ?? 0) >= JOINS_AT_ONCE;',
      'return (this.#joins.get(id) ?? 0) < 0;',
    ],
    [
      'copies: a copy that joins at a dead member stays',
      policy('a copy that joins is removed when its member has been dead for a time; one in sync is left to its owner'),
      'draining.has(c.member) || nowMs >= absences.endMs(c.member, REJOIN_MS)',
      'draining.has(c.member)',
    ],
    [
      'copies: a copy that joins is removed though its member may come back',
      policy('a copy that joins is removed when its member has been dead for a time; one in sync is left to its owner'),
      'nowMs >= absences.endMs(c.member, REJOIN_MS)',
      'nowMs >= absences.endMs(c.member, 0)',
    ],
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
    [
      'copies: a shard is reset to a copy at a server that is dead',
      loss('a copy that joins, at a server that answers, may become the shard; no other'),
      ' &&\n      leases.alive(c.member, nowMs),\n  );\n  const copy',
      ',\n  );\n  const copy',
    ],
  ]),
  ...inFile('core/metadata/copy-plan.ts', [
    [
      'copies: copies lie in one zone though there are others',
      plan('copies lie in different zones as long as there are any, then in those with the fewest'),
      '(copies.get(zoneOf(a)) ?? 0) - (copies.get(zoneOf(b)) ?? 0) ||',
      '',
    ],
  ]),
  ...inFile('core/metadata/reduce-moves.ts', [
    [
      'copies: a shard is moved away from its copies',
      copies('a shard with copies is handed over, not copied: its move is over with its epoch'),
      'if (!hasCopies(state, c.shard)) return',
      'if (c.shard >= 0) return',
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
  ...inFile('core/metadata/failovers.ts', [
    [
      'copies: what was handed over is told as a failover',
      failovers('a handover is no failover, and a shard that came without a copy is told as empty'),
      'state.copySets?.[shard]?.handed === epoch ||',
      '',
    ],
    [
      'copies: what a copy of an earlier start had is told as served',
      failovers('a copy of an earlier start is none, and one that was still joining had some values'),
      ' || copy.start !== now.members.get(owner)?.incarnation',
      '',
    ],
    [
      'copies: an owner that had started again is said not to answer',
      failovers('an owner that was silent, and one that had started again, are told apart'),
      'state.members.get(last.id)?.incarnation === last.start',
      'last.id !== owner',
    ],
  ]),
  ...inFile('server/cli/commands/replication.ts', [
    [
      'copies: a setting that is not said is taken back',
      operators('what an operator does not say stays as it is set, unless the level changes'),
      'level === known?.level ? known : undefined',
      'undefined as Policy | undefined',
    ],
    [
      'copies: changes that will be refused are called degraded',
      operators('who sets more copies than servers can keep is told what becomes of changes'),
      'up < minInSync',
      'up < minInSync - replicas',
    ],
  ]),
];
