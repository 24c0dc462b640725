/** What must not be missing from core/raft, each with the test that notices. */
import { always, drop, instead, never, unwrap, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const sim = (violated) => ({ simulation: violated });
const node = (title) => ({ test: 'core/raft/node.test.ts', title });
const trace = (name) => ({ test: 'test/sim/scenario.test.ts', title: `trace ${name}.txt` });
const plausible = (title) => ({ test: 'core/raft/plausible.test.ts', title });
const NOT_COMMITTED =
  'a follower takes nothing that contradicts what it has committed, nor from a second leader of a term';
const QUORUM = {
  test: 'core/raft/quorum.test.ts',
  title: 'a value is agreed on exactly when more than half of each half of a configuration has reached it',
};

export const mutations = rows('raft', {
  'vote-not-stored': [instead('raft.vote', '0'), sim(/^violated: one vote/)],
  'vote-unsynced': [without('voted'), sim(/^violated: one vote/)],
  'acknowledged-unsynced': [
    instead("type === 'append' && !voted", "type !== 'vote'"),
    node(
      'between ready and advance the member may go on: what the disk is told of is not confused with what came since',
    ),
  ],
  'two-votes': [without('free'), node('a member votes once in a term, and not for a log behind its own')],
  'vote-for-a-shorter-log': [
    without('isUpToDate'),
    sim(/^violated: (leader completeness|election safety|state machine safety)/),
  ],
  'length-before-term': [
    without('term === this.lastTerm'),
    {
      test: 'core/raft/log.test.ts',
      title: 'of two logs the one with the newer last term is more up to date, and of equal terms the longer one',
    },
  ],
  'own-vote-unsynced': [
    instead(
      'raft.becomeCandidate();',
      'raft.becomeCandidate(); count(raft, raft.id, true); if (raft.role !== "candidate") return;',
    ),
    trace('lone-voter'),
  ],
  'old-term-committed': [drop(), trace('prior-term-commit')],
  'half-a-majority': [instead('n >> 1', '(n - 1) >> 1'), sim(/^violated: durable quorum/)],
  'leader-counts-unsynced': [instead('raft.durableIndex', 'raft.log.lastIndex'), sim(/^violated: durable quorum/)],
  'commits-beyond-sent': [
    instead('done.lastNew', 'log.lastIndex'),
    node('a follower commits no further than what it has in common with the leader'),
  ],
  'append-unmatched': [
    instead('!== prevTerm', '=== undefined'),
    { test: 'core/raft/log.test.ts', title: 'entries behind one that this log has in another term do not fit' },
  ],
  'truncated-stable': [drop(), sim(/^violated: (durable quorum|state machine safety|restart|log matching)/)],
  'second-leader': [drop(), plausible(NOT_COMMITTED)],
  'config-before-own-term': [drop(), trace('single-change-2015')],
  'two-config-changes': [drop(), node('changes come one at a time, and those that mean nothing are refused at once')],
  'joint-commit': [unwrap('Math.min'), QUORUM],
  'joint-election': [instead('majorityVote(config.outgoing, votes)', 'incoming'), trace('snapshot-during-joint')],
  'truncated-config': [never(), trace('config-rolled-back')],
  'snapshot-config': [instead('this.#raft.configAt(index)', 'this.#raft.config'), trace('snapshot-during-joint')],
  'read-unconfirmed': [without('confirmed'), sim(/^violated: fresh reads/)],
  'read-before-own-term': [always(), sim(/^violated: fresh reads/)],
  'read-of-an-earlier-life': [without('incarnation'), trace('delayed-duplicate-read')],
  'acknowledged-refused': [drop(), node('what was acknowledged while the disk was refusing is not said')],
});
