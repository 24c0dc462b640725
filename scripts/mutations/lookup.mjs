/**
 * What must not be missing from native/client/lookup, native/client/session and the shm provider, each with the C test
 * that notices.
 */
import { always, drop, instead, never, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const merge = by('lookup_merge');
const lease = by('lookup_lease');
const lookup = by('lookup');
const direct = by('lookup_direct');
const session = by('session');
const locations = by('lookup_locations');
const shm = by('fabric_shm');

export const mutations = rows('lookup', {
  'settling-miss': [always(), merge('slots_of_before_a_merge_with_the_word_of_after_it_make_no_miss')],
  'lease-before-read': [
    instead('lease_good(g, now)', 'lease_good(g, g->started_ns)'),
    lease('an_old_value_is_not_returned_after_the_lease_has_run_out'),
  ],
  'read-for-ever': [without('fkv_get_life_ns'), lookup('a_get_that_took_longer_than_its_life_is_discarded')],
  'lease-of-another-incarnation': [
    without('lease_incarnation'),
    lease('a_read_by_an_old_layout_is_not_covered_by_a_lease_of_the_next_incarnation'),
  ],
  'rkeys-of-another-device': [
    never(),
    by('client_devices')('when_a_device_is_lost_its_clients_and_the_owner_go_on_over_the_other'),
  ],
  'lost-device-dialed': [
    drop(),
    by('session_owner')('an_owner_with_two_devices_is_soon_tried_at_the_second_when_nobody_answers_at_the_first'),
  ],
  'lease-after-copy': [never(), direct('nothing_is_answered_in_place_after_the_lease_has_run_out')],
  'sent-without-effect': [
    never(),
    session('a_change_that_was_sent_and_is_given_up_is_indeterminate_whatever_the_reason'),
  ],
  'retry-unmarked': [
    drop('r->head.flags'),
    session('a_change_without_answer_is_sent_again_as_the_same_after_a_new_connection'),
  ],
  'resent-too-late': [never(), session('a_read_is_sent_again_as_long_as_its_time_lasts_and_a_change_is_not')],
  'another-tag': [without('v->tag'), locations('a_location_is_forgotten_when_its_segment_has_another_tag')],
  'revoked-unseen': [drop(), shm('a_deregistered_region_is_refused')],
});
