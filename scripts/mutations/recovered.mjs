/** What must not be missing where durable copies come back from disks (docs/durable-cluster.md). */
import { always, instead, never, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const recovered = (title) => ({ test: 'core/metadata/recovered.test.ts', title });
const DAMAGED = recovered(
  'a copy that is damaged goes where another may come; the only one waits, for a later start or an operator',
);
const LONGEST = recovered('the longest log leads, when all copies are back');
const MAY_GO = 'a copy may go where another one has as much, in a start that is there';
const elsewhere = (title) => ({ test: 'server/values-elsewhere.test.ts', title });
const aside = (title) => ({ test: 'server/values-aside.test.ts', title });
const lives = (title) => ({ test: 'core/shards/recovered.test.ts', title });

export const mutations = rows('recovered', {
  'unread-forgotten': [never(), DAMAGED],
  'earlier-epoch-leads': [without('y.epoch'), LONGEST],
  'absent-given': [instead('mayCome(state, c)', 'isWhole(c)'), DAMAGED],
  'shorter-copy-counts': [without('hasAsMuch(c, own)'), elsewhere(MAY_GO)],
  'copy-of-an-earlier-start-counts': [without('start === state.members.get(member)?.incarnation'), elsewhere(MAY_GO)],
  'silent-server-counts': [without('there.has(member)'), elsewhere(MAY_GO)],
  'unjoined-server-counts': [always(), elsewhere('a server that has not joined is not there')],
  'put-aside-twice': [never(), aside('a second damage waits for an operator')],
  'unread-discarded': [never(), lives('the only copy is kept when it could not be read')],
  'counts-before-disk': [never(), lives('a new durable shard is on the disk before it counts')],
});
