/**
 * What must not be missing from core/shards: each rule of core/shards/index.ts, taken out, is found by the simulator;
 * what is no matter of safety is noticed by a test. The simulator's rows end at the first seed that finds it.
 */
import { inFile } from './checks/in-file.mjs';
const rules = (title) => ({ test: 'core/shards/shards.test.ts', title });
const life = (title) => ({ test: 'server/shards/driver.test.ts', title });
const simulated = (simulation, from = 1) => ({ simulation, from, application: 'owners', seeds: 200, steps: 20_000 });
const TWO_OWNERS = /: owner leases: .* clients may rely on/;
const LOST = /: moved shards: /;
const WRONG_CALL = /: shards: /;
const copies = (title) => ({ test: 'core/shards/copies.test.ts', title });
const handover = (title) => ({ test: 'core/shards/handover.test.ts', title });
const replicated = (simulation, from = 1) => ({ simulation, from, application: 'replicas', seeds: 60, steps: 10_000 });

export const mutations = [
  ...inFile('core/shards/handover.ts', [
    [
      'shards: an owner goes on though its handover may still come (rule 17)',
      handover('an owner that does not know what came of its handover goes on in a later config only'),
      ' || set.config === state.config) return;',
      ') return;',
    ],
    [
      'shards: an owner that is deposed throws its copy away',
      handover('an owner that another one replaces goes on as a copy with what it has, if it was served'),
      "if (is !== 'serving' && is !== 'handing') return undefined;",
      "if (is !== 'handing') return undefined;",
    ],
    [
      'shards: a copy that joins is given the shard',
      handover('an owner that has not served, or whose copies may lack something, hands nothing over'),
      "copy.state === 'in-sync' &&",
      "copy.state !== 'eligible' &&",
    ],
  ]),
  ...inFile('core/shards/backup.ts', [
    [
      'shards: a copy follows before the metadata has its name (rule 12)',
      copies('a copy is copied, named, and follows its owner; nothing is asked for twice'),
      "state.at === 'telling' && life.named",
      "state.at === 'telling'",
    ],
    [
      'shards: a copy that its owner may wait for is thrown away (rule 12)',
      copies('what has followed is thrown away only when the metadata has another name in its place'),
      '  failedOnce(c, life, failed);\n  renounce(c, life);',
      "  failedOnce(c, life, failed);\n  clear(c, life, 'again');",
    ],
    [
      'shards: a copy that joins goes on with an owner that does not know it (rule 16)',
      copies('a copy that its owner does not know begins anew, unless it is in sync'),
      "if (entry.state === 'joining' && isHopeless) {",
      'if (life.attempts < 0) {',
    ],
    [
      'shards: a damaged copy asks to be promoted',
      copies('a damaged copy does not ask to be promoted'),
      ' && !life.damaged)\n      takeTurn',
      ')\n      takeTurn',
    ],
  ]),
  ...inFile('core/shards/companions.ts', [
    [
      'shards: a copy is required while others may be relied on (rule 18)',
      copies('no copy is required before its owner serves: others may be relied on until then'),
      '!isBeforeServing(life.state) || (c.leasesOver && isOwnNew(c, life, set))',
      'true',
    ],
    [
      'shards: a copy is proposed in a config in which it was not required (rule 14)',
      copies('what was promised of a copy in an earlier config is asked for again in the next'),
      "state.is === 'idle' || ('config' in state && state.config !== set.config)",
      "state.is === 'idle'",
    ],
    [
      'shards: the data plane is not told a later config (rule 14)',
      replicated(/: (copies in sync|seen values|copies): /),
      'if (copies.config !== undefined && copies.config >= set.config) return;',
      'if (copies.config !== undefined) return;',
    ],
    [
      'shards: a copy is called whole by an owner that has not served (rule 15)',
      copies('a copy is not called whole before its owner has served'),
      'whole: copies.whole, ...failed',
      'whole: true, ...failed',
    ],
  ]),
  ...inFile('core/shards/held.ts', [
    [
      'shards: a new shard is served before another server has it (rule 19)',
      copies('a new shard is served when another server has a copy of it, and then counts its own'),
      '!c.leasesOver || isAlone(c, life, state)',
      '!c.leasesOver',
    ],
    [
      'shards: a shard is served whose own copy does not count yet (rule 19)',
      copies('a new shard is served when another server has a copy of it, and then counts its own'),
      'else if (isNew) countOwn(c, life, set);',
      'else if (set === undefined) countOwn(c, life, { config: 0, copies: [] });',
    ],
    [
      'shards: a shard is served before the metadata has its regions (rule 2)',
      simulated(WRONG_CALL),
      'return s?.owner === c.memberId && s.incarnation === incarnation;',
      "return s?.owner === c.memberId && incarnation !== '';",
    ],
    [
      'shards: a shard is served before the leases of the last run are over (rule 3)',
      simulated(TWO_OWNERS),
      'else if (!c.leasesOver || isAlone(c, life, state)) return;',
      'else if (isAlone(c, life, state)) return;',
    ],
    [
      'shards: a sealed shard takes changes again while it is being copied (rule 5)',
      simulated(LOST),
      "    state.at = 'sealed';\n    c.ask(life, { do: 'wait', ms: SEALED_MS });",
      "    state.at = 'unsealing';\n    c.ask(life, { do: 'seal', shard: life.shard, copy: undefined });",
    ],
    [
      'shards: a shard is paused before its copy is complete (rule 6)',
      rules(
        'a shard that moves is sealed for its copy when leases are short, paused when the copy is complete, and given up when the pause is done',
      ),
      '} else if (complete(move)) {\n    become',
      '} else if (move.phase !== undefined) {\n    become',
    ],
  ]),
  ...inFile('core/shards/coming.ts', [
    [
      'shards: the copy is said to be complete before its last part (rule 8)',
      simulated(LOST),
      "    become(life, { is: 'last' });\n    c.ask(life, { do: 'finish', shard });",
      "    become(life, { is: 'copied', at: 'telling', busy: false });\n    advanceComing(c, life);",
    ],
    [
      'shards: a copy is used before it is given (rule 9)',
      rules('a copy is finished after `last`, complete after `finish`, and used when it is given'),
      "state.at === 'waiting' && isGiven(c, life)",
      "state.at === 'waiting' && known",
    ],
  ]),
  ...inFile('core/shards/common.ts', [
    [
      'shards: a copy goes on for a move that was planned since',
      rules('a copy that its move is over for is stopped, then closed, also when the move was planned anew'),
      'move.planned === life.planned && ',
      '',
    ],
    [
      'shards: any copy is taken for the one that a shard was sealed for (rule 5)',
      rules('a seal for a copy that is no more ends, also when another copy is about to take its place'),
      'return move?.copy === copy ? move : undefined;',
      "return copy !== '' ? move : undefined;",
    ],
    [
      'shards: a shard is kept under an epoch that is over (rule 1)',
      rules('what is taken is closed at once, whatever is under way'),
      's.epoch === life.epoch) ||',
      's.epoch >= life.epoch) ||',
    ],
  ]),
  ...inFile('core/shards/shards.ts', [
    [
      'shards: a shard is opened before the metadata names this start (rule 1)',
      rules('nothing is opened before the metadata names this start of the server'),
      'if (!isNamed(this)) return;',
      '',
    ],
    [
      'shards: a shard that comes with a copy that is not here is opened empty (rule 13)',
      copies('a shard whose copy is not here is not opened empty'),
      'if (this.#isLost(shard)) continue;',
      '',
    ],
    [
      'shards: the start is not marked before it serves',
      life('the start is marked once, before the first shard is served, and memory is shared out'),
      "if (!this.#marked) this.act({ do: 'mark' });",
      '',
    ],
  ]),
];
