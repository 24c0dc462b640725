/** What must not be missing from native/table, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const table = by('table');
const growth = by('table_growth');
const moving = by('table_moving');
const order = by('table_order');
const reader = by('table_reader');
const shrink = by('table_shrink');
const merge = by('table_merge');

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
      '        set_state(old, FKV_EXTENT_DEAD);\n    }\n    fkv_publish_word(slot, p->new_word);',
      '    }\n    fkv_publish_word(slot, p->new_word);\n    if (old) set_state(old, FKV_EXTENT_DEAD);',
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
  ...inFile('native/table/change.c', [
    [
      'table: quarantine: not for an aborted insert',
      moving('an_aborted_insert_whose_slot_moved_does_not_meet_its_copy'),
      '        table_quarantine_aborted(t, fkv_slot_location(word), fkv_slot_class(word));',
      '        table_quarantine_unplace(t, fkv_slot_class(word));\n        table_heap_give(t, fkv_slot_location(word), fkv_slot_class(word));',
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
  // ---------------------------------------------------------------- merges
  ...inFile('native/table/merge.c', [
    [
      'table: merge: without the mark SETTLING',
      merge('a_reader_of_any_age_finds_what_a_merge_moved'),
      'level, FKV_BUCKET_SETTLING)',
      'level, 0)',
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
  ]),
  ...inFile('native/table/split.c', [
    [
      'table: split: a number is used again before its bucket is cleared',
      merge('a_number_is_not_used_again_before_its_bucket_is_cleared'),
      'return t->moving[t->buckets] > 0 || ',
      'return ',
    ],
  ]),
  ...inFile('native/table/segment.c', [
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
  // ---------------------------------------------------------------- memory goes back
  ...inFile('native/table/shrink.c', [
    [
      'table: shrink: what memory files hold is not counted',
      shrink('files_with_one_full_segment_are_emptied_as_a_whole'),
      'return held_bytes(t) + t->heap_bytes - t->live_bytes',
      'return t->heap_bytes - t->live_bytes',
    ],
  ]),
];
