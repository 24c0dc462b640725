/** What makes a record durable that was reported so, each with the C test that notices when it is missing. */
import { by, inFile } from './checks/in-file.mjs';

const cuts = by('log_cuts');
const faults = by('log_faults');
const damage = by('log_damage');
const write = by('log_write');
const groups = by('group_commit');

const ANY_CUT = cuts('what_was_reported_durable_is_replayed_after_a_cut_in_any_operation');
const USED_AGAIN = cuts('files_that_are_used_again_survive_a_cut_in_any_operation');
const FLIPS = damage('a_flipped_bit_is_a_torn_tail_in_the_last_batch_and_damage_elsewhere');
const OWNERS = damage('a_file_of_another_owner_or_of_a_later_format_is_named');
const NO_SECTIONS = damage('a_batch_with_a_good_crc_whose_sections_are_none_is_damaged');

export const mutations = [
  ...inFile('native/log/group_commit.c', [
    [
      'log: a batch does not wait for those that were answered',
      groups('clients_that_are_answered_are_in_the_next_batch_with_the_others'),
      '    if (records >= g->want || now_ns >= g->until_ns) return true;',
      '    return true;',
    ],
    [
      'log: waits in vain are not learned from',
      groups('clients_that_come_late_are_hardly_waited_for'),
      '(helped ? habit_helped : habit_in_vain)(&g->habit);',
      'if (helped) habit_helped(&g->habit);',
    ],
    [
      'log: a batch waits until all have come',
      groups('a_wait_ends_after_half_a_sync_however_much_is_missing'),
      ' || now_ns >= g->until_ns',
      '',
    ],
    [
      'log: a wait longer than a sync counts as worth it',
      groups('a_wait_that_was_longer_than_a_sync_was_in_vain'),
      ' && now_ns - g->home_ns <= g->usual_ns',
      '',
    ],
  ]),
  ...inFile('native/log/wal.c', [
    [
      'log: a change alone is waited with',
      groups('a_change_alone_is_not_waited_with'),
      'group_commit_goes(&w->group, w->turn_ns, x->buffer.records)',
      'group_commit_goes(&w->group, w->turn_ns, x->buffer.records + 1)',
    ],
    [
      'log: a batch is not synced',
      ANY_CUT,
      '    if (disk_job_did(&x->base, "write", name, e)) disk_job_did(&x->base, "sync", name, d->sync(d, x->handle));',
      '    disk_job_did(&x->base, "write", name, e);',
    ],
    [
      'log: a batch is durable before its sync',
      ANY_CUT,
      '    int e = d->write(d, x->handle, x->at, x->buffer.base, wal_whole_blocks(x->head.bytes));\n    if (disk_job_did(&x->base, "write", name, e)) disk_job_did(&x->base, "sync", name, d->sync(d, x->handle));',
      '    int e = d->sync(d, x->handle);\n    if (disk_job_did(&x->base, "sync", name, e)) disk_job_did(&x->base, "write", name, d->write(d, x->handle, x->at, x->buffer.base, wal_whole_blocks(x->head.bytes)));',
    ],
    [
      'log: what a sync answers is not looked at',
      faults('an_operation_that_fails_is_reported_once_and_nothing_is_durable_afterwards'),
      'disk_job_did(&x->base, "sync", name, d->sync(d, x->handle));',
      'd->sync(d, x->handle);',
    ],
    [
      'log: a sync that failed is tried again',
      faults('a_sync_that_failed_is_not_tried_again'),
      'disk_job_did(&x->base, "sync", name, d->sync(d, x->handle));',
      'disk_job_did(&x->base, "sync", name, d->sync(d, x->handle) ? d->sync(d, x->handle) : 0);',
    ],
    [
      'log: a batch is reported after another file failed',
      faults('a_batch_that_is_under_way_when_another_file_fails_is_not_reported'),
      'while (!w->failed && wal_next_section(',
      'while (wal_next_section(',
    ],
    [
      'log: a failure is reported twice',
      faults('an_operation_that_fails_is_reported_once_and_nothing_is_durable_afterwards'),
      '    w->failed = true;\n',
      '',
    ],
    [
      'log: two batches are under way',
      write('one_batch_is_under_way_and_what_comes_meanwhile_goes_with_the_next'),
      'if (x->base.under_way || w->failed',
      'if (w->failed',
    ],
    [
      'log: there is room though no file is ahead',
      write('nothing_is_durable_before_its_batch_is_synced'),
      ' || w->full || list_empty(&w->ahead)) return 0;',
      ' || w->full) return 0;',
    ],
    [
      'log: there is room on a full disk',
      faults('a_disk_that_is_full_leaves_no_room_until_there_is_space_again'),
      ' || w->full || list_empty',
      ' || list_empty',
    ],
    [
      'log: what was replayed is not synced at the start',
      cuts('what_was_replayed_survives_the_next_cut_though_the_process_ended_before_it_was_synced'),
      '    if (why->error || !sync_found(w, why)) {',
      '    if (why->error) {',
    ],
    [
      'log: names of files that were replayed are not synced at the start',
      cuts('names_of_files_survive_the_next_cut_though_the_process_ended_before_they_were_synced'),
      '    int e = d->sync_directory(d);\n',
      '    int e = 0;\n',
    ],
    [
      'log: the file that is written is given back',
      ANY_CUT,
      'if (f->handle >= 0 || !wal_file_covered',
      'if (!wal_file_covered',
    ],
  ]),
  ...inFile('native/log/batch.c', [
    [
      'log: the crc of a batch is not checked',
      FLIPS,
      '    return head->crc == wal_crc_without(batch, wal_whole_blocks(head->bytes), offsetof(wal_batch, crc));',
      '    return true;',
    ],
    [
      'log: a batch of an earlier life of its file is believed',
      write('batches_of_an_earlier_life_of_a_file_are_none'),
      '    if (head->file != file->number || head->salt != file->salt) return false;\n',
      '',
    ],
    [
      'log: a value that looks like a batch is believed',
      damage('a_value_that_looks_like_a_batch_is_none'),
      'head->file != file->number || head->salt != file->salt)',
      'head->file != file->number)',
    ],
    [
      'log: the crc of the head of a file is not checked',
      FLIPS,
      ' &&\n           head->crc == wal_crc_without(block, WAL_BLOCK, offsetof(wal_file_head, crc));',
      ';',
    ],
    [
      'log: the length of a section is believed',
      damage('a_batch_with_a_good_crc_whose_sections_are_none_is_damaged', { sanitizer: 'address,undefined' }),
      's->bytes > left - sizeof *s || ',
      '',
    ],
    [
      'log: the length of a batch is believed',
      damage('a_file_that_is_larger_than_what_is_read_at_once_is_replayed_and_its_lengths_are_not_believed', {
        sanitizer: 'address,undefined',
      }),
      ' || head->bytes > WAL_BATCH_MAX) return false;',
      ') return false;',
    ],
    [
      'log: a section with records counts none',
      NO_SECTIONS,
      ' || (s->count > 0 && s->bytes == 0)) return false;',
      ') return false;',
    ],
  ]),
  ...inFile('native/log/replay.c', [
    [
      'log: a torn tail is taken for damage',
      ANY_CUT,
      'if (torn) verdict(r, WAL_TORN, f->number, f->at);',
      'if (torn) return verdict(r, WAL_DAMAGED, f->number, f->at);',
    ],
    [
      'log: damage is taken for a torn tail',
      FLIPS,
      '        if (s == GOOD) return verdict(r, WAL_DAMAGED, f->number, f->at);\n',
      '',
    ],
    [
      'log: batches between two files may be missing',
      damage('a_missing_file_is_named_with_the_first_batch_that_is_gone'),
      '        if (r->before && head.number != found->batch) return gap(r, f, &head);\n',
      '',
    ],
    [
      'log: a torn tail is not noted',
      FLIPS,
      '    if (torn) verdict(r, WAL_TORN, f->number, f->at);\n',
      '    (void)torn;\n',
    ],
    [
      'log: a tail that was cut off is torn for ever',
      damage('a_torn_tail_is_cut_off_and_no_damage_once_the_log_has_gone_on'),
      '        found->verdict = WAL_WHOLE; /* what was torn in a file before was cut off by an earlier start */\n',
      '',
    ],
    [
      'log: a file of another cluster is read',
      OWNERS,
      '    if (memcmp(h.cluster, of->cluster, sizeof h.cluster) != 0) return verdict(r, WAL_OTHER_CLUSTER, f->number, 0);\n',
      '',
    ],
    [
      'log: a file of another data directory is read',
      OWNERS,
      '    if (h.instance != of->instance) return verdict(r, WAL_OTHER_INSTANCE, f->number, 0);\n',
      '',
    ],
    [
      'log: a file of a later format is read',
      OWNERS,
      'if (h.format > WAL_FORMAT) {',
      'if (h.format > WAL_FORMAT + 1) {',
    ],
  ]),
  ...inFile('native/log/files.c', [
    [
      'log: the directory is not synced after a file got its name',
      ANY_CUT,
      '    if (make_file(m, spare)) {\n        sync_directory(m);\n',
      '    if (make_file(m, spare)) {\n',
    ],
    [
      'log: the directory is not synced before a file is used again',
      USED_AGAIN,
      'if (!rename_file(m, source, spare) || !sync_directory(m) || ',
      'if (!rename_file(m, source, spare) || ',
    ],
    [
      'log: a file gets its name before its head is synced',
      ANY_CUT,
      'return write_head(m, spare) && disk_job_did(&m->base, "sync", spare, d->sync(d, m->file->handle)) &&',
      'return write_head(m, spare) &&',
    ],
    [
      'log: a disk without space for a new file is a failure',
      faults('a_disk_that_is_full_leaves_no_room_until_there_is_space_again'),
      '    m->no_space = m->source == 0 && (error == -ENOSPC || error == -EDQUOT);',
      '    m->no_space = false;',
    ],
    [
      'log: a file that was given back waits behind a full disk',
      faults('a_disk_that_is_full_leaves_no_room_until_there_is_space_again'),
      '        return wal_files_go_on(w, false); /* out of one that was given back meanwhile */',
      '        return;',
    ],
  ]),
  ...inFile('native/log/file.c', [
    [
      'log: a file whose records no snapshot has is given back',
      ANY_CUT,
      '        if (f->reach[i].end && !covered(arg, &f->reach[i])) return false;\n',
      '',
    ],
    [
      'log: a file that begins an epoch is given back too early',
      write('an_epoch_that_no_snapshot_has_keeps_its_file'),
      '    if (r->epoch < s->epoch) r->epoch = s->epoch;\n',
      '',
    ],
  ]),
];
