/** What must not be missing where a copy joins with what it has (docs/rejoin.md), each with the test that notices. */
import { drop, never, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const rejoin = by('dataplane_rejoin');
const DIFFER = rejoin('only_values_that_differ_are_read');
const base = (title) => ({ test: 'core/shards/base.test.ts', title });

export const mutations = rows('rejoin', {
  'deleted-stays': [drop(), DIFFER],
  'another-version': [without('version'), DIFFER],
  'prepared-in-base': [drop(), rejoin('what_was_prepared_and_not_committed_is_not_of_the_base')],
  'damaged-base': [never('b->failed'), rejoin('what_is_served_or_leads_or_is_damaged_is_no_base')],
  'owner-discarded': [
    without('(isMissed'),
    base('what an owner had is kept too, when its server was away for so long that it is no copy of the next owner'),
  ],
});
