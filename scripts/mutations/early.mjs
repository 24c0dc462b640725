/** What makes early answers of durable shards safe (docs/durable-cluster.md), each with the C test that notices. */
import { always, drop, instead, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const several = by('dataplane_early');
const rules = by('replica');
const early = by('dataplane_sync');

export const mutations = rows('early', {
  'alone-does-not-wait': [
    instead('o->in_sync > 1', 'o->in_sync > 0'),
    several('an_owner_that_is_left_alone_waits_for_its_disk'),
  ],
  'early-during-removal': [
    without('replica_relies_on_disk'),
    several('an_owner_relies_on_its_disk_until_its_config_is_another_one'),
  ],
  'removed-before-disk': [always(), several('an_owner_relies_on_its_disk_until_its_config_is_another_one')],
  'buffered-in-an-earlier-epoch': [drop(), rules('what_is_buffered_counts_in_its_own_epoch_only')],
  'answered-without-right': [drop(), several('a_change_is_not_answered_early_when_its_owner_has_no_right_any_more')],
  'removal-keeps-buffer': [drop(), several('an_owner_that_is_left_alone_waits_for_its_disk')],
  'never-synced': [without('gathers_ns'), early('the_disk_has_what_was_answered_after_the_time')],
  'snapshot-ahead': [always(), early('a_snapshot_waits_until_the_log_has_what_it_names')],
  'sent-before-effect': [
    drop(),
    by('dataplane_durable_join')('a_large_value_that_is_answered_before_the_disk_has_it_comes_to_a_copy_that_joins'),
  ],
  'lost-at-the-end': [drop(), early('a_server_that_ends_loses_nothing')],
});
