/** What must not be missing from core/raft and server/raft-storage, each with the test that notices. */
const trace = (name) => ({ test: 'test/sim/scenario.test.ts', title: `trace ${name}.txt` });
const sim = (violated) => ({ simulation: violated });
const node = (title) => ({ test: 'core/raft/node.test.ts', title });
const plausible = (title) => ({ test: 'core/raft/plausible.test.ts', title });
const NOT_COMMITTED =
  'a follower takes nothing that contradicts what it has committed, nor from a second leader of a term';
const driver = (title) => ({ test: 'server/metadata/driver.test.ts', title });
const LIES = 'a message of a term far ahead raises the term by one step, and one that cannot be true ends nothing';
const faults = (title) => ({ test: 'test/raft-storage/faults.test.ts', title });
const storage = (title) => ({ test: 'test/raft-storage/storage.test.ts', title });
const QUORUM = {
  test: 'core/raft/quorum.test.ts',
  title: 'a value is agreed on exactly when more than half of each half of a configuration has reached it',
};
const CRASH = faults(
  'whatever operation of the disk a crash comes before or in, what was acknowledged comes back, and the rest whole or not at all',
);

export const mutations = [
  // ---------------------------------------------------------------- votes and elections
  {
    name: 'raft: the vote is not stored',
    file: 'core/raft/node.ts',
    find: 'const hardState = { term: raft.term, vote: raft.vote, commit: log.commit };',
    replace: 'const hardState = { term: raft.term, vote: 0, commit: log.commit };',
    caughtBy: sim(/^violated: one vote/),
  },
  {
    name: 'raft: a vote is granted before it is on disk',
    file: 'core/raft/node.ts',
    find: 'mustSync: voted || entries.length > 0',
    replace: 'mustSync: entries.length > 0',
    caughtBy: sim(/^violated: one vote/),
  },
  {
    name: 'raft: an acknowledgement leaves before the entries are on disk',
    file: 'core/raft/node.ts',
    find: "type === 'append' && !voted;",
    replace: "type !== 'vote';",
    caughtBy: node(
      'between ready and advance the member may go on: what the disk is told of is not confused with what came since',
    ),
  },
  {
    name: 'raft: two votes in a term',
    file: 'core/raft/election.ts',
    find: 'const granted = free && raft.log',
    replace: 'const granted = raft.log',
    caughtBy: node('a member votes once in a term, and not for a log behind its own'),
  },
  {
    name: 'raft: a vote for a log that is behind',
    file: 'core/raft/election.ts',
    find: 'const granted = free && raft.log.isUpToDate(m.lastIndex, m.lastTerm);',
    replace: 'const granted = free;',
    caughtBy: sim(/^violated: (leader completeness|election safety|state machine safety)/),
  },
  {
    name: 'raft: up to date by length before term',
    file: 'core/raft/log.ts',
    find: 'return term > this.lastTerm || (term === this.lastTerm && index >= this.lastIndex);',
    replace: 'return index > this.lastIndex || (index === this.lastIndex && term >= this.lastTerm);',
    caughtBy: {
      test: 'core/raft/log.test.ts',
      title: 'of two logs the one with the newer last term is more up to date, and of equal terms the longer one',
    },
  },
  {
    name: "raft: a candidate's own vote counts before it is on disk",
    file: 'core/raft/election.ts',
    find: '    raft.becomeCandidate();\n  }',
    replace:
      "    raft.becomeCandidate();\n    count(raft, raft.id, true);\n    if (raft.role !== 'candidate') return;\n  }",
    caughtBy: trace('lone-voter'),
  },

  // ---------------------------------------------------------------- replication and commit
  {
    name: 'raft: commit counts entries of old terms',
    file: 'core/raft/acknowledgement.ts',
    find: 'if (log.termAt(held) !== raft.term) return false;',
    replace: '',
    caughtBy: trace('prior-term-commit'),
  },
  {
    name: 'raft: half is a majority',
    file: 'core/raft/quorum.ts',
    find: 'return present(scratch[n >> 1]);',
    replace: 'return present(scratch[(n - 1) >> 1]);',
    caughtBy: sim(/^violated: durable quorum/),
  },
  {
    name: 'raft: a leader counts itself before its disk has the entry',
    file: 'core/raft/acknowledgement.ts',
    find: 'own?.accepted(raft.durableIndex)',
    replace: 'own?.accepted(raft.log.lastIndex)',
    caughtBy: sim(/^violated: durable quorum/),
  },
  {
    name: 'raft: a follower commits beyond what it was sent',
    file: 'core/raft/follower.ts',
    find: 'log.commitTo(Math.min(m.commit, done.lastNew));',
    replace: 'log.commitTo(Math.min(m.commit, log.lastIndex));',
    caughtBy: node('a follower commits no further than what it has in common with the leader'),
  },
  {
    name: 'raft: an append is taken without looking at what is before it',
    file: 'core/raft/log.ts',
    find: 'if (this.termAt(prevIndex) !== prevTerm) return undefined;',
    replace: 'if (this.termAt(prevIndex) === undefined) return undefined;',
    caughtBy: {
      test: 'core/raft/log.test.ts',
      title: 'entries behind one that this log has in another term do not fit',
    },
  },
  {
    name: 'raft: what is truncated is still taken for stored',
    file: 'core/raft/log.ts',
    find: 'if (this.#stable >= index) this.#stable = index - 1;',
    replace: '',
    caughtBy: sim(/^violated: (durable quorum|state machine safety|restart|log matching)/),
  },
  {
    name: 'raft: the word of the disk is taken for entries that came later',
    file: 'core/raft/log.ts',
    find: 'if (index > this.#stable && this.termAt(index) === term)',
    replace: 'if (index > this.#stable && index <= this.lastIndex)',
    caughtBy: node(
      'between ready and advance the member may go on: what the disk is told of is not confused with what came since',
    ),
  },

  // ---------------------------------------------------------------- what a member cannot have said
  {
    name: 'raft lies: entries are taken from a second leader of a term',
    file: 'core/raft/plausible.ts',
    find: "  plausible(raft.leader === 0 || raft.leader === m.from, 'a second leader in one term');\n",
    replace: '',
    caughtBy: plausible(NOT_COMMITTED),
  },
  {
    name: 'raft lies: entries that contradict what is committed are looked at',
    file: 'core/raft/plausible.ts',
    find: '      checkCommitted(raft, m);\n',
    replace: '',
    caughtBy: plausible(NOT_COMMITTED),
  },
  {
    name: 'raft lies: a member ends because another says that it has lost entries',
    file: 'core/raft/plausible.ts',
    find: '      if (m.commit > raft.log.lastIndex)\n',
    replace: '      if (m.commit < 0)\n',
    caughtBy: driver(LIES),
  },
  {
    name: 'raft lies: whoever says that a member has lost entries is believed',
    file: 'server/metadata/driver.ts',
    find: '        if (led)\n',
    replace: '        if (led || this.#inDoubt === false)\n',
    caughtBy: driver(
      'a member that is told to have lost entries ends when most take the one that says so for their leader',
    ),
  },
  {
    name: 'raft lies: whoever says that a member has lost entries is taken for the leader',
    file: 'server/metadata/peers.ts',
    find: 'return answer.leader === leader && answer.term === term;',
    replace: 'return answer.term >= 0;',
    caughtBy: {
      test: 'test/integration/lying-server.long.test.ts',
      title: 'what no server can know ends no process, and leaves none without a leader',
    },
  },
  {
    name: 'raft lies: a term far ahead is followed at once',
    file: 'core/raft/step.ts',
    find: 'if (m.term - raft.term > TERMS_AT_ONCE) {',
    replace: 'if (m.term < 0) {',
    caughtBy: driver(LIES),
  },
  {
    name: 'raft lies: a term far ahead is never followed',
    file: 'core/raft/step.ts',
    find: '  raft.becomeFollower(raft.term + TERMS_AT_ONCE, 0);\n',
    replace: '',
    caughtBy: plausible('terms far apart come together by round trips, one step for each write to the disk'),
  },
  {
    name: 'raft lies: an answer about entries that a leader does not have is taken',
    file: 'core/raft/plausible.ts',
    find: 'plausible(m.index <= raft.log.lastIndex,',
    replace: 'plausible(m.index >= 0,',
    caughtBy: driver(LIES),
  },
  {
    name: 'raft lies: an entry that cannot be applied gets into the log',
    file: 'server/metadata/driver.ts',
    find: '    this.#checkEntries(message);\n',
    replace: '',
    caughtBy: driver(LIES),
  },
  {
    name: 'raft lies: a snapshot that cannot be read takes the place of the log',
    file: 'core/raft/follower.ts',
    find: 'if (why !== undefined) throw',
    replace: "if (why === '') throw",
    caughtBy: driver('a snapshot that cannot be read is refused, and what was there stays'),
  },
  {
    name: "raft lies: reads of others take the place of a leader's own",
    file: 'core/raft/reads.ts',
    find: "raft.role !== 'leader' || raft.reads.crowded ||",
    replace: "raft.role !== 'leader' || raft.reads.full ||",
    caughtBy: plausible("reads of others leave room for a leader's own"),
  },

  // ---------------------------------------------------------------- membership
  {
    name: 'raft: a change before an entry of the own term is committed',
    file: 'core/raft/membership.ts',
    find: "if (!committedInTerm(raft)) return { ok: false, reason: 'term-not-committed' };",
    replace: '',
    caughtBy: trace('single-change-2015'),
  },
  {
    name: 'raft: a change while another is uncommitted',
    file: 'core/raft/membership.ts',
    find: "if (raft.configIndex > raft.log.commit) return { ok: false, reason: 'change-in-progress' };",
    replace: '',
    caughtBy: node('changes come one at a time, and those that mean nothing are refused at once'),
  },
  {
    name: 'raft: a joint configuration needs the new majority only',
    file: 'core/raft/quorum.ts',
    find: 'return Math.min(majorityValue(config.voters, valueOf), majorityValue(config.outgoing, valueOf));',
    replace: 'return majorityValue(config.voters, valueOf);',
    caughtBy: QUORUM,
  },
  {
    name: 'raft: an election in a joint configuration needs the new majority only',
    file: 'core/raft/quorum.ts',
    find: 'const outgoing = majorityVote(config.outgoing, votes);',
    replace: 'const outgoing = incoming;',
    caughtBy: trace('snapshot-during-joint'),
  },
  {
    name: 'raft: a truncated configuration stays in force',
    file: 'core/raft/raft.ts',
    find: 'if (truncatedAt !== undefined) this.#configs',
    replace: 'if (truncatedAt === -1) this.#configs',
    caughtBy: trace('config-rolled-back'),
  },
  {
    name: 'raft: a snapshot carries the newest configuration, not its own',
    file: 'core/raft/node.ts',
    find: 'config: this.#raft.configAt(index)',
    replace: 'config: this.#raft.config',
    caughtBy: trace('snapshot-during-joint'),
  },

  // ---------------------------------------------------------------- reads
  {
    name: 'raft: a read is answered before a quorum confirmed the leader',
    file: 'core/raft/reads.ts',
    find: 'if (read.round > confirmed || read.round > reads.round) break;',
    replace: 'if (read.round > reads.round) break;',
    caughtBy: sim(/^violated: fresh reads/),
  },
  {
    name: 'raft: a read before the leader knows what is committed',
    file: 'core/raft/reads.ts',
    find: 'if (committedInTerm(raft)) raft.reads.waiting',
    replace: 'if (raft.term > 0) raft.reads.waiting',
    caughtBy: sim(/^violated: fresh reads/),
  },
  {
    name: 'raft: a late answer to an earlier life is taken',
    file: 'core/raft/reads.ts',
    find: '|| m.incarnation !== raft.options.incarnation) return;',
    replace: ') return;',
    caughtBy: trace('delayed-duplicate-read'),
  },
  {
    name: 'raft: acknowledgements made before the disk refused are sent',
    file: 'core/raft/node.ts',
    find: "raft.outbox = raft.outbox.filter((message) => message.type !== 'append-accept');",
    replace: '',
    caughtBy: node('what was acknowledged while the disk was refusing is not said'),
  },

  // ---------------------------------------------------------------- storage
  {
    name: 'storage: term and vote are not synced',
    file: 'server/raft-storage/state-file.ts',
    find: '    this.#write(slot, sequence, a, b);\n    this.file.datasync();',
    replace: '    this.#write(slot, sequence, a, b);',
    caughtBy: CRASH,
  },
  {
    name: 'storage: entries are not synced',
    file: 'server/raft-storage/segmented-log.ts',
    find: '      throw error;\n    }\n    this.#file.datasync();',
    replace: '      throw error;\n    }',
    caughtBy: CRASH,
  },
  {
    name: 'storage: the name of a new segment is not synced',
    file: 'server/raft-storage/segment.ts',
    find: '  file.datasync();\n  disk.syncNames();',
    replace: '  file.datasync();',
    caughtBy: CRASH,
  },
  {
    name: 'storage: a snapshot is renamed before it is synced',
    file: 'server/raft-storage/snapshot-file.ts',
    find: '  file.datasync();\n  file.close();',
    replace: '  file.close();',
    caughtBy: CRASH,
  },
  {
    name: 'storage: a torn record is not told by its checksum',
    file: 'server/raft-storage/record.ts',
    find: 'if (mixed(checksum(body), sequence) !== view.getUint32(at + 8, true)) return undefined;',
    replace: '',
    caughtBy: storage(
      'a last write that a crash cut short is cut off, with a notice, at every length that it can have',
    ),
  },
  {
    name: 'storage: damage in the middle is taken for a torn end',
    file: 'server/raft-storage/segment.ts',
    find: 'const torn = last && end >= acknowledged &&',
    replace: 'const torn = last && end >= 0 &&',
    caughtBy: storage('the last record is not taken for torn when it was acknowledged'),
  },
];
