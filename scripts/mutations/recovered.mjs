/** What must not be missing where durable copies come back from disks (docs/durable-cluster.md). */
import { instead, never, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const recovered = (title) => ({ test: 'core/metadata/recovered.test.ts', title });
const DAMAGED = recovered(
  'a copy that is damaged goes where another may come; the only one waits, for a later start or an operator',
);
const LONGEST = recovered('the longest log leads, when all copies are back');
const lives = (title) => ({ test: 'core/shards/recovered.test.ts', title });

export const mutations = rows('recovered', {
  'unread-forgotten': [never(), DAMAGED],
  'earlier-epoch-leads': [without('y.epoch'), LONGEST],
  'absent-given': [instead('mayCome(state, c)', 'isWhole(c)'), DAMAGED],
  'unread-discarded': [never(), lives('the only copy is kept when it could not be read')],
  'counts-before-disk': [never(), lives('a new durable shard is on the disk before it counts')],
});
