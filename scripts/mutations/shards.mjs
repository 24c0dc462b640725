/**
 * What must not be missing from core/shards: each rule of core/shards/index.ts, taken out, is found by the simulator;
 * what is no matter of safety is noticed by a test. The simulator's rows end at the first seed that finds it.
 */
import { inFile } from './checks/in-file.mjs';

const moves = (title) => ({ test: 'server/shards/moves.test.ts', title });
const arrivals = (title) => ({ test: 'server/shards/arrivals.test.ts', title });
const rules = (title) => ({ test: 'core/shards/shards.test.ts', title });
const life = (title) => ({ test: 'server/shards/driver.test.ts', title });
const simulated = (simulation, from = 1) => ({ simulation, from, application: 'owners', seeds: 200, steps: 20_000 });
const TWO_OWNERS = /: owner leases: .* clients may rely on/;
const LOST = /: moved shards: /;
const WRONG_CALL = /: shards: /;
const ANY = /: (owner leases|moved shards|shards): /;

export const mutations = [
  ...inFile('core/shards/held.ts', [
    [
      'shards: what the metadata has taken goes on to be served (rule 4)',
      simulated(ANY),
      '  if (!isOwn(c, life)) {\n    close(c, life);\n    return;\n  }\n  switch',
      '  switch',
    ],
    [
      'shards: what is taken while its move is under way is closed when that is over (rule 4)',
      simulated(TWO_OWNERS),
      '  if (!isOwn(c, life)) {\n    close(c, life);\n    return;\n  }\n  switch',
      "  if (!isOwn(c, life) && state.is !== 'sealed') {\n    close(c, life);\n    return;\n  }\n  switch",
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
      'else if (c.leasesOver) {',
      'else {',
    ],
    [
      'shards: a shard is sealed for no copy (rule 5)',
      rules(
        'a shard that moves is sealed for its copy when leases are short, paused when the copy is complete, and given up when the pause is done',
      ),
      "c.ask(life, { do: 'seal', shard: life.shard, copy: state.copy });",
      "c.ask(life, { do: 'seal', shard: life.shard, copy: undefined });",
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
    [
      'shards: it is given up before the pause is done (rule 6)',
      simulated(TWO_OWNERS),
      "  if (state.at !== 'paused') return;",
      "  if (state.at !== 'paused' && state.at !== 'pausing') return;",
    ],
    [
      'shards: a paused shard is served again though its copy is there (rule 7)',
      simulated(TWO_OWNERS),
      '  if (move === undefined) {\n    // The copy is lost.',
      "  if (move?.phase !== 'copied') {\n    // The copy is lost.",
    ],
    [
      'shards: a paused shard whose copy is lost stays paused (rule 7)',
      moves('a new owner that has all of it dies: the old one goes on with all that it had'),
      "    state.at = 'resuming';\n    c.act({ do: 'note', note: { of: 'resumed', shard, to: state.to } });\n    c.ask(life, { do: 'serve', shard });",
      "    state.at = 'unsealing';\n    c.ask(life, { do: 'seal', shard, copy: undefined });",
    ],
    [
      'shards: a move that is called off leaves the seal',
      moves('a move that is called off while the last of it is copied leaves the shard as it was, without its seal'),
      "    state.at = 'unsealing';\n    c.ask(life, { do: 'seal', shard, copy: undefined });\n  } else if (complete",
      '    goOn(c, life);\n  } else if (complete',
    ],
    [
      'shards: an owner that is sealed waits without end',
      rules('a shard that is sealed for too long has its move called off, and takes changes when that is so'),
      "    state.at = 'late';",
      '',
    ],
    [
      'shards: leases are short while any move is under way',
      moves(
        'leases are short for those shards only whose end here is near: a move that gets nowhere does not keep them so',
      ),
      'if (move?.copy === undefined) return;',
      'if (move === undefined) return;\n      c.leases.begin(life);\n      if (move.copy === undefined) return;',
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
    [
      'shards: a copy that is complete is thrown away when the shard changes hands (rule 9)',
      arrivals(
        'what was copied is kept when its new owner applies the end of the copy and the change of owner at once',
      ),
      "const known = phaseOf(c, life) === 'complete';",
      "const known = phaseOf(c, life) === 'complete' && sourceOf(c, life) !== undefined;",
    ],
    [
      'shards: a table is closed while it is copied into (rule 10)',
      simulated(WRONG_CALL),
      "  become(life, { is: 'clearing', then, open: isOpen, at: 'stopping' });\n  c.ask(life, { do: 'stop', shard: life.shard });",
      "  become(life, { is: 'clearing', then, open: isOpen, at: 'stopping' });\n  cleared(c, life, life.state as At<'clearing'>, 'stop');",
    ],
    [
      'shards: a shard that cannot be copied is copied again without end',
      arrivals(
        'an owner that cannot be reached is tried again later and later, and then the move is called off: the owner goes on, and it is told why',
      ),
      'full || life.attempts >= COPY_ATTEMPTS',
      'full || life.attempts >= 10 * COPY_ATTEMPTS',
    ],
    [
      'shards: copies that fail follow each other as fast as at first',
      arrivals(
        'an owner that cannot be reached is tried again later and later, and then the move is called off: the owner goes on, and it is told why',
      ),
      'PAUSE_MS * 2 ** (attempts - 1)',
      'PAUSE_MS',
    ],
    [
      'shards: a shard that rests does not notice that it came, empty',
      rules("a shard that could not be copied and is this server's, empty, is opened at once"),
      "      if (sourceOf(c, life) === undefined) c.end(life);\n      return;\n    case 'calling off'",
      "      return;\n    case 'calling off'",
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
      'shards: a result counts in a state that did not ask for it, in histories (rule 11)',
      simulated(ANY),
      'if (this.#lives.get(life.shard) !== life || life.state !== state) return;',
      'if (this.#lives.get(life.shard) !== life || state === undefined) return;',
    ],
    [
      'shards: a shard is opened before the metadata names this start (rule 1)',
      rules('nothing is opened before the metadata names this start of the server'),
      'if (!isNamed(this)) return;',
      '',
    ],
    [
      'shards: a result counts in a state that did not ask for it (rule 11)',
      rules('a copy is finished after `last`, complete after `finish`, and used when it is given'),
      'if (this.#lives.get(life.shard) !== life || life.state !== state) return;',
      'if (this.#lives.get(life.shard) !== life || state === undefined) return;',
    ],
    [
      'shards: whoever has lost a copy does not say so',
      arrivals('a server whose copy is not there any more calls the move off'),
      'if (phase !== undefined) this.#stay(s, s.owner);',
      '',
    ],
    [
      'shards: nothing waits for memory',
      arrivals(
        "what does not fit in this server's memory is not copied again and again: its move is called off, and rests when it is planned anew",
      ),
      'this.#noRoom.add(life.shard);',
      '',
    ],
    [
      'shards: the start is not marked before it serves',
      life('the start is marked once, before the first shard is served, and memory is shared out'),
      "if (!this.#marked) this.act({ do: 'mark' });",
      '',
    ],
  ]),
  ...inFile('core/shards/short-leases.ts', [
    [
      'shards: a shard is sealed before leases are short',
      moves('a move that is called off in time changes nothing'),
      'return this.#short || ',
      'return this.#round !== undefined || ',
    ],
    [
      'shards: leases stay short',
      moves('a move that is called off in time changes nothing'),
      "this.#options.act({ do: 'leases', ms: this.#options.leaseMs });",
      '',
    ],
  ]),
  ...inFile('server/shards/driver.ts', [
    [
      'shards: nobody waits for what is closed when a lease comes',
      moves('the fence is behind every close that was told, and costs nothing when there was none'),
      '    this.#fence.raise();\n    const closing',
      '    const closing',
    ],
  ]),
];
