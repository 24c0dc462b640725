/** What must not be missing from core/metadata and from the servers' part in moving shards, each with the test that notices. */
const moves = (title) => ({ test: 'core/metadata/moves.test.ts', title });
const regions = (title) => ({ test: 'server/regions/region-moves.test.ts', title });
const leases = (title) => ({ test: 'test/metadata/leases.test.ts', title });

export const mutations = [
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
    file: 'core/metadata/reduce.ts',
    find: 'given.get(s.shard)?.to ?? c.id',
    replace: 'c.id',
    caughtBy: moves('an owner that starts again after it gave a shard up for a copy has not lost what is in it, and nobody changes groups for it'),
  },
  {
    name: 'regions: a shard whose copy is lost stays paused',
    file: 'server/regions/region-life.ts',
    find: '    await dataPlane.serveShard(shard);\n    if',
    replace: '    if',
    caughtBy: regions('a new owner that has all of it dies: the old one goes on with all that it had'),
  },
  {
    name: 'leases: in format 1 an owner keeps quiet about the longer lease that it holds',
    file: 'server/metadata/lease-keeper.ts',
    find: 'const heldMs = ownTerms ? Math.max(0, Math.ceil(this.#lease.untilMs - sentMs)) : 0;',
    replace: 'const heldMs = 0;',
    caughtBy: leases('while each leader has its own terms of leases, an owner tells what it holds, and believes only the leader that it asked last'),
  },
  {
    name: 'leases: in format 1 an earlier leader is believed after the next one was asked',
    file: 'server/metadata/lease-keeper.ts',
    find: 'if (ownTerms && asking !== this.#asking) return;',
    replace: '',
    caughtBy: leases('while each leader has its own terms of leases, an owner tells what it holds, and believes only the leader that it asked last'),
  },
  {
    name: 'leases: the format is raised while an owner holds a longer lease of an earlier leader',
    file: 'server/metadata/lease-office.ts',
    find: 'heldMs <= leaseMs',
    replace: 'leaseMs > 0',
    caughtBy: leases('while an owner holds a longer lease of an earlier leader, in format 1, it does not count as one that knows the next format'),
  },
  {
    name: 'leases: a later leader raises the format with the terms of an earlier one',
    file: 'server/metadata/leader-duties.ts',
    find: "if (command.t === 'raise-format') return await proposeInTerm(command, current.term);",
    replace: "if (command.t === 'raise-format') return await propose(command, PROPOSE_MS);",
    caughtBy: leases('the format is raised in the term of the leader whose terms of leases go with it, or not at all'),
  },
  {
    name: 'leader: what a server that is drained has copied is lost with its owner',
    file: 'core/metadata/leader-policy.ts',
    find: 'state.members.has(m.to) && leases.alive(m.to, nowMs)',
    replace: 'others.some((o) => o.id === m.to)',
    caughtBy: { test: 'core/metadata/leader-policy.test.ts', title: 'a shard of a dead owner goes to the server that has copied it, also when that one is being drained' },
  },
];
