/** What must not be missing where nobody is left of a shard but a copy that joins (docs/copies.md), each with the test that notices. */
import { instead, never, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const lost = (title) => ({ test: 'core/shards/lost-shard.test.ts', title });
const VACANT = lost('a copy that joins is kept while the shard has no owner, and leads when an operator says so');
const UNFOLLOWED = lost(
  'what has not followed cannot lead: it is given up, and the metadata is told before that it is',
);
const loss = (title) => ({ test: 'core/metadata/shard-loss.test.ts', title });
const GIVEN_UP = loss('a copy that its server has given up is offered to nobody, and the refusal says what to do');
const policy = (title) => ({ test: 'core/metadata/copy-policy.test.ts', title });

export const mutations = rows('lost', {
  'vacant-discarded': [instead('true', 'false'), VACANT],
  'suspicion-discarded': [
    never(),
    lost('a copy that joins is kept while its owner is gone, and begins anew when that one is back'),
  ],
  'given-up-counts': [without('true'), UNFOLLOWED],
  'named-discarded': [
    never(),
    lost(
      'a copy of which the metadata has heard in the same look as of the end of its owner is given up in the same way',
    ),
  ],
  'given-up-granted': [
    without('...holders'),
    loss('servers whose values a reset gives up are known, and none is given up by two entries at once'),
  ],
  'taken-empty-granted': [
    never('copy'),
    loss('an owner whose shard comes empty to another counts as dead with the servers of its copies'),
  ],
  'none-reset-to': [without('isRenounced'), GIVEN_UP],
  'given-up-in-sync': [never(), GIVEN_UP],
  'joining-removed': [
    without('isServed'),
    policy('a copy that joins is not removed while its owner is away: it may be all that is left'),
  ],
});
