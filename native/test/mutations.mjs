/**
 * Mutation checks of the C sources: each mutation takes one safety mechanism out of native/, and the test that is named with it must then
 * fail, on a check and not by a crash. Prints a table; exits with 1 if a mutation survives.
 *
 *   node native/test/mutations.mjs [part of a name]
 *
 * A mutation is { name, file, find, replace, program, test }: `find` is text that occurs exactly once in native/`file`; `program` is
 * native/test/`program`_test.c and `test` the name of the function in it. What is compiled is native/base and native/table.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const native = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const LIMIT_MS = 60_000;

const mutations = [
  // ---------------------------------------------------------------- the order of stores
  {
    name: 'a new extent is not PENDING first',
    file: 'table/change.c',
    find: '    __atomic_store_n(&e->state, FKV_EXTENT_PENDING, __ATOMIC_RELAXED);\n    fkv_store_fence();',
    replace: '    e->tag = 0;\n    __atomic_store_n(&e->state, FKV_EXTENT_PENDING, __ATOMIC_RELAXED);',
    program: 'table_order',
    test: 'a_new_extent_is_pending_before_anything_else_of_it_changes',
  },
  {
    name: 'LIVE before DEAD',
    file: 'table/change.c',
    find: '    if (p->old_word) set_state(extent_of(t, p->old_word), FKV_EXTENT_DEAD);\n    fkv_publish_word(slot, p->new_word);',
    replace: '    fkv_publish_word(slot, p->new_word);\n    if (p->old_word) set_state(extent_of(t, p->old_word), FKV_EXTENT_DEAD);',
    program: 'table_order',
    test: 'a_replacement_kills_the_old_extent_then_stores_the_slot_then_takes_effect',
  },
  {
    name: 'LIVE before the slot',
    file: 'table/change.c',
    find: '    fkv_publish_word(slot, p->new_word);\n',
    replace: '    if (p->new_word) set_state(extent_of(t, p->new_word), FKV_EXTENT_LIVE);\n    fkv_publish_word(slot, p->new_word);\n',
    program: 'table_order',
    test: 'an_insert_stores_the_slot_before_it_takes_effect',
  },
  {
    name: 'the slot of an expired entry is cleared before it is DEAD',
    file: 'table/tick.c',
    find: '    set_state(e, FKV_EXTENT_DEAD);\n    fkv_publish_word(slot, 0);',
    replace: '    fkv_publish_word(slot, 0);\n    set_state(e, FKV_EXTENT_DEAD);',
    program: 'table_order',
    test: 'an_expired_entry_is_killed_before_its_slot_is_cleared',
  },
  // ---------------------------------------------------------------- readers
  {
    name: 'reader: no checksum',
    file: 'table/reader.h',
    find: 'if (fkv_extent_crc(landed, h.key_bytes, h.value_bytes) != h.crc) return FKV_READ_AGAIN;',
    replace: '',
    program: 'table_reader',
    test: 'one_flipped_bit_of_a_landed_extent_is_found',
  },
  {
    name: 'reader: state and version are not looked at again after the copy',
    file: 'table/reader.h',
    find: 'if (changed) return FKV_READ_AGAIN;',
    replace: '(void)changed;',
    program: 'table_order',
    test: 'a_copy_during_which_the_extent_died_or_was_reused_is_refused',
  },
  {
    name: 'reader: only the state is looked at again after the copy',
    file: 'table/reader.h',
    find: ' ||\n                   __atomic_load_n(&e->version, __ATOMIC_RELAXED) != h.version;',
    replace: ';',
    program: 'table_order',
    test: 'a_copy_during_which_the_extent_died_or_was_reused_is_refused',
  },
  {
    name: 'reader: state before version',
    file: 'table/reader.h',
    find: '    head[1] = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE);\n    if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != FKV_EXTENT_LIVE) return FKV_READ_AGAIN;',
    replace: '    if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != FKV_EXTENT_LIVE) return FKV_READ_AGAIN;\n    head[1] = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE);',
    program: 'table_order',
    test: 'a_reader_loads_the_version_before_the_state',
  },
  {
    name: 'reader: lengths are believed',
    file: 'table/reader.h',
    find: '&& all <= bytes;',
    replace: '&& (all > 0 || bytes);',
    program: 'table_reader',
    test: 'lengths_that_do_not_fit_are_refused_before_they_are_followed',
  },
  {
    name: 'reader: the tag is not compared',
    file: 'table/reader.h',
    find: 'if (h.state != FKV_EXTENT_LIVE || h.tag != want->tag || !fkv_extent_lengths_fit(&h, bytes)) return FKV_READ_AGAIN;',
    replace: 'if (h.state != FKV_EXTENT_LIVE || !fkv_extent_lengths_fit(&h, bytes)) return FKV_READ_AGAIN;',
    program: 'table_reader',
    test: 'an_extent_that_is_not_live_or_of_another_segment_or_key_is_refused',
  },
  {
    name: 'reader: the tag of a bucket is not compared',
    file: 'table/reader.h',
    find: 'fkv_bucket_tag(b->word0) != tag || (fkv',
    replace: '(tag == 0) || (fkv',
    program: 'table_reader',
    test: 'a_bucket_of_another_segment_or_of_a_moved_shard_is_foreign',
  },
  // ---------------------------------------------------------------- quarantine
  {
    name: 'quarantine: no time',
    file: 'table/quarantine.c',
    find: 'if (m->last_ns + q->delay_ns > t->now_ns) return false;',
    replace: '',
    program: 'table',
    test: 'a_freed_extent_keeps_its_bytes_until_the_quarantine_has_passed',
  },
  {
    name: 'quarantine: counted from the tick before',
    file: 'table/tick.c',
    find: '    if (now_ns > t->now_ns) t->now_ns = now_ns;\n    t->wall_ms = wall_ms;\n    if (t->buckets == 0) return false;\n    table_quarantine_stamp(t);',
    replace: '    table_quarantine_stamp(t);\n    if (now_ns > t->now_ns) t->now_ns = now_ns;\n    t->wall_ms = wall_ms;\n    if (t->buckets == 0) return false;',
    program: 'table',
    test: 'quarantine_counts_from_the_tick_after_an_extent_died',
  },
  {
    name: 'quarantine: no bound',
    file: 'table/quarantine.c',
    find: 'return held == 0 || held + bytes <= t->config.quarantine_bytes;',
    replace: 'return held + bytes > 0;',
    program: 'table',
    test: 'a_full_quarantine_pushes_back_and_one_item_always_fits',
  },
  {
    name: 'quarantine: large extents leave before moved slots',
    file: 'table/quarantine.c',
    find: 'if (drain(t, &t->delay[i], budget)) return true;',
    replace: 'if (drain(t, &t->delay[DELAY_QUEUES - 1 - i], budget)) return true;',
    program: 'table_moving',
    test: 'a_moved_slot_is_cleared_before_what_it_names_is_let_go',
  },
  {
    name: 'quarantine: not for an aborted insert',
    file: 'table/change.c',
    find: '        table_quarantine_extent(t, fkv_slot_location(word), fkv_slot_class(word));',
    replace: '        table_quarantine_unplace(t, fkv_slot_class(word));\n        table_heap_give(t, fkv_slot_location(word), fkv_slot_class(word));',
    program: 'table_moving',
    test: 'an_aborted_insert_whose_slot_moved_does_not_meet_its_copy',
  },
  {
    name: 'quarantine: not for overflow buckets',
    file: 'table/index.c',
    find: '    table_quarantine_extent(t, location, FKV_CLASS_BUCKET);',
    replace: '    table_quarantine_unplace(t, FKV_CLASS_BUCKET);\n    table_heap_give(t, location, FKV_CLASS_BUCKET);',
    program: 'table_moving',
    test: 'a_reader_finds_what_the_shortening_of_a_chain_moves',
  },
  // ---------------------------------------------------------------- growth and evacuation
  {
    name: 'split: moved slots are cleared at once',
    file: 'table/split.c',
    find: 'if (moved.mask[p]) table_quarantine_moved(t, number, p, moved.mask[p]);',
    replace: 'for (int i = 0; i < FKV_SLOTS; i++)\n            if (p == 0 && moved.mask[p] >> i & 1) from->slot[i] = 0;',
    program: 'table_growth',
    test: 'a_reader_that_holds_an_old_header_never_misses_a_key',
  },
  {
    name: 'shortening: moved slots are cleared at once',
    file: 'table/index.c',
    find: '    table_quarantine_moved(t, number, position, mask);',
    replace: '    (void)position;\n    for (int i = 0; i < FKV_SLOTS; i++)\n        if (mask >> i & 1) last->slot[i] = 0;',
    program: 'table_moving',
    test: 'a_reader_finds_what_the_shortening_of_a_chain_moves',
  },
  {
    name: 'evacuation: copies are taken for entries',
    file: 'table/evacuate.c',
    find: '    if (t->moving[number]) return MUST_WAIT;',
    replace: '',
    program: 'table_moving',
    test: 'a_segment_is_emptied_while_slots_are_moving',
  },
  {
    name: 'evacuation: prepared keys are moved',
    file: 'table/evacuate.c',
    find: '    if (table_prepared_find(t, extent_hash(t, e), ns, extent_key(e), e->key_bytes)) return MUST_WAIT;',
    replace: '    (void)ns;',
    program: 'table_moving',
    test: 'a_segment_is_emptied_while_slots_are_moving',
  },
  {
    name: 'scan: copies are emitted',
    file: 'table/scan.c',
    find: '            if (t->moving[number] && table_index_slot(t, extent_hash(t, e), word) != &b->slot[i]) continue;    /* a copy */\n',
    replace: '',
    program: 'table_growth',
    test: 'a_scan_meets_every_key_that_stays_once_while_the_table_grows',
  },
  // ---------------------------------------------------------------- changes
  {
    name: 'a prepared key is not blocked',
    file: 'table/change.c',
    find: '    if (t->prepared_count && table_prepared_find(t, op->hash, op->ns, op->key, op->key_bytes)) return busy(why, TABLE_BUSY_KEY);\n',
    replace: '',
    program: 'table',
    test: 'a_prepared_change_is_seen_by_nobody_and_blocks_its_key',
  },
  {
    name: 'a prepared key is read',
    file: 'table/change.c',
    find: '    if (t->prepared_count && table_prepared_find(t, hash, ns, key, key_bytes)) return busy(why, TABLE_BUSY_KEY);\n',
    replace: '',
    program: 'table',
    test: 'a_prepared_change_is_seen_by_nobody_and_blocks_its_key',
  },
  {
    name: 'expiry of a key that a prepared change replaces',
    file: 'table/tick.c',
    find: '    if (table_prepared_find(t, hash, fkv_extent_namespace(e->expiry_ns), extent_key(e), e->key_bytes)) return false;\n',
    replace: '',
    program: 'table',
    test: 'the_hand_leaves_an_expired_entry_that_a_prepared_change_replaces',
  },
  {
    name: 'an expired entry counts as present',
    file: 'table/change.c',
    find: 'if (found && !extent_expired(t, old.extent)) *present',
    replace: 'if (found) *present',
    program: 'table',
    test: 'an_expired_entry_is_absent_at_once_and_its_memory_comes_back',
  },
];

