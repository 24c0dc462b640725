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

const brake = (title) => ({ test: 'core/shards/brake.test.ts', title });
const copies = (title) => ({ test: 'core/shards/copies.test.ts', title });
const handover = (title) => ({ test: 'core/shards/handover.test.ts', title });
const replicated = (simulation, from = 1) => ({ simulation, from, application: 'replicas', seeds: 60, steps: 10_000 });
const SEEN = /: (seen values|copies|one owner|owner leases|given up): /;

export const mutations = [
  ...inFile('core/shards/handover.ts', [
    [
      'shards: a shard that is moved goes to any copy',
      handover('a shard that is moved is handed over to that server as soon as its copy is in sync, and to no other'),
      '(leaves || copy.member === to) &&',
      '',
    ],
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
      'shards: an owner that is deposed before it has served keeps its copy',
      handover('an owner that another one replaces goes on as a copy with what it has, if it was served'),
      "if (is !== 'serving' && is !== 'handing') return undefined;",
      '',
    ],
    [
      'shards: an owner that was replaced throws its copy away',
      handover('a drained owner hands its shard over to a copy in sync, and is a copy from then on'),
      "if (is !== 'serving' && is !== 'handing') return undefined;",
      "if (is !== 'serving') return undefined;",
    ],
    [
      'shards: a copy that joins is given the shard',
      handover('an owner that has not served, or whose copies may lack something, hands nothing over'),
      "copy.state === 'in-sync' &&",
      "copy.state !== 'eligible' &&",
    ],
  ]),
  ...inFile('core/shards/brake.ts', [
    [
      'shards: a copy that is late again and again is waited for at once',
      brake('a copy that was late is required as soon as it is back, and later and later when it is late again'),
      'HELD_BACK_MS * 2 ** Math.min(10, times - 2)',
      'HELD_BACK_MS',
    ],
    [
      'shards: a copy that was late once is held back',
      brake('a copy that was late is required as soon as it is back, and later and later when it is late again'),
      'times < 2 ||',
      'times < 1 ||',
    ],
    [
      'shards: a copy is held back for what was long ago',
      brake('a copy that was in time for a minute is as good as any'),
      'if (calm === part) slips.delete(member);',
      'if (calm === member) slips.delete(member);',
    ],
    [
      'shards: a copy is held back though changes are refused without it',
      brake('a copy without which changes are refused is not held back'),
      ' || isWanted(c, life, set)',
      '',
    ],
  ]),
  ...inFile('core/shards/companions.ts', [
    [
      'shards: an eligible copy that its owner does not know stays so for ever',
      copies('an eligible copy that its owner does not know is made anew by its word'),
      '    refused(c, life, id);\n',
      '',
    ],
    [
      'shards: an owner has copies made anew that begin anew by themselves, or are in sync',
      copies('an eligible copy that its owner does not know is made anew by its word'),
      "copy?.state !== 'eligible' || copies.config !== set.config || copies.busy",
      'copy === undefined || copies.config !== set.config || copies.busy',
    ],
    [
      'shards: the place of a copy is kept though its server has started again',
      copies('a copy that has not joined yet is let go of when its server starts again, or names another one'),
      "c.askFor(life, copies, { do: 'drop', shard, copy });",
      'void copy;',
    ],
    [
      'shards: a copy that has become one in sync is let go of',
      copies('a copy that has joined is required, then proposed, again until the metadata has it'),
      '!copies.known.has(id) && set.copies.every((copy) => copy.id !== id)',
      "set.copies.every((copy) => copy.id !== id || copy.state !== 'joining')",
    ],
    [
      'shards: an epoch that was promoted counts as handed over',
      handover('what was handed over is led as such, and what was promoted is not'),
      'handed: set.handed === s.epoch,',
      'handed: true,',
    ],
  ]),
  ...inFile('core/shards/copy-entry.ts', [
    [
      'shards: a copy that joins is given up with its owner',
      copies('a copy that joins goes on with the next owner, and after another one begins anew under another name'),
      '(s.epoch === epoch || s.epoch === epoch + 1)',
      's.epoch === epoch',
    ],
    [
      'shards: a copy that joins waits for owners that do not know it',
      copies('a copy that joins goes on with the next owner, and after another one begins anew under another name'),
      ' && (s.epoch === epoch || s.epoch === epoch + 1)',
      '',
    ],
    [
      'shards: a copy that was removed is kept',
      copies(
        'a copy that was removed, also if it is wanted anew, is one no more, and its values are the base of the next',
      ),
      "copy.state === 'joining' && !life.named ? copy : undefined",
      "copy.state === 'joining' ? copy : undefined",
    ],
  ]),
  ...inFile('core/shards/backup.ts', [
    [
      'shards: a copy whose owner is gone waits for the leader',
      copies('a copy whose owner is gone is promoted by its own proposal, and served when that is applied'),
      "state.orphan !== undefined && entry.state === 'in-sync'",
      "state.orphan !== undefined && entry.state === 'eligible'",
    ],
    [
      'shards: orphans take no turns',
      copies(
        'orphans take turns by rank; one whose turn has not come follows again when its owner is back, or another',
      ),
      'o.rank < rank)',
      'o.rank < 0)',
    ],
    [
      'shards: an orphan that hears its owner again takes its place',
      copies('an orphan that is not in sync waits until it is; one that hears its owner again is none'),
      '  state.orphan = orphan;\n',
      '  state.orphan = orphan ?? state.orphan;\n',
    ],
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
      'shards: a copy is opened as if there were little to copy',
      copies('a copy is copied, named, and follows its owner; nothing is asked for twice'),
      'buckets: s.buckets',
      'buckets: 0',
    ],
    [
      'shards: all copies that were away and are not known begin anew at once',
      copies('a copy that its owner does not know begins anew, unless it is in sync'),
      'if (!state.again) {',
      'if (!state.removing) {',
    ],
    [
      'shards: a copy that follows another owner does not join again',
      copies('a copy that follows another owner joins again with what it has, too'),
      "if (entry.state === 'in-sync' && s?.owner !== undefined) life.epoch = s.epoch;",
      '',
    ],
    [
      'shards: a copy that joins again waits for its owner for ever',
      copies('a copy that was late joins again with what it has, for a time'),
      "state.waits++;\n    c.ask(life, { do: 'wait', ms: REJOINED_MS });",
      'state.waits++;',
    ],
    [
      'shards: a copy that its owner does not know asks on',
      copies('a copy that its owner does not know begins anew, unless it is in sync'),
      '    state.late = true;\n',
      '',
    ],
    [
      'shards: a damaged copy is waited for until it is late',
      copies('a damaged copy that joins begins anew; one in sync has itself removed'),
      '= life.damaged || life.full || (!isLast',
      '= life.full || (!isLast',
    ],
    [
      'shards: a damaged copy that changes need stays',
      copies('a damaged copy that changes need has itself removed all the same, and begins anew'),
      '!damaged && !full && !(c.leaving && !isDurable(c, shard))',
      '!full && !(c.leaving && !isDurable(c, shard))',
    ],
    [
      'shards: a damaged copy is removed as one of a server that ends',
      copies('a damaged copy that changes need has itself removed all the same, and begins anew'),
      'life.damaged ? { damaged: true } : {}',
      '{}',
    ],
    [
      'shards: a damaged copy asks to be promoted',
      copies('a damaged copy does not ask to be promoted'),
      ' && !life.damaged)\n      takeTurn',
      ')\n      takeTurn',
    ],
    [
      'shards: a server that ends asks for what is refused, over and over',
      copies('a server that ends asks for the removal of a copy that may go, and of no other'),
      '  return mayGo(s, copies, entry, policyOf(c.metadata, shard), damaged);',
      '  return mayGo(s, copies, entry, policyOf(c.metadata, shard), true);',
    ],
    [
      'shards: copies do not follow the new owner',
      copies('the other copies follow the new owner'),
      'if (!isSame) {',
      'if (s.epoch < 0) {',
    ],
  ]),
  ...inFile('core/shards/companions.ts', [
    [
      'shards: a copy whose server has ended is waited for until it is late',
      copies('a copy that has no connection is removed at once when its server has ended'),
      "one.late ||= result.failed !== undefined && one.joins !== 'when back';",
      '',
    ],
    [
      'shards: a copy without a connection is removed though its server is there',
      copies('a copy that has no connection is removed at once when its server has ended'),
      "one.late ||= result.failed !== undefined && one.joins !== 'when back';",
      'one.late = true;',
    ],
    [
      'shards: a copy that was removed and joins again is taken for late',
      copies('a late copy is removed, and joins again when it is back; it is whole once the shard was served'),
      "{ joins: 'when back', late: false, told: false, attempts: 0 }",
      "{ joins: 'when back' }",
    ],
    [
      'shards: a copy is required while others may be relied on (rule 18)',
      copies('no copy is required before its owner serves: others may be relied on until then'),
      '!isBeforeServing(life.state) || (c.leasesOver && isOwnNew(c, life, set))',
      'true',
    ],
    [
      'shards: a new shard is not copied before it is served (rule 19)',
      copies('a new shard is served when another server has a copy of it, and then counts its own'),
      '!isBeforeServing(life.state) || (c.leasesOver && isOwnNew(c, life, set))',
      '!isBeforeServing(life.state)',
    ],
    [
      'shards: a copy is proposed in a config in which it was not required (rule 14)',
      copies('what was promised of a copy in an earlier config is asked for again in the next'),
      "state.is === 'idle' || ('config' in state && state.config !== set.config)",
      "state.is === 'idle'",
    ],
    [
      'shards: a copy is proposed before it is required (rule 14)',
      replicated(SEEN),
      "  one.state = { is: 'requiring', config };\n  c.askFor(life, one.state, { do: 'require', shard: life.shard, copy: one.id });",
      "  one.state = { is: 'proposing', config, lsn: 0, busy: false };",
    ],
    [
      'shards: the data plane is not told a later config (rule 14)',
      replicated(/: (copies in sync|seen values|copies): /),
      'if (copies.config !== undefined && copies.config >= set.config) return;',
      'if (copies.config !== undefined) return;',
    ],
    [
      'shards: a late copy is waited for without end',
      copies('a late copy is removed, and joins again when it is back; it is whole once the shard was served'),
      "one.late = what === 'late';",
      'one.late = false;',
    ],
    [
      'shards: a copy is called whole by an owner that has not served (rule 15)',
      copies('a copy is not called whole before its owner has served'),
      'whole: copies.whole }',
      'whole: true }',
    ],
    [
      'shards: an addition that may still come is not given up',
      copies('an eligible copy that is on its way back, and late, is given up in a new config'),
      "(copy.state !== 'eligible' || state.is === 'proposing')",
      "copy.state !== 'eligible' && state.is !== 'resting'",
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
      'shards: a new shard waits for a first copy without end',
      copies(
        'a new shard is served alone when no copy comes in time, no other server is there, or its policy is another',
      ),
      "if (did === 'wait') state.waited = 'enough';",
      "if (did === 'wait') state.waited = 'waiting';",
    ],
    [
      'shards: a shard is served whose own copy does not count yet (rule 19)',
      copies('a new shard is served when another server has a copy of it, and then counts its own'),
      'else if (isNew) countOwn(c, life, set);',
      'else if (set === undefined) countOwn(c, life, { config: 0, copies: [] });',
    ],
    [
      'shards: what the metadata has taken goes on to be served (rule 4)',
      simulated(ANY),
      '  if (!isOwn(c, life)) {\n    taken(c, life);\n    return;\n  }\n  if',
      '  if',
    ],
    [
      'shards: what is taken while its move is under way is closed when that is over (rule 4)',
      simulated(TWO_OWNERS),
      '  if (!isOwn(c, life)) {\n    taken(c, life);\n    return;\n  }\n  if',
      "  if (!isOwn(c, life) && state.is !== 'sealed') {\n    taken(c, life);\n    return;\n  }\n  if",
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
      'if (move?.copy === undefined) {',
      'if (move !== undefined) c.leases.begin(life);\n      if (move?.copy === undefined) {',
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
      'shards: a server copies what is to be handed over to it',
      handover('the server that a shard is moved to waits until it is to have a copy'),
      'handover === true ||\n',
      '',
    ],
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
    [
      'shards: each shard that a server gives up waits for long leases',
      {
        test: 'core/shards/short-leases.test.ts',
        title: 'leases stay short for as long as one after a shard is given up, and the next one does not wait',
      },
      'if (this.#short) this.#options.wait((this.#round = {}));',
      'if (this.#options.leaseMs === 0) this.#options.wait((this.#round = {}));',
    ],
  ]),
  ...inFile('server/shards/driver.ts', [
    [
      'shards: nobody waits for what is closed when a lease comes',
      moves('the fence is behind every close that was told, and costs nothing when there was none'),
      '        this.#fence.raise();\n        await this.#ends(action.shard, dataPlane.closeShard(action.shard));',
      '        await this.#ends(action.shard, dataPlane.closeShard(action.shard));',
    ],
  ]),
];
