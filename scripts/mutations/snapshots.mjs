/** What makes a snapshot whole whenever it has its name, each with the C test that notices when it is missing. */
import { always, drop, instead, never, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const walk = by('snapshot_walk');
const DAMAGED = walk('what_is_damaged_in_memory_is_said_to_be_so_in_a_snapshot');
const recovery = by('recovery');
const STAYS_DAMAGED = recovery('what_was_damaged_in_memory_does_not_come_back_as_good');
const cuts = by('snapshot_cuts');
const BEFORE = cuts('the_one_before_is_there_until_the_next_one_is_whole');
const ANY_CUT = cuts('each_copy_has_a_whole_snapshot_after_a_cut_in_any_operation');
const faults = by('snapshot_faults');
const ANY_FAILURE = faults('an_operation_that_fails_costs_the_snapshot_that_is_written');
const damage = by('snapshot_damage');
const FLIPS = damage('a_flipped_bit_is_damage_wherever_it_is');
const CHANGES = walk('a_snapshot_and_the_changes_since_it_began_make_the_table');
const COMES_BACK = recovery('copies_come_back_as_they_were_after_cuts_in_any_operation');

export const mutations = rows('snapshots', {
  'damaged-given-as-good': [always('table_is_whole'), DAMAGED],
  'damaged-made-good': [drop(), STAYS_DAMAGED],
  'named-unsynced': [without('sync_written'), BEFORE],
  'name-unsynced': [always(), ANY_CUT],
  'sync-unchecked': [instead('d->sync(d, x->handle)', '(d->sync(d, x->handle), 0)'), ANY_FAILURE],
  'chunk-crc': [always(), FLIPS],
  'walk-rest': [drop(), CHANGES],
  'walk-cut': [always(), CHANGES],
  'log-given-back': [without('has.committed'), COMES_BACK],
  'claims-its-end': [
    instead('p->has = p->begun;', 'p->has = p->begun; p->has.committed = durable_committed(s);'),
    COMES_BACK,
  ],
  'before-epoch': [without('durable_has_begun'), recovery('a_snapshot_begins_when_its_epoch_is_in_the_log')],
  'log-of-the-lost-given-back': [
    always('recovery_keeps'),
    recovery('a_copy_whose_snapshot_is_damaged_is_not_whole_and_kept_until_it_is_discarded'),
  ],
  'without-log': [never(), recovery('snapshots_whose_log_is_lost_are_not_gone_on_with')],
});
