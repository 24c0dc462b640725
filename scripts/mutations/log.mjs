/** What makes a record durable that was reported so, each with the C test that notices when it is missing. */
import { always, drop, instead, never, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const cuts = by('log_cuts');
const ANY_CUT = cuts('what_was_reported_durable_is_replayed_after_a_cut_in_any_operation');
const faults = by('log_faults');
const damage = by('log_damage');
const FLIPS = damage('a_flipped_bit_is_a_torn_tail_in_the_last_batch_and_damage_elsewhere');
const write = by('log_write');
const stride = by('log_stride');
const OWNERS = damage('a_file_of_another_owner_or_of_a_later_format_is_named');
const USED_AGAIN = cuts('files_that_are_used_again_survive_a_cut_in_any_operation');

const NEWEST = damage('the_newest_file_is_missed_as_well');
const MADE_ANEW = cuts('a_start_that_makes_files_anew_may_end_in_any_operation');

export const mutations = rows('log', {
  'batch-unsynced': [drop('disk_job_did(&x->base, "sync"'), ANY_CUT],
  'sync-unchecked': [
    instead('d->sync(d, x->handle)', '(d->sync(d, x->handle), 0)'),
    faults('an_operation_that_fails_is_reported_once_and_nothing_is_durable_afterwards'),
  ],
  'replayed-unsynced': [
    without('sync_found'),
    cuts('what_was_replayed_survives_the_next_cut_though_the_process_ended_before_it_was_synced'),
  ],
  'batch-crc': [always(), FLIPS],
  'earlier-life': [drop(), write('batches_of_an_earlier_life_of_a_file_are_none')],
  'damage-as-torn-tail': [drop(), stride('a_flipped_bit_is_found_in_whatever_stride_the_batch_is')],
  'batch-across-stride': [
    always(),
    stride('a_batch_that_does_not_fit_into_a_stride_goes_to_the_next_and_all_are_replayed'),
  ],
  'damage-as-stride-end': [
    drop(),
    stride('a_stride_that_has_lost_its_end_is_damaged_where_something_was_written_behind_it'),
  ],
  'next-stride-left-out': [never(), stride('the_first_block_of_a_stride_may_be_gone')],
  'stride-not-looked-through': [drop(), stride('a_stride_whose_first_batch_is_bad_is_looked_through')],
  'missing-batches': [drop(), damage('a_file_that_has_lost_its_batches_is_damaged')],
  'oldest-without-batches': [drop(), damage('a_file_that_has_lost_its_batches_is_damaged')],
  'another-cluster': [drop(), OWNERS],
  'name-unsynced': [drop(), ANY_CUT],
  'reuse-unsynced': [without('sync_directory'), USED_AGAIN],
  'head-unsynced': [without('disk_job_did'), ANY_CUT],
  'file-given-back': [drop(), ANY_CUT],
  'file-missing': [without('follows'), NEWEST],
  'future-files-alone': [drop(), NEWEST],
  'last-file-given-back': [drop(), write('the_last_file_with_a_batch_stays_until_there_is_one_behind_it')],
  'third-file-last': [always(), MADE_ANEW],
  'kept-by-batches': [instead('->bytes', '->at'), by('dataplane_snapshot')('a_log_stays_short_over_many_starts')],
  'third-file-anew': [without('s->number'), MADE_ANEW],
});
