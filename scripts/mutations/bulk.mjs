/** What must not be missing from large values on links, each with the C test that notices. */
import { always, drop, instead, never } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const bulk = by('dataplane_bulk');
const lost = by('failover_seeds')('nothing_that_was_answered_or_read_is_lost');
const joins = by('dataplane_bulk_join');
const fetch = by('fetch');

export const mutations = rows('bulk', {
  checksum: [always(), bulk('bytes_that_changed_on_their_way_are_pulled_again')],
  'half-a-value': [drop(), lost],
  'prepared-too-early': [drop(), lost],
  'freed-while-written': [drop(), fetch('what_fails_ends_when_the_copier_has_done_with_it')],
  'dropped-while-fetched': [never(), lost],
  'read-left-behind': [instead('|| q->reading', ''), fetch('memory_that_a_read_was_left_behind_in_is_not_used_again')],
  'detached-while-read': [instead('|| r->users', ''), fetch('a_region_makes_room_only_when_no_read_is_of_it')],
  'window-full': [
    instead('draw_bulks(s)', 'false'),
    by('dataplane_replicate')('a_large_value_takes_room_in_the_window_before_small_changes'),
  ],
  'pulls-unseen': [
    instead('!has', 'announced != before'),
    joins('what_follows_waits_though_the_copy_is_waited_for_no_more_while_it_pulls'),
  ],
  'refusal-kept': [drop(), joins('a_copy_that_had_no_room_while_nobody_waited_for_it_is_asked_again')],
  'not-withdrawn': [never(), joins('a_copy_that_is_waited_for_no_more_gets_what_was_announced_to_it')],
});
