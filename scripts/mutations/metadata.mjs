/** What must not be missing from core/metadata and from what the leader does, each with the test that notices. */
import { always, drop, instead, never, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const format = (title) => ({ test: 'core/metadata/format.test.ts', title });
const members = (title) => ({ test: 'server/metadata/group-members.test.ts', title });
const removal = (title) => ({ test: 'server/metadata/removal.test.ts', title });
const duties = (title) => ({ test: 'server/metadata/leader-duties.test.ts', title });
const leases = (title) => ({ test: 'test/metadata/leases.test.ts', title });

export const mutations = rows('metadata', {
  'later-entry': [
    without('format > known'),
    format('a server stops at an entry of a later format, whether it knows the command or not'),
  ],
  'later-snapshot': [
    never(),
    format('a server refuses a snapshot of a later format; one that knows it has the same state'),
  ],
  'vote-without-majority': [
    drop(),
    { test: 'core/metadata/voter-policy.test.ts', title: 'a vote moves only while most voters live and have the log' },
  ],
  'vote-of-the-unheard': [
    without('p.state'),
    duties('a learner that has never answered gets no vote, however short the log; one that answers does'),
  ],
  'dead-learner-votes': [always(), members('votes move only while most of those who will vote answer')],
  'removed-together': [never(), removal('a voter is not removed while the removal of another may be under way')],
  'removed-majority': [
    drop(),
    removal('a voter is removed while most of the others answer, and one that does not vote at any time'),
  ],
  'leader-removes-itself': [always(), removal('a leader hands over before it is removed, to a voter that has its log')],
  'taken-unconfirmed': [
    drop(),
    {
      test: 'server/metadata/submit.test.ts',
      title: 'a leader takes values from others only when a quorum has confirmed that it leads',
    },
  ],
  'asked-unconfirmed': [
    drop(),
    { test: 'server/calls.test.ts', title: 'a leader says that it leads when a quorum has confirmed it' },
  ],
  'silence-unconfirmed': [
    instead('asked(id, nowMs());', 'asked(id, nowMs()); this.current?.leases.confirmed(nowMs());'),
    leases(
      'an owner is heard when its question comes, and its silence counts only as far as a quorum has confirmed the leader',
    ),
  ],
});
