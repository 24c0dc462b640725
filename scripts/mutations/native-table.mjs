/** What must not be missing from native/table, each with the C test that notices. */
const by = (program) => (test) => ({ program, test });
const table = by('table');
const growth = by('table_growth');
const moving = by('table_moving');
const order = by('table_order');
const reader = by('table_reader');

export const mutations = [
  // ---------------------------------------------------------------- the order of stores
  {
    name: 'table: a new extent is not PENDING first',
    file: 'native/table/change.c',
    find: '    __atomic_store_n(&e->state, FKV_EXTENT_PENDING, __ATOMIC_RELAXED);\n    fkv_store_fence();',
    replace: '    e->tag = 0;\n    __atomic_store_n(&e->state, FKV_EXTENT_PENDING, __ATOMIC_RELAXED);',
    caughtBy: order('a_new_extent_is_pending_before_anything_else_of_it_changes'),
  },
  {
    name: 'table: LIVE before DEAD',
    file: 'native/table/change.c',
    find: '    if (p->old_word) set_state(extent_of(t, p->old_word), FKV_EXTENT_DEAD);\n    fkv_publish_word(slot, p->new_word);',
    replace: '    fkv_publish_word(slot, p->new_word);\n    if (p->old_word) set_state(extent_of(t, p->old_word), FKV_EXTENT_DEAD);',
    caughtBy: order('a_replacement_kills_the_old_extent_then_stores_the_slot_then_takes_effect'),
  },
  {
    name: 'table: LIVE before the slot',
    file: 'native/table/change.c',
    find: '    fkv_publish_word(slot, p->new_word);\n',
    replace: '    if (p->new_word) set_state(extent_of(t, p->new_word), FKV_EXTENT_LIVE);\n    fkv_publish_word(slot, p->new_word);\n',
    caughtBy: order('an_insert_stores_the_slot_before_it_takes_effect'),
  },
  {
    name: 'table: the slot of an expired entry is cleared before it is DEAD',
    file: 'native/table/tick.c',
    find: '    set_state(e, FKV_EXTENT_DEAD);\n    fkv_publish_word(slot, 0);',
    replace: '    fkv_publish_word(slot, 0);\n    set_state(e, FKV_EXTENT_DEAD);',
    caughtBy: order('an_expired_entry_is_killed_before_its_slot_is_cleared'),
  },
  // ---------------------------------------------------------------- readers
  {
    name: 'table: reader: no checksum',
    file: 'native/table/reader.h',
    find: 'if (fkv_extent_crc(landed, h.key_bytes, h.value_bytes) != h.crc) return FKV_READ_AGAIN;',
    replace: '',
    caughtBy: reader('one_flipped_bit_of_a_landed_extent_is_found'),
  },
  {
    name: 'table: reader: state and version are not looked at again after the copy',
    file: 'native/table/reader.h',
    find: 'if (changed) return FKV_READ_AGAIN;',
    replace: '(void)changed;',
    caughtBy: order('a_copy_during_which_the_extent_died_or_was_reused_is_refused'),
  },
  {
    name: 'table: reader: only the state is looked at again after the copy',
    file: 'native/table/reader.h',
    find: ' ||\n                   __atomic_load_n(&e->version, __ATOMIC_RELAXED) != h.version;',
    replace: ';',
    caughtBy: order('a_copy_during_which_the_extent_died_or_was_reused_is_refused'),
  },
  {
    name: 'table: reader: state before version',
    file: 'native/table/reader.h',
    find: '    head[1] = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE);\n    if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != FKV_EXTENT_LIVE) return FKV_READ_AGAIN;',
    replace: '    if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != FKV_EXTENT_LIVE) return FKV_READ_AGAIN;\n    head[1] = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE);',
    caughtBy: order('a_reader_loads_the_version_before_the_state'),
  },
  {
    name: 'table: reader: lengths are believed',
    file: 'native/table/reader.h',
    find: '&& all <= bytes;',
    replace: '&& (all > 0 || bytes);',
    caughtBy: reader('lengths_that_do_not_fit_are_refused_before_they_are_followed'),
  },
  {
    name: 'table: reader: the tag is not compared',
    file: 'native/table/reader.h',
    find: 'if (h.state != FKV_EXTENT_LIVE || h.tag != want->tag || !fkv_extent_lengths_fit(&h, bytes)) return FKV_READ_AGAIN;',
    replace: 'if (h.state != FKV_EXTENT_LIVE || !fkv_extent_lengths_fit(&h, bytes)) return FKV_READ_AGAIN;',
    caughtBy: reader('an_extent_that_is_not_live_or_of_another_segment_or_key_is_refused'),
  },
  {
    name: 'table: reader: PENDING is taken',
    file: 'native/table/reader.h',
    find: '    if (h.state != FKV_EXTENT_LIVE || h.tag',
    replace: '    if (h.state == FKV_EXTENT_DEAD || h.tag',
    caughtBy: reader('an_extent_that_is_not_live_or_of_another_segment_or_key_is_refused'),
  },
  {
    name: 'table: reader: the tag of a bucket is not compared',
    file: 'native/table/reader.h',
    find: 'fkv_bucket_tag(b->word0) != tag || (fkv',
    replace: '(tag == 0) || (fkv',
    caughtBy: reader('a_bucket_of_another_segment_or_of_a_moved_shard_is_foreign'),
  },
  // ---------------------------------------------------------------- quarantine
  {
    name: 'table: quarantine: no time',
    file: 'native/table/quarantine.c',
    find: 'if (m->last_ns + q->delay_ns > t->now_ns) return false;',
    replace: '',
    caughtBy: table('a_freed_extent_keeps_its_bytes_until_the_quarantine_has_passed'),
  },
  {
    name: 'table: quarantine: counted from the tick before',
    file: 'native/table/tick.c',
    find: '    if (now_ns > t->now_ns) t->now_ns = now_ns;\n    t->wall_ms = wall_ms;\n    if (t->buckets == 0) return false;\n    table_quarantine_stamp(t);',
    replace: '    table_quarantine_stamp(t);\n    if (now_ns > t->now_ns) t->now_ns = now_ns;\n    t->wall_ms = wall_ms;\n    if (t->buckets == 0) return false;',
    caughtBy: table('quarantine_counts_from_the_tick_after_an_extent_died'),
  },
  {
    name: 'table: quarantine: no bound',
    file: 'native/table/quarantine.c',
    find: 'return held == 0 || held + bytes <= t->config.quarantine_bytes;',
    replace: 'return held + bytes > 0;',
    caughtBy: table('a_full_quarantine_pushes_back_and_one_item_always_fits'),
  },
  {
    name: 'table: quarantine: large extents leave before moved slots',
    file: 'native/table/quarantine.c',
    find: 'if (drain(t, &t->delay[i], budget)) return true;',
    replace: 'if (drain(t, &t->delay[DELAY_QUEUES - 1 - i], budget)) return true;',
    caughtBy: moving('a_moved_slot_is_cleared_before_what_it_names_is_let_go'),
  },
  {
    name: 'table: quarantine: not for an aborted insert',
    file: 'native/table/change.c',
    find: '        table_quarantine_aborted(t, fkv_slot_location(word), fkv_slot_class(word));',
    replace: '        table_quarantine_unplace(t, fkv_slot_class(word));\n        table_heap_give(t, fkv_slot_location(word), fkv_slot_class(word));',
    caughtBy: moving('an_aborted_insert_whose_slot_moved_does_not_meet_its_copy'),
  },
  {
    name: 'table: quarantine: no bound for aborted changes',
    file: 'native/table/change.c',
    find: '    if (!table_quarantine_bears(t, class_bytes(cls))) return busy(why, TABLE_BUSY_QUARANTINE);\n',
    replace: '',
    caughtBy: table('changes_that_are_aborted_again_and_again_are_pushed_back_before_they_fill_the_memory'),
  },
  {
    name: 'table: quarantine: an aborted change that was not seen is reused at once',
    file: 'native/table/quarantine.c',
    find: '    push_extent(t, location, cls, 1ull << 62);\n    t->aborted_bytes += class_bytes(cls);',
    replace: '    table_quarantine_unplace(t, cls);\n    table_heap_give(t, location, cls);',
    caughtBy: table('the_extent_of_an_aborted_change_keeps_its_bytes_until_the_quarantine_has_passed'),
  },
  {
    name: 'table: quarantine: not for overflow buckets',
    file: 'native/table/index.c',
    find: '    table_quarantine_extent(t, location, FKV_CLASS_BUCKET);',
    replace: '    table_quarantine_unplace(t, FKV_CLASS_BUCKET);\n    table_heap_give(t, location, FKV_CLASS_BUCKET);',
    caughtBy: moving('a_reader_finds_what_the_shortening_of_a_chain_moves'),
  },
  // ---------------------------------------------------------------- growth and evacuation
  {
    name: 'table: split: moved slots are cleared at once',
    file: 'native/table/split.c',
    find: 'if (moved.mask[p]) table_quarantine_moved(t, number, p, moved.mask[p]);',
    replace: 'for (int i = 0; i < FKV_SLOTS; i++)\n            if (p == 0 && moved.mask[p] >> i & 1) from->slot[i] = 0;',
    caughtBy: growth('a_reader_that_holds_an_old_header_never_misses_a_key'),
  },
  {
    name: 'table: shortening: moved slots are cleared at once',
    file: 'native/table/index.c',
    find: '    table_quarantine_moved(t, number, position, mask);',
    replace: '    (void)position;\n    for (int i = 0; i < FKV_SLOTS; i++)\n        if (mask >> i & 1) last->slot[i] = 0;',
    caughtBy: moving('a_reader_finds_what_the_shortening_of_a_chain_moves'),
  },
  {
    name: 'table: evacuation: copies are taken for entries',
    file: 'native/table/evacuate.c',
    find: '    if (t->moving[number]) return MUST_WAIT;',
    replace: '',
    caughtBy: moving('a_segment_is_emptied_while_slots_are_moving'),
  },
  {
    name: 'table: evacuation: LIVE before DEAD',
    file: 'native/table/evacuate.c',
    find: '    set_state(e, FKV_EXTENT_DEAD);\n    fkv_publish_word(slot,',
    replace: '    set_state(at_location(t, location), FKV_EXTENT_LIVE);\n    fkv_publish_word(slot,',
    caughtBy: order('an_entry_that_moves_dies_where_it_was_before_it_lives_where_it_is'),
  },
  {
    name: 'table: evacuation: a moved entry has another version',
    file: 'native/table/evacuate.c',
    find: '    h.tag = t->heap[fkv_location_segment(location)]->tag;',
    replace: '    h.tag = t->heap[fkv_location_segment(location)]->tag;\n    h.version++;',
    caughtBy: moving('an_entry_that_was_moved_keeps_its_version_for_readers_and_for_compare_and_swap'),
  },
  {
    name: 'table: evacuation: prepared keys are moved',
    file: 'native/table/evacuate.c',
    find: '    if (table_prepared_find(t, extent_hash(t, e), ns, extent_key(e), e->key_bytes)) return MUST_WAIT;',
    replace: '    (void)ns;',
    caughtBy: moving('an_entry_with_a_prepared_change_is_not_moved'),
  },
  {
    name: 'table: scan: copies are emitted',
    file: 'native/table/scan.c',
    find: '            if (t->moving[number] && table_index_slot(t, extent_hash(t, e), word) != &b->slot[i]) continue;    /* a copy */\n',
    replace: '',
    caughtBy: growth('a_scan_meets_every_key_that_stays_once_while_the_table_grows'),
  },
  // ---------------------------------------------------------------- changes
  {
    name: 'table: a prepared key is not blocked',
    file: 'native/table/change.c',
    find: '    if (t->prepared_count && table_prepared_find(t, op->hash, op->ns, op->key, op->key_bytes)) return busy(why, TABLE_BUSY_KEY);\n',
    replace: '',
    caughtBy: table('a_prepared_change_is_seen_by_nobody_and_blocks_its_key'),
  },
  {
    name: 'table: a prepared key is read',
    file: 'native/table/change.c',
    find: '    if (t->prepared_count && table_prepared_find(t, hash, ns, key, key_bytes)) return busy(why, TABLE_BUSY_KEY);\n',
    replace: '',
    caughtBy: table('a_prepared_change_is_seen_by_nobody_and_blocks_its_key'),
  },
  {
    name: 'table: expiry of a key that a prepared change replaces',
    file: 'native/table/tick.c',
    find: '    if (table_prepared_find(t, hash, fkv_extent_namespace(e->expiry_ns), extent_key(e), e->key_bytes)) return false;\n',
    replace: '',
    caughtBy: table('the_hand_leaves_an_expired_entry_that_a_prepared_change_replaces'),
  },
  {
    name: 'table: an expired entry counts as present',
    file: 'native/table/change.c',
    find: 'if (found && !extent_expired(t, old.extent)) *present',
    replace: 'if (found) *present',
    caughtBy: table('an_expired_entry_is_absent_at_once_and_its_memory_comes_back'),
  },
];
