/** What makes a record durable that was reported so, each with the C test that notices when it is missing. */
import { by, inFile } from './checks/in-file.mjs';

const cuts = by('log_cuts');
const faults = by('log_faults');
const damage = by('log_damage');
const write = by('log_write');

const ANY_CUT = cuts('what_was_reported_durable_is_replayed_after_a_cut_in_any_operation');
const USED_AGAIN = cuts('files_that_are_used_again_survive_a_cut_in_any_operation');
const FLIPS = damage('a_flipped_bit_is_a_torn_tail_in_the_last_batch_and_damage_elsewhere');
const OWNERS = damage('a_file_of_another_owner_or_of_a_later_format_is_named');

const NEWEST = damage('the_newest_file_is_missed_as_well');
const MADE_ANEW = cuts('a_start_that_makes_files_anew_may_end_in_any_operation');

export const mutations = [
  ...inFile('native/log/wal.c', [
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
      'log: the last file with a batch is given back',
      write('the_last_file_with_a_batch_stays_until_there_is_one_behind_it'),
      '        if (w->holds_back) break;\n',
      '',
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
  ]),
  ...inFile('native/log/replay.c', [
    [
      'log: damage is taken for a torn tail',
      FLIPS,
      '        if (s == GOOD) return verdict(r, WAL_DAMAGED, f->number, f->at);\n',
      '',
    ],
    [
      'log: batches between two files may be missing',
      damage('a_file_that_has_lost_its_batches_is_damaged'),
      '        if (r->before && head.number != found->batch) return gap(r, f, &head);\n',
      '',
    ],
    [
      'log: numbers of files need not follow each other',
      NEWEST,
      '        if (!follows(r, p, f) || !read_file(r, f)) return;\n',
      '        if (!read_file(r, f)) return;\n',
    ],
    ['log: files for the future alone are taken for a new log', NEWEST, '    if (found->batch == 1) is_new(r);\n', ''],
    [
      'log: a file of another cluster is read',
      OWNERS,
      '    if (memcmp(h.cluster, of->cluster, sizeof h.cluster) != 0) return verdict(r, WAL_OTHER_CLUSTER, f->number, 0);\n',
      '',
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
      'log: a third file without batches is removed last',
      MADE_ANEW,
      '        if (f->number < w->next_file + AHEAD) at = &f->link;\n',
      '        at = &f->link;\n',
    ],
    ['log: a third file without batches is made anew, too', MADE_ANEW, ' && s->number < w->next_file + AHEAD;', ';'],
  ]),
  ...inFile('native/log/file.c', [
    [
      'log: a file whose records no snapshot has is given back',
      ANY_CUT,
      '        if (f->reach[i].end && !covered(arg, &f->reach[i])) return false;\n',
      '',
    ],
  ]),
];
