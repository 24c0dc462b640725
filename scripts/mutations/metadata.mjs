/** What must not be missing from core/metadata and from what the leader does, each with the test that notices. */
const moves = (title) => ({ test: 'core/metadata/moves.test.ts', title });
const moveRests = (title) => ({ test: 'core/metadata/move-rests.test.ts', title });
const plan = (title) => ({ test: 'core/metadata/plan.test.ts', title });
const rebalance = (title) => ({ test: 'server/cli/rebalance.test.ts', title });
const PLAN_OF_MOVES =
  'random moves under way: no shard is planned to where it is or while it moves, and the shards are spread when all moves are done';
const format = (title) => ({ test: 'core/metadata/format.test.ts', title });
const leases = (title) => ({ test: 'test/metadata/leases.test.ts', title });

export const mutations = [
  {
    name: 'submit: a leader that stands still is given what leaves the values to who may end meanwhile',
    file: 'server/metadata/submit.ts',
    find: 'if (takesFromOthers(command)) ',
    replace: 'if (takesFromOthers(command) && timeoutMs === 0) ',
    caughtBy: {
      test: 'server/metadata/submit.test.ts',
      title: 'a leader is given what leaves the values to the server that asks only when it has answered',
    },
  },
  {
    name: 'submit: an owner that removes a copy does not wait for the leader',
    file: 'server/metadata/submit.ts',
    find: " || (command.t === 'copies-removed' && command.by !== undefined)",
    replace: '',
    caughtBy: {
      test: 'server/metadata/submit.test.ts',
      title: 'a leader is given what leaves the values to the server that asks only when it has answered',
    },
  },
  {
    name: 'plan: shards on their way are planned again',
    file: 'core/metadata/plan.ts',
    find: ' && !coming.has(s.shard)',
    replace: '',
    caughtBy: plan(PLAN_OF_MOVES),
  },
  {
    name: 'plan: moves under way do not count',
    file: 'core/metadata/plan.ts',
    find: 'const shards = withMoves(state);\n  const coming',
    replace: 'const shards = [...state.shards];\n  const coming',
    caughtBy: plan(PLAN_OF_MOVES),
  },
  {
    name: 'rebalance: moves of others are not waited for',
    file: 'server/cli/rebalance.ts',
    find: 'if (waiting.length === 0 && status.moves.length === 0) {',
    replace: 'if (waiting.length === 0) {',
    caughtBy: rebalance('moves that somebody else has begun are waited for, and are not made again'),
  },
  {
    name: 'rebalance: a move that somebody else has begun is a failure',
    file: 'server/cli/rebalance.ts',
    find: 'if (now === undefined || !(onItsWay(now, shard, to) || ownerOf(now, shard) === to)) throw error;',
    replace: 'if (now === undefined || shard >= 0) throw error;',
    caughtBy: rebalance(
      'a shard that is on its way to where the plan has it is joined; one that went there alone is no failure',
    ),
  },
  {
    name: 'rebalance: a move that was called off is tried for ever',
    file: 'server/cli/rebalance.ts',
    find: 'failed.set(nameOf(move), error.message);',
    replace: 'moved += 0;',
    caughtBy: rebalance('a move that was called off is not tried twice, the others are made, and what stayed is named'),
  },
  {
    name: 'rebalance: a shard that somebody else has moved meanwhile is not planned again',
    file: 'server/cli/rebalance.ts',
    find: 'if (epochOf(await cluster.status(), move.shard) === epochOf(before, move.shard)) failed',
    replace: 'if (epochOf(await cluster.status(), move.shard) !== epochOf(before, -1)) failed',
    caughtBy: rebalance('a shard that somebody else has moved back meanwhile is planned anew'),
  },
  {
    name: 'metadata: a late word about a copy counts for the move that was planned anew',
    file: 'core/metadata/reduce-moves.ts',
    find: 'if (present.planned !== c.planned)',
    replace: 'if (c.planned === -1)',
    caughtBy: moves('a move that is called off knows nothing of its copy, also when it is planned again'),
  },
  {
    name: 'metadata: a copy of an earlier start of the member counts',
    file: 'core/metadata/reduce-moves.ts',
    find: 'if (state.members.get(c.to)?.incarnation !== c.memberIncarnation)',
    replace: "if (c.memberIncarnation === '')",
    caughtBy: moves('a new owner that starts again has lost its copy, and the move is withdrawn'),
  },
  {
    name: 'metadata: the name of a copy is forgotten when the shard changes hands',
    file: 'core/metadata/reduced.ts',
    find: ' || (complete(m) && owners.get(m.shard) === m.to)',
    replace: '',
    caughtBy: moves('the copy that a shard was given with is known until its new owner opens it, whatever with'),
  },
  {
    name: 'metadata: a shard is given up for whichever copy there is',
    file: 'core/metadata/reduce-moves.ts',
    find: "present?.phase !== 'copied' || present.copy !== c.copy",
    replace: "present?.phase !== 'copied'",
    caughtBy: moves('a shard is given for the copy that there is, and to nobody who opens it with another'),
  },
  {
    name: 'metadata: a shard that was given up for a copy is opened with another',
    file: 'core/metadata/reduce.ts',
    find: ' && m.copy === c.incarnation',
    replace: '',
    caughtBy: moves('a shard is given for the copy that there is, and to nobody who opens it with another'),
  },
  {
    name: 'metadata: a copy that is done is called off by anybody',
    file: 'core/metadata/reduce-moves.ts',
    find: ' && lost !== undefined && members.get(present.to)?.incarnation === lost',
    replace: '',
    caughtBy: moves('a copy that is done is called off when it is lost, and then only'),
  },
  {
    name: 'metadata: an owner that starts again has what it had released for a copy',
    file: 'core/metadata/reduce-promotions.ts',
    find: 'closed(s, givenTo ?? id)',
    replace: 'closed(s, id)',
    caughtBy: moves(
      'an owner that starts again after it gave a shard up for a copy has not lost what is in it, and nobody changes workers for it',
    ),
  },
  {
    name: 'leader: what was called off is planned there again at once',
    file: 'core/metadata/leader-policy.ts',
    find: '!moveRests.rests(next.shard, m.id, nowMs)',
    replace: 'm.id !== server.id',
    caughtBy: moveRests(
      'where there is no other server a shard rests, each time for twice as long, and does not hold up those behind it',
    ),
  },
  {
    name: 'leader: what follows goes where the first could not go',
    file: 'core/metadata/leader-policy.ts',
    find: '!moveRests.troubled(server.id, m.id)',
    replace: 'm.id !== server.id',
    caughtBy: moveRests(
      'a shard that a drained server cannot give to one goes to another, and so does what follows it',
    ),
  },
  {
    name: 'leader: nobody looks again when a rest is over',
    file: 'core/metadata/leader-policy.ts',
    find: 'if (rested !== undefined) ends.push(rested);',
    replace: '',
    caughtBy: moveRests('the leader looks again when a rest is over, though nothing else happens'),
  },
  {
    name: 'leader: a move that a restart has ended counts as called off',
    file: 'core/metadata/move-rests.ts',
    find: 'startOf(before, id) === startOf(state, id)',
    replace: 'startOf(state, id) !== undefined',
    caughtBy: moveRests('a move that ends because its shard is taken, or a server starts again, was not called off'),
  },
  {
    name: 'leader: a later leader raises the format by what an earlier one was told',
    file: 'server/metadata/leader-duties.ts',
    find: "if (command.t !== 'shards-taken') return await proposeInTerm(command, current.term);",
    replace: "if (command.t !== 'shards-taken') return await propose(command, PROPOSE_MS);",
    caughtBy: leases('the format is raised in the term in which the servers reported what they know, or not at all'),
  },
  {
    name: 'format: an entry of a later format is taken for one that is known',
    file: 'core/metadata/commands.ts',
    find: 'if (format > known || (',
    replace: 'if ((',
    caughtBy: format('a server stops at an entry of a later format, whether it knows the command or not'),
  },
  {
    name: 'format: a snapshot of a later format is taken for one that is known',
    file: 'core/metadata/machine.ts',
    find: 'if (format > this.#known) throw',
    replace: 'if (format < 0) throw',
    caughtBy: format('a server refuses a snapshot of a later format; one that knows it has the same state'),
  },
  {
    name: 'format: it is raised though a server does not know the next one',
    file: 'core/metadata/leader-policy.ts',
    find: '&& knownBy(id) >= next)',
    replace: ')',
    caughtBy: {
      test: 'core/metadata/leader-policy.test.ts',
      title: 'the format is raised when every server has said that it knows the next one',
    },
  },
  {
    name: 'peers: a first server that comes late may have another list',
    file: 'server/metadata/peers.ts',
    find: 'return servers.some((s) => s.id === id && s.instance === undefined) ? firstServers : undefined;',
    replace: 'return servers.length < 0 ? firstServers : undefined;',
    caughtBy: {
      test: 'server/metadata/peers.test.ts',
      title:
        'a server that the cluster was made with and that has not come yet must have been started with the same list',
    },
  },
  {
    name: 'peers: a server ends since another has its address by now',
    file: 'server/metadata/peers.ts',
    find: "if (own === '')",
    replace: "if (own !== ' ')",
    caughtBy: {
      test: 'server/metadata/peers.test.ts',
      title: 'servers that have exchanged their addresses find each other, and none ends for that',
    },
  },
  {
    name: 'leader: what a server that is drained has copied is lost with its owner',
    file: 'core/metadata/leader-policy.ts',
    find: 'state.members.has(m.to) && leases.alive(m.to, nowMs)',
    replace: 'others.some((o) => o.id === m.to)',
    caughtBy: {
      test: 'core/metadata/leader-policy.test.ts',
      title: 'a shard of a dead owner goes to the server that has copied it, also when that one is being drained',
    },
  },
  {
    name: 'peers: a connection that breaks is taken for the end of a server',
    file: 'server/metadata/peer-link.ts',
    find: 'probe([address]).catch(() => {',
    replace: 'Promise.resolve().then(() => {',
    caughtBy: {
      test: 'server/metadata/peers.test.ts',
      title:
        'a server has ended when nobody listens where it did; a connection that breaks and can be made again says nothing',
    },
  },
  {
    name: 'leader: its end is not told to the Raft group',
    file: 'server/metadata/group.ts',
    find: 'gone: (raftId) => driver.leaderGone(raftId),',
    replace: 'gone: () => undefined,',
    caughtBy: {
      test: 'test/integration/leader-ends.long.test.ts',
      title: 'a leader that is killed is replaced at once',
    },
  },
  {
    name: 'leader: it does not hand over when it stops',
    file: 'server/metadata/group.ts',
    find: '      driver.handOver(heir);\n',
    replace: '',
    caughtBy: {
      test: 'test/integration/leader-ends.long.test.ts',
      title: 'a leader that stops in order hands over before it ends, to one that has its log',
    },
  },
  {
    name: 'proposer: what a leader took and lost waits for its time',
    file: 'server/metadata/proposer.ts',
    find: 'for (const pending of [...this.#pending.values()]) this.#submit(pending);',
    replace: '',
    caughtBy: {
      test: 'server/metadata/driver.test.ts',
      title: 'what one leader took and lost is given to the next as soon as it is known',
    },
  },
  {
    name: 'voters: a vote moves without a majority that lives',
    file: 'core/metadata/voter-policy.ts',
    find: 'if (2 * living.length <= voters.length) return undefined;',
    replace: '',
    caughtBy: {
      test: 'core/metadata/voter-policy.test.ts',
      title: 'a vote moves only while most voters live and have the log',
    },
  },
  {
    name: 'voters: a dead voter is replaced at once',
    file: 'core/metadata/voter-policy.ts',
    find: 'absences.silentMs(id, nowMs) >= replaceMs);',
    replace: 'absences.silentMs(id, nowMs) > 0);',
    caughtBy: {
      test: 'core/metadata/voter-policy.test.ts',
      title: 'a voter that has been dead for the time loses its vote to a learner, and not before',
    },
  },
  {
    name: 'voters: a vote goes to a learner without the log',
    file: 'core/metadata/voter-policy.ts',
    find: 'leases.alive(id, nowMs) && caughtUp.has(id);',
    replace: 'leases.alive(id, nowMs);',
    caughtBy: {
      test: 'core/metadata/voter-policy.test.ts',
      title: 'a vote moves only while most voters live and have the log',
    },
  },
  {
    name: 'voters: the dead one keeps its vote',
    file: 'core/metadata/voter-policy.ts',
    find: 'voters.filter((id) => id !== dead), by]',
    replace: 'voters, by]',
    caughtBy: {
      test: 'core/metadata/voter-policy.test.ts',
      title: 'a voter that has been dead for the time loses its vote to a learner, and not before',
    },
  },
];
