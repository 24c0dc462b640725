/** What must not be missing from native/table, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const table = by('table');
const growth = by('table_growth');
const moving = by('table_moving');
const order = by('table_order');
const reader = by('table_reader');
const shrink = by('table_shrink');
const merge = by('table_merge');
const index = by('table_index');

export const mutations = [
  // ---------------------------------------------------------------- the order of stores
  ...inFile('native/table/change.c', [
    [
      'table: a new extent is not PENDING first',
      order('a_new_extent_is_pending_before_anything_else_of_it_changes'),
      '    __atomic_store_n(&e->state, FKV_EXTENT_PENDING, __ATOMIC_RELAXED);\n    fkv_store_fence();',
      '    e->tag = 0;\n    __atomic_store_n(&e->state, FKV_EXTENT_PENDING, __ATOMIC_RELAXED);',
    ],
    [
      'table: LIVE before DEAD',
      order('a_replacement_kills_the_old_extent_then_stores_the_slot_then_takes_effect'),
      '        set_state(extent_of(t, p->old_word), FKV_EXTENT_DEAD);\n    }\n    fkv_publish_word(slot, p->new_word);',
      '    }\n    fkv_publish_word(slot, p->new_word);\n    if (p->old_word) set_state(extent_of(t, p->old_word), FKV_EXTENT_DEAD);',
    ],
    [
      'table: LIVE before the slot',
      order('an_insert_stores_the_slot_before_it_takes_effect'),
      '    fkv_publish_word(slot, p->new_word);\n    if (p->new_word) {\n        fkv_extent *e = extent_of(t, p->new_word);\n        fkv_assert(e->state == FKV_EXTENT_PENDING);',
      '    if (p->new_word) set_state(extent_of(t, p->new_word), FKV_EXTENT_LIVE);\n    fkv_publish_word(slot, p->new_word);\n    if (p->new_word) {\n        fkv_extent *e = extent_of(t, p->new_word);',
    ],
  ]),
  ...inFile('native/table/tick.c', [
    [
      'table: the slot of an expired entry is cleared before it is DEAD',
      order('an_expired_entry_is_killed_before_its_slot_is_cleared'),
      '    set_state(e, FKV_EXTENT_DEAD);\n    fkv_publish_word(slot, 0);',
      '    fkv_publish_word(slot, 0);\n    set_state(e, FKV_EXTENT_DEAD);',
    ],
  ]),
  // ---------------------------------------------------------------- readers
  ...inFile('native/table/reader.h', [
    [
      'table: reader: no checksum',
      reader('one_flipped_bit_of_a_landed_extent_is_found'),
      'if (fkv_extent_crc(landed, h.key_bytes, h.value_bytes) != h.crc) return FKV_READ_AGAIN;',
      '',
    ],
    [
      'table: reader: state and version are not looked at again after the copy',
      order('a_copy_during_which_the_extent_died_or_was_reused_is_refused'),
      'if (changed) return FKV_READ_AGAIN;',
      '(void)changed;',
    ],
    [
      'table: reader: only the state is looked at again after the copy',
      order('a_copy_during_which_the_extent_died_or_was_reused_is_refused'),
      ' ||\n                   __atomic_load_n(&e->version, __ATOMIC_RELAXED) != h.version;',
      ';',
    ],
    [
      'table: reader: state before version',
      order('a_reader_loads_the_version_before_the_state'),
      '    head[1] = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE);\n    if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != FKV_EXTENT_LIVE) return FKV_READ_AGAIN;',
      '    if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != FKV_EXTENT_LIVE) return FKV_READ_AGAIN;\n    head[1] = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE);',
    ],
    [
      'table: reader: lengths are believed',
      reader('lengths_that_do_not_fit_are_refused_before_they_are_followed'),
      '&& all <= bytes;',
      '&& (all > 0 || bytes);',
    ],
    [
      'table: reader: the tag is not compared',
      reader('an_extent_that_is_not_live_or_of_another_segment_or_key_is_refused'),
      'if (h.state != FKV_EXTENT_LIVE || h.tag != want->tag || !fkv_extent_lengths_fit(&h, bytes)) return FKV_READ_AGAIN;',
      'if (h.state != FKV_EXTENT_LIVE || !fkv_extent_lengths_fit(&h, bytes)) return FKV_READ_AGAIN;',
    ],
    [
      'table: reader: PENDING is taken',
      reader('an_extent_that_is_not_live_or_of_another_segment_or_key_is_refused'),
      '    if (h.state != FKV_EXTENT_LIVE || h.tag',
      '    if (h.state == FKV_EXTENT_DEAD || h.tag',
    ],
    [
      'table: reader: the tag of a bucket is not compared',
      reader('a_bucket_of_another_segment_is_foreign'),
      'if (fkv_bucket_tag(b->word0) != tag) return FKV_BUCKET_FOREIGN;',
      'if (tag == 0) return FKV_BUCKET_FOREIGN;',
    ],
  ]),
  // ---------------------------------------------------------------- quarantine
  ...inFile('native/table/quarantine.c', [
    [
      'table: quarantine: no time',
      table('a_freed_extent_keeps_its_bytes_until_the_quarantine_has_passed'),
      'if (m->last_ns + q->delay_ns > t->now_ns && !t->unread) return false;',
      '',
    ],
  ]),
  ...inFile('native/table/tick.c', [
    [
      'table: quarantine: counted from the tick before',
      table('quarantine_counts_from_the_tick_after_an_extent_died'),
      '    if (now_ns > t->now_ns) t->now_ns = now_ns;\n    t->wall_ms = wall_ms;\n    if (t->buckets == 0) return false;\n    table_quarantine_stamp(t);',
      '    table_quarantine_stamp(t);\n    if (now_ns > t->now_ns) t->now_ns = now_ns;\n    t->wall_ms = wall_ms;\n    if (t->buckets == 0) return false;',
    ],
  ]),
  ...inFile('native/table/quarantine.c', [
    [
      'table: quarantine: no bound',
      table('a_full_quarantine_pushes_back_and_one_item_always_fits'),
      'return held == 0 || held + bytes <= t->config.quarantine_bytes;',
      'return held + bytes > 0;',
    ],
    [
      'table: quarantine: large extents leave before moved slots',
      moving('a_moved_slot_is_cleared_before_what_it_names_is_let_go'),
      'if (drain(t, &t->delay[i], budget)) return true;',
      'if (drain(t, &t->delay[DELAY_QUEUES - 1 - i], budget)) return true;',
    ],
  ]),
  ...inFile('native/table/change.c', [
    [
      'table: quarantine: not for an aborted insert',
      moving('an_aborted_insert_whose_slot_moved_does_not_meet_its_copy'),
      '        table_quarantine_aborted(t, fkv_slot_location(word), fkv_slot_class(word));',
      '        table_quarantine_unplace(t, fkv_slot_class(word));\n        table_heap_give(t, fkv_slot_location(word), fkv_slot_class(word));',
    ],
    [
      'table: quarantine: no bound for aborted changes',
      table('changes_that_are_aborted_again_and_again_are_pushed_back_before_they_fill_the_memory'),
      '    if (!table_quarantine_bears(t, class_bytes(cls))) return busy(why, TABLE_BUSY_QUARANTINE);\n',
      '',
    ],
  ]),
  ...inFile('native/table/quarantine.c', [
    [
      'table: quarantine: an aborted change that was not seen is reused at once',
      table('the_extent_of_an_aborted_change_keeps_its_bytes_until_the_quarantine_has_passed'),
      '    push_extent(t, location, cls, 1ull << 62);\n    t->aborted_bytes += class_bytes(cls);',
      '    table_quarantine_unplace(t, cls);\n    table_heap_give(t, location, cls);',
    ],
  ]),
  ...inFile('native/table/index.c', [
    [
      'table: quarantine: not for overflow buckets',
      moving('a_reader_finds_what_the_shortening_of_a_chain_moves'),
      '    table_quarantine_extent(t, location, FKV_CLASS_BUCKET);',
      '    table_quarantine_unplace(t, FKV_CLASS_BUCKET);\n    table_heap_give(t, location, FKV_CLASS_BUCKET);',
    ],
  ]),
  // ---------------------------------------------------------------- growth and evacuation
  ...inFile('native/table/split.c', [
    [
      'table: split: moved slots are cleared at once',
      growth('a_reader_that_holds_an_old_header_never_misses_a_key'),
      'if (moved.mask[p]) table_quarantine_moved(t, number, p, moved.mask[p]);',
      'for (int i = 0; i < FKV_SLOTS; i++)\n            if (p == 0 && moved.mask[p] >> i & 1) from->slot[i] = 0;',
    ],
  ]),
  ...inFile('native/table/index.c', [
    [
      'table: shortening: moved slots are cleared at once',
      moving('a_reader_finds_what_the_shortening_of_a_chain_moves'),
      '    table_quarantine_moved(t, number, position, mask);',
      '    (void)position;\n    for (int i = 0; i < FKV_SLOTS; i++)\n        if (mask >> i & 1) last->slot[i] = 0;',
    ],
  ]),
  ...inFile('native/table/evacuate.c', [
    [
      'table: evacuation: memory files are emptied in part',
      shrink('files_with_one_full_segment_are_emptied_as_a_whole'),
      'start(t, SHRINK_PART, true)',
      'start(t, SHRINK_PART, false)',
    ],
    [
      'table: evacuation: what is damaged gets a good checksum',
      moving('what_is_damaged_does_not_become_good_by_being_moved'),
      '    if (fkv_extent_crc(from, h.key_bytes, h.value_bytes) != h.crc) crc = ~crc;\n',
      '',
    ],
    [
      'table: evacuation: copies are taken for entries',
      moving('a_segment_is_emptied_while_slots_are_moving'),
      '    if (t->moving[number]) return MUST_WAIT;',
      '',
    ],
    [
      'table: evacuation: LIVE before DEAD',
      order('an_entry_that_moves_dies_where_it_was_before_it_lives_where_it_is'),
      '    set_state(e, FKV_EXTENT_DEAD);\n    fkv_publish_word(slot,',
      '    set_state(at_location(t, location), FKV_EXTENT_LIVE);\n    fkv_publish_word(slot,',
    ],
    [
      'table: evacuation: a moved entry has another version',
      moving('an_entry_that_was_moved_keeps_its_version_for_readers_and_for_compare_and_swap'),
      '    h.tag = t->heap[fkv_location_segment(location)]->tag;',
      '    h.tag = t->heap[fkv_location_segment(location)]->tag;\n    h.version++;',
    ],
    [
      'table: evacuation: prepared keys are moved',
      moving('an_entry_with_a_prepared_change_is_not_moved'),
      '    if (table_prepared_find(t, extent_hash(t, e), space, extent_key(e), e->key_bytes)) return MUST_WAIT;',
      '    (void)space;',
    ],
  ]),
  ...inFile('native/table/scan.c', [
    [
      'table: scan: copies are emitted',
      growth('a_scan_meets_every_key_that_stays_once_while_the_table_grows'),
      'if (t->moving[number] && table_index_slot(t, extent_hash(t, e), word) != &b->slot[i]) continue;',
      '',
    ],
  ]),
  // ---------------------------------------------------------------- merges
  ...inFile('native/table/merge.c', [
    [
      'table: merge: without the mark SETTLING',
      merge('a_reader_of_any_age_finds_what_a_merge_moved'),
      'level, FKV_BUCKET_SETTLING)',
      'level, 0)',
    ],
    [
      'table: merge: SETTLING ends at once',
      merge('a_reader_of_any_age_finds_what_a_merge_moved'),
      '    table_quarantine_settle(t, number);',
      '    to->word0 &= ~((uint64_t)FKV_BUCKET_SETTLING << 32);',
    ],
    [
      'table: merge: the old bucket is not marked',
      merge('a_reader_of_any_age_finds_what_a_merge_moved'),
      'level + 1, FKV_BUCKET_MERGED)',
      'level + 1, 0)',
    ],
    [
      'table: merge: the old slots are cleared at once',
      merge('a_reader_of_any_age_finds_what_a_merge_moved'),
      '    table_quarantine_settle(t, image);',
      '    memset(from->slot, 0, sizeof from->slot);',
    ],
    [
      'table: merge: while slots are moving',
      merge('a_bucket_is_not_merged_while_slots_move_or_while_it_settles'),
      '    if (t->moving[number] > 0 || t->moving[image] > 0) return false;',
      '',
    ],
    [
      'table: merge: the old chain is used again at once',
      merge('chains_are_merged_and_the_old_one_can_be_read_until_the_quarantine_has_passed'),
      '        table_quarantine_extent(t, fkv_bucket_overflow(b->word1), FKV_CLASS_BUCKET);',
      '        table_quarantine_unplace(t, FKV_CLASS_BUCKET);\n        table_heap_give(t, fkv_bucket_overflow(b->word1), FKV_CLASS_BUCKET);',
    ],
    [
      'table: merge: the hand passes over entries that expire',
      index('an_entry_that_a_merge_brings_behind_the_hand_expires'),
      '    lower_floor(t, comes.words, comes.count);',
      '    (void)lower_floor;',
    ],
    [
      'table: merge: at once',
      index('entries_that_come_again_soon_merge_nothing'),
      '    if (t->now_ns - t->index_shrink_since_ns < SHRINK_AFTER_NS) return false;',
      '',
    ],
    [
      'table: merge: begins where it ends',
      index('buckets_that_are_a_third_full_stay_and_a_table_that_is_merged_has_room_to_grow'),
      'BELOW_PERCENT = 33,',
      'BELOW_PERCENT = 67,',
    ],
    [
      'table: merge: all buckets at the same time',
      index('only_a_part_of_the_buckets_settles_at_a_time'),
      't->settling < most && ',
      't->settling < 100 * most && ',
    ],
    [
      'table: merge: the index keeps its memory',
      index('the_index_of_a_table_that_lost_its_entries_is_small_and_grows_again'),
      '    if (table_load_below(t, RETIRE_PERCENT)) table_retire_index(t);',
      '',
    ],
  ]),
  ...inFile('native/table/split.c', [
    [
      'table: split: a number that was in use before does not settle',
      merge('a_bucket_whose_number_was_in_use_before_settles'),
      'again ? FKV_BUCKET_SETTLING : 0)',
      '0)',
    ],
    [
      'table: split: a number in new memory counts as new',
      merge('a_bucket_whose_number_was_in_use_before_settles_in_new_memory_too'),
      'bool again = image < t->buckets_most;',
      'bool again = to->word0 != 0;',
    ],
    [
      'table: split: a bucket loses the mark SETTLING',
      merge('a_bucket_whose_number_was_in_use_before_settles'),
      'level + 1, fkv_bucket_marks(word0))',
      'level + 1, 0)',
    ],
    [
      'table: split: a number is used again before its bucket is cleared',
      merge('a_number_is_not_used_again_before_its_bucket_is_cleared'),
      'return t->moving[t->buckets] > 0 || ',
      'return ',
    ],
  ]),
  ...inFile('native/table/tick.c', [
    [
      'table: split: growth that fell behind waits for changes',
      index('growth_that_fell_behind_goes_on_without_changes'),
      '    more |= splits;',
      '',
    ],
  ]),
  ...inFile('native/table/index.c', [
    [
      'table: split: a table whose next split waits is full',
      merge('a_chain_that_is_full_while_a_split_waits_is_busy_and_not_full'),
      '(table_split(t) || table_split_waits(t, why))',
      'table_split(t)',
    ],
  ]),
  ...inFile('native/table/segment.c', [
    [
      'table: a table that is filled in the order of a scan begins small',
      index('a_table_that_is_filled_in_the_order_of_a_scan_begins_with_as_many_buckets'),
      'clamp((uint64_t)c->buckets * FKV_BUCKET_BYTES, INDEX_FIRST, most)',
      'INDEX_FIRST + 0 * most',
    ],
    [
      'table: the first index segment takes any part of the memory',
      index('a_table_that_is_filled_in_the_order_of_a_scan_begins_with_as_many_buckets'),
      'clamp(c->memory_bytes / INDEX_FIRST_PART, INDEX_FIRST, INDEX_MAX)',
      'INDEX_MAX',
    ],
    [
      'table: merge: a segment goes before its buckets are cleared',
      merge('a_reader_of_any_age_finds_what_a_merge_moved'),
      ' || t->moving[last->first_bucket] > 0) return false;',
      ') return false;',
    ],
  ]),
  // ---------------------------------------------------------------- changes
  ...inFile('native/table/change.c', [
    [
      'table: a prepared key is not blocked',
      table('a_prepared_change_is_seen_by_nobody_and_blocks_its_key'),
      '    if (t->prepared_count && table_prepared_find(t, op->hash, op->space, op->key, op->key_bytes)) return busy(why, TABLE_BUSY_KEY);\n',
      '',
    ],
    [
      'table: a prepared key is read',
      table('a_prepared_change_is_seen_by_nobody_and_blocks_its_key'),
      '    if (t->prepared_count && table_prepared_find(t, hash, space, key, key_bytes)) return busy(why, TABLE_BUSY_KEY);\n',
      '',
    ],
  ]),
  ...inFile('native/table/tick.c', [
    [
      'table: expiry of a key that a prepared change replaces',
      table('the_hand_leaves_an_expired_entry_that_a_prepared_change_replaces'),
      '    if (table_prepared_find(t, hash, fkv_extent_namespace(e->expiry_space), extent_key(e), e->key_bytes)) return false;\n',
      '',
    ],
  ]),
  ...inFile('native/table/change.c', [
    [
      'table: an expired entry counts as present',
      table('an_expired_entry_is_absent_at_once_and_its_memory_comes_back'),
      'if (found && !extent_expired(t, old.extent)) *present',
      'if (found) *present',
    ],
  ]),
  // ---------------------------------------------------------------- memory goes back
  ...inFile('native/table/shrink.c', [
    [
      'table: shrink: empty segments stay',
      shrink('segments_that_became_empty_go_back'),
      ' && table_retire_spare(t, t->now_ns - SHRINK_AFTER_NS)) retired++;',
      ' && retired < 0) retired++;',
    ],
    [
      'table: shrink: nothing is emptied',
      shrink('segments_with_a_little_left_are_emptied_until_little_is_free'),
      'if (!table_evacuate_many(t)) {',
      'if (t->evacuating == 0) {',
    ],
    [
      'table: shrink: at once',
      shrink('what_is_deleted_and_comes_again_soon_moves_nothing'),
      'if (t->evacuating || !waited(t)) return;',
      'if (t->evacuating || (t->shrink_since_ns == 1 && waited(t))) return;',
    ],
    [
      'table: shrink: what memory files hold is not counted',
      shrink('files_with_one_full_segment_are_emptied_as_a_whole'),
      'return held_bytes(t) + t->heap_bytes - t->live_bytes',
      'return t->heap_bytes - t->live_bytes',
    ],
    [
      'table: shrink: tried for ever',
      shrink('growth_gives_nothing_back_and_a_table_with_nothing_to_empty_rests'),
      '        t->shrink_stuck = free;\n',
      '        t->shrink_stuck = 0;\n',
    ],
    [
      'table: shrink: passes of which nothing comes are made for ever',
      shrink('a_table_that_passes_do_not_make_smaller_rests'),
      'if (t->heap_bytes >= t->shrink_pass_bytes) t->shrink_stuck = free_bytes(t);',
      '',
    ],
    [
      'table: shrink: while segments come',
      shrink('a_table_of_many_sizes_seldom_asks_for_what_it_gave_back'),
      '(growing(t) ? AFTER_MOST_NS : SHRINK_AFTER_NS)',
      'SHRINK_AFTER_NS',
    ],
    [
      'table: shrink: without a pause while segments come',
      shrink('a_table_of_many_sizes_seldom_asks_for_what_it_gave_back'),
      'if (growing(t)) t->shrink_since_ns = t->now_ns;',
      '',
    ],
    [
      'table: shrink: never while segments come',
      shrink('memory_goes_back_in_the_end_also_where_a_segment_comes_again_and_again'),
      '(growing(t) ? AFTER_MOST_NS : SHRINK_AFTER_NS)',
      '(growing(t) ? 10 * AFTER_MOST_NS : SHRINK_AFTER_NS)',
    ],
    [
      'table: shrink: a segment goes back before the change that it came for is tried again',
      shrink('memory_goes_back_in_the_end_also_where_a_segment_comes_again_and_again'),
      'table_retire_spare(t, t->now_ns - SHRINK_AFTER_NS)',
      'table_retire_spare(t, t->now_ns)',
    ],
  ]),
  ...inFile('native/table/segment.c', [
    [
      'table: shrink: what is given back is asked for again',
      shrink('the_segment_that_the_next_change_needs_stays'),
      ' || (!also_needed && needed(t, g))) continue;',
      ' || (!also_needed && needed(t, g) && t->buckets == 0)) continue;',
    ],
    [
      'table: a third size finds the table full while segments are on their way',
      growth('a_size_that_neither_segment_on_its_way_is_for_waits'),
      '    if (*slot) return true;',
      '    if (*slot) return false;',
    ],
  ]),
  ...inFile('native/table/evacuate.c', [
    [
      'table: shrink: what is moved to make room gets no memory',
      shrink('a_table_of_many_sizes_comes_to_rest_with_little_free_and_asks_for_nothing_more'),
      'return table_ask_heap(t, cls) ? MUST_WAIT : NO_ROOM;',
      'return NO_ROOM;',
    ],
  ]),
  ...inFile('native/table/internal.h', [
    [
      'table: shrink: values above 256 KiB stay where they are',
      shrink('a_table_of_many_sizes_comes_to_rest_with_little_free_and_asks_for_nothing_more'),
      'MOVED_BYTES_MOST = 2 << 20,',
      'MOVED_BYTES_MOST = 256 << 10,',
    ],
  ]),
  ...inFile('native/table/tick.c', [
    [
      'table: shrink: a table that has memory to give back rests',
      shrink('a_table_of_many_sizes_comes_to_rest_with_little_free_and_asks_for_nothing_more'),
      ' && t->shrink_since_ns == 0',
      '',
    ],
  ]),
  // ---------------------------------------------------------------- memory that comes in time
  ...inFile('native/table/segment.c', [
    [
      'table: nothing comes in between while huge pages are late',
      growth('while_huge_pages_are_late_small_segments_come_in_between'),
      '        if (room < early / BRIDGE_LEFT_PART) ask_bridge(t, early);',
      '        (void)ask_bridge;',
    ],
    [
      'table: a bridge is asked for before it is needed',
      growth('while_huge_pages_are_late_small_segments_come_in_between'),
      'if (room < early / BRIDGE_LEFT_PART) ask_bridge(t, early);',
      'ask_bridge(t, early);',
    ],
    [
      'table: a bridge answers for the segment that is late',
      growth('a_bridge_that_comes_is_not_taken_for_the_segment_that_is_late'),
      'bool heap = t->asked_heap && bytes >= t->asked_heap,',
      'bool heap = t->asked_heap > 0,',
    ],
    [
      'table: all shards ask together',
      growth('shards_that_grow_alike_ask_for_memory_at_different_times'),
      'clamp(ahead - ahead / STAGGER_PARTS * step,',
      'clamp(ahead - 0 * step,',
    ],
  ]),
];
