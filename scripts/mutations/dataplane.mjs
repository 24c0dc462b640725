/** What must not be missing from the data plane (native/dataplane, storage, replication, serve), each with the C test that notices. */
import { always, drop, instead, never } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const dataplane = by('dataplane');

export const mutations = rows('dataplane', {
  'changes-fallen-out': [
    instead('status = FKV_STALE_SEQUENCE', 'place = change_log_begin(&s->changed, now)'),
    by('copy')('more_changes_than_the_log_holds_make_the_copy_begin_anew_and_nothing_is_lost'),
  ],
  'retry-made-again': [never(), dataplane('a_retry_is_answered_and_not_made_again')],
  'retry-at-next-owner': [never(), by('dataplane_retry')('a_retry_of_what_an_earlier_owner_was_sent_is_indeterminate')],
  'any-right': [drop(), dataplane('a_ticket_allows_what_it_names')],
  'retired-at-once': [
    always(),
    by('dataplane_shard')('a_retired_segment_stays_readable_while_leases_are_left_that_do_not_tell_of_it'),
  ],
  'lost-device-no-memory': [
    never(),
    by('client_devices')('when_a_device_is_lost_its_clients_and_the_owner_go_on_over_the_other'),
  ],
  'lost-device-dialed': [
    drop(),
    by('addresses')('an_address_with_another_device_behind_it_is_soon_given_up_in_the_first_round'),
  ],
  'hurried-round-in-vain': [
    drop(),
    by('addresses')('an_address_with_another_device_behind_it_is_soon_given_up_in_the_first_round'),
  ],
  'regions-unbounded': [never(), by('dataplane_bound')('a_shard_has_no_more_regions_than_the_metadata_takes')],
  'late-change': [never(), by('dataplane_retry')('a_change_that_is_ready_after_the_grant_leaves_no_trace')],
  'answered-after-pause': [
    drop(),
    by('dataplane_shard')('what_arrives_while_the_owner_is_paused_past_its_lease_is_not_answered'),
  ],
  'change-unnoted': [drop(), by('copy')('what_changes_while_it_is_copied_comes_along')],
  'ended-stays': [drop(), by('copy')('an_entry_that_ends_while_it_is_copied_leaves_nothing_older')],
  'moved-version': [never(), by('copy')('a_copy_has_every_entry_with_its_version_flags_and_time_to_live')],
});
