/** What makes the answers of durable shards survive a loss of power, each with the C test that notices when it is missing. */
import { always, drop, instead, never, unwrap, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const rules = by('replica');
const lost = (when) => by('replica_model')(`nothing_is_lost_when_${when}`);
const BOTH = lost('both_copies_lose_their_power');
const shards = by('dataplane_durable');
const logs = by('failover_seeds')('what_was_answered_or_read_comes_back_with_each_copy_when_all_lose_their_power');
const lives = by('dataplane_durable_life');
const LARGE = shards('a_large_value_is_in_both_logs_before_it_is_answered');
const write = by('log_write');
const joins = by('dataplane_durable_join');
const SERVED = joins('what_was_taken_over_is_on_the_disk_before_the_shard_is_served');
const JOINS = joins('a_copy_joins_when_what_it_was_made_from_is_on_its_disk');

export const mutations = rows('durable', {
  'logged-in-an-earlier-epoch': [
    instead('l->epoch == epoch', 'l->epoch <= epoch'),
    rules('what_is_logged_counts_in_its_own_epoch_only'),
  ],
  'owner-commits-unlogged': [drop(), BOTH],
  'backup-acknowledges-unlogged': [unwrap('min_of'), BOTH],
  'lease-before-epoch': [never(), shards('a_backup_gives_no_lease_before_the_epoch_is_in_its_log')],
  'backup-commits-unlogged': [unwrap('min_of'), logs],
  'owner-epoch-unlogged': [drop(), shards('a_new_owner_commits_nothing_before_its_epoch_is_in_its_log')],
  'backup-epoch-unlogged': [drop(), shards('a_backup_gives_no_lease_before_the_epoch_is_in_its_log')],
  'lone-epoch-unlogged': [drop(), lives('a_shard_that_is_no_copy_begins_its_epoch_in_the_log_when_it_is_served')],
  'dropped-counts-as-logged': [drop(), logs],
  'large-value-unlogged': [drop(), LARGE],
  'lease-after-failure': [drop('log_of'), shards('a_copy_whose_log_failed_gives_no_lease')],
  'file-given-back-early': [
    never(),
    write('what_a_record_has_in_front_of_it_keeps_its_file_until_a_snapshot_has_the_record'),
  ],
  'takeover-not-owed': [never(), SERVED],
  'lease-before-snapshot': [always(), JOINS],
  'served-before-snapshot': [without('snapshot.owed'), SERVED],
});
