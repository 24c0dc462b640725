/** What must not be missing from core/metadata and from the servers' part in moving shards, each with the test that notices. */
const moves = (title) => ({ test: 'core/metadata/moves.test.ts', title });
const regions = (title) => ({ test: 'server/regions/region-moves.test.ts', title });

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
    find: " || (m.phase === 'copied' && owners.get(m.shard) === m.to)",
    replace: '',
    caughtBy: moves('the copy that a shard was given with is known until its new owner opens it, whatever with'),
  },
  {
    name: 'regions: a copy whose end was not heard before the shard changed hands is thrown away',
    file: 'server/regions/arrival.ts',
    find: "(m.phase === phase || (phase === 'copied' && m.phase === 'released'))",
    replace: 'm.phase === phase',
    caughtBy: regions('what was copied is kept when its new owner applies the end of the copy and the change of owner at once'),
  },
];