function check({ name, file, find, replace, program, test }) {
  const source = readFileSync(join(native, file), 'utf8');
  const occurrences = source.split(find).length - 1;
  if (occurrences !== 1) return `the text to replace occurs ${occurrences} times in ${file}`;
  const directory = mkdtempSync(join(tmpdir(), 'farkv-mutation-'));
  try {
    for (const part of ['base', 'table', 'test']) cpSync(join(native, part), join(directory, part), { recursive: true });
    // A function: `$` has a meaning in a replacement string.
    writeFileSync(join(directory, file), source.replace(find, () => replace));
    const sources = ['base', 'table'].flatMap((part) => readdirSync(join(directory, part)).filter((f) => f.endsWith('.c')).map((f) => join(part, f)));
    const built = spawnSync('gcc', ['-std=c11', '-D_GNU_SOURCE', '-O2', '-w', '-pthread', '-o', 'mutant', ...sources, `test/${program}_test.c`, 'test/check.c', '-lm'],
      { cwd: directory, encoding: 'utf8' });
    if (built.status !== 0) return `${name} does not compile: ${built.stderr}`;
    const run = spawnSync('./mutant', { cwd: directory, encoding: 'utf8', timeout: LIMIT_MS, env: { ...process.env, FARKV_TEST: test } });
    if (run.status === 0) return run.stdout.includes(': 0 tests') ? `no test ${test}` : 'SURVIVED';
    return run.stderr.includes(` ${test}: failed: `) ? undefined : `ended by ${run.signal ?? run.status}, not by a check`;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const chosen = mutations.filter(({ name }) => name.includes(process.argv[2] ?? ''));
let failed = 0;
for (const mutation of chosen) {
  const problem = check(mutation);
  if (problem) failed++;
  console.log(`${problem ? 'NOT CAUGHT' : 'caught'}  ${mutation.name}  (${mutation.test})${problem ? `: ${problem}` : ''}`);
}
console.log(`${chosen.length - failed} of ${chosen.length} mutations caught`);
process.exitCode = failed || chosen.length === 0 ? 1 : 0;
