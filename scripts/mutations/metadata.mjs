/** What must not be missing from core/metadata and from what the leader does, each with the test that notices. */
const moves = (title) => ({ test: 'core/metadata/moves.test.ts', title });
const format = (title) => ({ test: 'core/metadata/format.test.ts', title });

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
    name: 'metadata: a shard that was given up for a copy is opened with another',
    file: 'core/metadata/reduce.ts',
    find: ' && m.copy === c.incarnation',
    replace: '',
    caughtBy: moves('a shard is given for the copy that there is, and to nobody who opens it with another'),
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
    name: 'voters: a vote goes to a learner without the log',
    file: 'core/metadata/voter-policy.ts',
    find: 'leases.alive(id, nowMs) && caughtUp.has(id);',
    replace: 'leases.alive(id, nowMs);',
    caughtBy: {
      test: 'core/metadata/voter-policy.test.ts',
      title: 'a vote moves only while most voters live and have the log',
    },
  },
];
