/** What must not be missing from large values on links, each with the C test that notices. */
import { always, drop, instead, never } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const bulk = by('dataplane_bulk');
const lost = by('failover_seeds')('nothing_that_was_answered_or_read_is_lost');
const joins = by('dataplane_bulk_join');

export const mutations = rows('bulk', {
  checksum: [always(), bulk('bytes_that_changed_on_their_way_are_pulled_again')],
  'half-a-value': [drop(), lost],
  'prepared-too-early': [drop(), lost],
  'freed-while-written': [instead('if', 'if (x->jobs) unprepare(x); if'), lost],
  'not-withdrawn': [never(), joins('a_copy_that_is_waited_for_no_more_gets_what_was_announced_to_it')],
});
