/** What must not be missing where copies acknowledge what their disks do not have yet (docs/durable-cluster.md). */
import { always, drop, never, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const marked = (title) => ({ test: 'core/metadata/marked.test.ts', title });
const ANEW = marked('what joins begins anew when its server has acknowledged too much, or a marked copy leads');
const LONGEST = marked('of marked copies only the longest log leads, and only those that are as long stay in sync');
const OWNERS = marked('a whole copy of a durable shard is taken away by its owner alone');
const LEADING = marked(
  'a marked copy is in sync by leading alone: its owner takes it away, and believes nothing of it',
);
const UNMARKED = marked('a marked copy does not lead while another one in sync has no mark, however long that takes');
const lives = (title) => ({ test: 'core/shards/recovered.test.ts', title });
const told = (title) => ({ test: 'server/values-log.test.ts', title });

export const mutations = rows('marked', {
  'mark-forgotten': [without('isMarked'), marked('a mark stays though the next start of its server ended in order')],
  'unmarked-forgotten': [
    without('hasAsMuch'),
    marked('a copy without a mark that did not come back stays where only a marked one is left'),
  ],
  'joining-goes-on': [drop(), ANEW],
  'shorter-leads': [without('isLonger'), LONGEST],
  'longest-forgotten': [
    without('isLonger'),
    marked('the longest log is kept where its disk could not be read once, and only a shorter one is left'),
  ],
  'removed-by-another': [without("'durable'"), OWNERS],
  'marked-in-sync': [never(), LEADING],
  'leader-gives-to-marked': [always('mayLead'), UNMARKED],
  'marked-follows': [
    drop(),
    lives('a marked copy follows nobody and asks for nothing, until it is made anew or leads'),
  ],
  'mark-before-told': [
    without('#isTold'),
    told('a start knows whether the last one ended in order, until the metadata knows it'),
  ],
  'mark-after-failure': [without('isSynced'), told('a mark stays where the log failed')],
  'unmarked-early-answers': [
    drop(),
    {
      test: 'test/integration/early.long.test.ts',
      title: 'a server that ends in order comes back with its copies, and status says what is promised',
    },
  ],
});
