/** What must not be missing from native/table, each with the C test that notices. */
import { always, drop, instead, swap, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const order = by('table_order');
const reader = by('table_reader');
const table = by('table');
const moving = by('table_moving');
const merge = by('table_merge');
const growth = by('table_growth');

export const mutations = rows('table', {
  'pending-first': [drop(), order('a_new_extent_is_pending_before_anything_else_of_it_changes')],
  'dead-first': [swap(), order('a_replacement_kills_the_old_extent_then_stores_the_slot_then_takes_effect')],
  'slot-first': [swap(), order('an_insert_stores_the_slot_before_it_takes_effect')],
  'expired-dead-first': [swap(), order('an_expired_entry_is_killed_before_its_slot_is_cleared')],
  'reader-crc': [drop(), reader('one_flipped_bit_of_a_landed_extent_is_found')],
  'reader-second-look': [drop(), order('a_copy_during_which_the_extent_died_or_was_reused_is_refused')],
  'reader-version-first': [swap(), order('a_reader_loads_the_version_before_the_state')],
  'reader-lengths': [always('all <= bytes'), reader('lengths_that_do_not_fit_are_refused_before_they_are_followed')],
  'reader-tag': [without('h.tag'), reader('an_extent_that_is_not_live_or_of_another_segment_or_key_is_refused')],
  quarantine: [drop(), table('a_freed_extent_keeps_its_bytes_until_the_quarantine_has_passed')],
  'split-quarantine': [drop(), growth('a_reader_that_holds_an_old_header_never_misses_a_key')],
  'chain-quarantine': [drop(), moving('a_reader_finds_what_the_shortening_of_a_chain_moves')],
  'aborted-insert': [
    instead('table_quarantine_aborted', 'table_quarantine_unplace(t, fkv_slot_class(word)), table_heap_give'),
    moving('an_aborted_insert_whose_slot_moved_does_not_meet_its_copy'),
  ],
  'damaged-made-good': [drop(), moving('what_is_damaged_does_not_become_good_by_being_moved')],
  'evacuation-dead-first': [drop(), order('an_entry_that_moves_dies_where_it_was_before_it_lives_where_it_is')],
  'evacuation-prepared': [drop(), moving('an_entry_with_a_prepared_change_is_not_moved')],
  'merge-settling': [instead('FKV_BUCKET_SETTLING', '0'), merge('a_reader_of_any_age_finds_what_a_merge_moved')],
  'merge-merged': [instead('FKV_BUCKET_MERGED', '0'), merge('a_reader_of_any_age_finds_what_a_merge_moved')],
  'merge-clears-at-once': [
    instead('table_quarantine_settle(t, image)', 'memset(from->slot, 0, sizeof from->slot)'),
    merge('a_reader_of_any_age_finds_what_a_merge_moved'),
  ],
  'number-reused': [without('t->moving'), merge('a_number_is_not_used_again_before_its_bucket_is_cleared')],
  'prepared-changed': [drop(), table('a_prepared_change_is_seen_by_nobody_and_blocks_its_key')],
});
