/** What must not be missing where copies of shards join, are required and lead, each with the C test that notices. */
import { always, drop, instead, never, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const join = by('dataplane_join');
const ends = by('dataplane_join_ends');

export const mutations = rows('joins', {
  'records-before-last-page': [
    instead('s == FKV_OK', 's == FKV_OK && !c->join.said'),
    join('what_is_deleted_while_the_last_page_is_taken_over_does_not_come_back'),
  ],
  'joins-behind-uncommitted': [drop(), join('a_copy_joins_behind_what_is_in_the_table')],
  'joins-behind-unremembered': [drop(), join('a_copy_joins_behind_what_is_in_the_table')],
  'backlog-not-kept': [never(), join('what_is_deleted_while_the_last_page_is_taken_over_does_not_come_back')],
  'first-change-vouches': [drop(), join('what_an_owner_does_not_know_its_copy_does_not_know_either')],
  'damaged-on-its-way': [always(), by('wire')('a_checked_value_is_whole_or_is_not_taken')],
  'damaged-at-its-owner': [drop(), ends('what_is_damaged_at_its_owner_comes_to_no_copy_and_no_client')],
  'required-under-old-leases': [
    instead('s->lease_until_ns', '0'),
    join('a_copy_is_proposed_when_clients_leases_of_before_are_over'),
  ],
  'required-once': [never(), ends('a_copy_that_is_required_is_required_again_in_a_later_config')],
  'import-into-a-copy': [without('s->repl.copy'), ends('calls_that_do_not_fit_are_refused')],
  'leads-while-relied-on': [never(), ends('a_shard_is_closed_in_each_state_of_its_copy')],
});
