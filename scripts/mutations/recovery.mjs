/** What makes copies come back whole from snapshots and logs, each with the C test that notices when it is missing. */
import { always, drop, never, unwrap, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const recovery = by('recovery');
const COMES_BACK = recovery('copies_come_back_as_they_were_after_cuts_in_any_operation');
const served = by('dataplane_snapshot');

export const mutations = rows('recovery', {
  'retry-of-an-earlier-life': [never(), recovery('a_copy_of_a_later_life_knows_nothing_of_earlier_ones')],
  'record-replaces-later': [never(), COMES_BACK],
  'cut-off-value-goes-on': [never(), COMES_BACK],
  'cut-off-stays': [drop(), COMES_BACK],
  'cuts-off-snapshot': [drop(), COMES_BACK],
  'prepared-committed': [unwrap('min_u64', 1), COMES_BACK],
  'log-too-short': [without('c->foot.last'), recovery('a_copy_whose_log_ends_before_its_snapshot_does_is_not_whole')],
  'log-of-another-put-aside': [always(), recovery('a_damaged_log_is_told_from_one_that_must_not_be_touched')],
  windows: [always(), served('a_retry_is_answered_as_before_after_a_loss_of_power')],
  'grants-forgotten': [
    drop('b->place.granted_until_ns'),
    recovery('what_was_acknowledged_is_found_committed_or_prepared'),
  ],
});
