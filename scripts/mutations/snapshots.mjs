/** What makes a snapshot whole whenever it has its name, each with the C test that notices when it is missing. */
import { by, inFile } from './checks/in-file.mjs';

const cuts = by('snapshot_cuts');
const faults = by('snapshot_faults');
const damage = by('snapshot_damage');
const walk = by('snapshot_walk');
const served = by('dataplane_snapshot');
const recovery = by('recovery');
const joins = by('dataplane_durable_join');

const ANY_CUT = cuts('each_copy_has_a_whole_snapshot_after_a_cut_in_any_operation');
const BEFORE = cuts('the_one_before_is_there_until_the_next_one_is_whole');
const ANY_FAILURE = faults('an_operation_that_fails_costs_the_snapshot_that_is_written');
const FLIPS = damage('a_flipped_bit_is_damage_wherever_it_is');
const FOOT = damage('a_foot_that_says_something_else_than_what_is_there_is_damage');
const EXCHANGED = damage('a_chunk_that_is_missing_exchanged_or_of_another_snapshot_is_damage');
const OWNERS = damage('a_snapshot_of_another_owner_or_of_a_later_format_is_named');

const CHANGES = walk('a_snapshot_and_the_changes_since_it_began_make_the_table');
const CLIENTS = walk('what_clients_have_done_before_it_began_is_in_a_snapshot');
const COMES_BACK = recovery('copies_come_back_as_they_were_after_cuts_in_any_operation');
const JOINS = joins('a_copy_joins_when_what_it_was_made_from_is_on_its_disk');
const SERVED = joins('what_was_taken_over_is_on_the_disk_before_the_shard_is_served');
const GIVES_BACK = served('a_snapshot_that_is_asked_for_gives_the_log_back');

const DAMAGED = walk('what_is_damaged_in_memory_is_said_to_be_so_in_a_snapshot');
const STAYS_DAMAGED = recovery('what_was_damaged_in_memory_does_not_come_back_as_good');

export const mutations = [
  ...inFile('native/dataplane/walk.c', [
    [
      'snapshot: a damaged value is given as a good one',
      DAMAGED,
      'large ? ITEM_LARGE : table_is_whole(e) ? ITEM_ENTRIES : ITEM_DAMAGED',
      'large ? ITEM_LARGE : ITEM_ENTRIES',
    ],
    [
      'snapshot: a large damaged value is given as a good one',
      DAMAGED,
      'give(k, whole ? ITEM_VALUE : ITEM_VALUE_DAMAGED, n)',
      'give(k, whole ? ITEM_VALUE : ITEM_VALUE, n)',
    ],
    [
      'snapshot: a large value that moved is compared with where it was',
      DAMAGED,
      '(table_checksum_begin(&e) == k->begun ? crc == table_checksum(&e) : table_is_whole(&e))',
      'crc == table_checksum(&e)',
    ],
  ]),
  ...inFile('native/dataplane/recover.c', [
    [
      'recovery: a large damaged value gets a good checksum',
      STAYS_DAMAGED,
      '(damaged ? table_seal_damaged : table_seal)(c->s->table, &v->prepared);',
      'table_seal(c->s->table, &v->prepared);',
    ],
  ]),
  ...inFile('native/dataplane/import.c', [
    [
      'recovery: a damaged value gets a good checksum',
      STAYS_DAMAGED,
      '    if (status == FKV_OK && damaged) table_seal_damaged(s->table, &p);\n',
      '',
    ],
  ]),
  ...inFile('native/log/snapshot_write.c', [
    [
      'snapshot: it gets its name before it is synced',
      BEFORE,
      '    return write_foot(x, n) && sync_written(x, n, 0) && give_name(x, n);',
      '    return write_foot(x, n) && give_name(x, n);',
    ],
    [
      'snapshot: it is done before its name is synced',
      ANY_CUT,
      '    if (disk_job_did(&x->base, "sync", "the directory", d->sync_directory(d))) return true;',
      '    if (x->last) return true;',
    ],
    [
      'snapshot: it is written in place of the one before',
      BEFORE,
      '    x->handle = d->open(d, n->new, DISK_CREATE);',
      '    x->handle = d->open(d, n->own, DISK_CREATE);',
    ],
    [
      'snapshot: what a write answers is not looked at',
      ANY_FAILURE,
      '    return disk_job_did(&x->base, "write", n->new, d->write(d, x->handle, at, from, bytes));',
      '    d->write(d, x->handle, at, from, bytes);\n    return disk_job_did(&x->base, "write", n->new, 0);',
    ],
    [
      'snapshot: what a sync answers is not looked at',
      ANY_FAILURE,
      '    return disk_job_did(&x->base, "sync", n->new, d->sync(d, x->handle));',
      '    d->sync(d, x->handle);\n    return disk_job_did(&x->base, "sync", n->new, 0);',
    ],
    [
      'snapshot: all of it is synced at its end',
      faults('what_is_written_is_synced_a_part_at_a_time'),
      'enum { SYNC_BYTES = 8 << 20 };',
      'enum { SYNC_BYTES = 800 << 20 };',
    ],
    [
      'snapshot: a directory that was not synced counts as a file that failed',
      ANY_FAILURE,
      '    x->outcome = SNAPSHOT_UNCERTAIN;\n',
      '',
    ],
    [
      'snapshot: one that failed leaves its file',
      faults('a_sync_that_failed_is_not_tried_again_and_its_file_is_removed'),
      '        if (x->created) d->remove(d, n.new); /* else the next start does */\n',
      '',
    ],
    [
      'snapshot: a full disk counts as one that fails',
      faults('a_full_disk_is_told_from_one_that_fails_and_is_tried_anew'),
      '        bool full = error == -ENOSPC || error == -EDQUOT;',
      '        bool full = error == 0;',
    ],
    [
      'snapshot: two chunks are under way',
      faults('one_chunk_is_under_way_while_the_next_one_fills'),
      '    if (w->work.base.under_way || w->stopped || now_ns < w->due_ns) return false;',
      '    if (w->stopped || now_ns < w->due_ns) return false;',
    ],
    [
      'snapshot: it is written as fast as the disk',
      faults('a_chunk_that_is_full_waits_for_its_time'),
      '    if (w->work.base.under_way || w->stopped || now_ns < w->due_ns) return false;',
      '    if (w->work.base.under_way || w->stopped) return false;',
    ],
    [
      'snapshot: one that is dropped is written to its end',
      faults('what_is_dropped_leaves_nothing_behind'),
      '    if (x->drop || !do_work(x, &n)) {',
      '    if (!do_work(x, &n)) {',
    ],
  ]),
  ...inFile('native/log/snapshot_file.c', [
    [
      'snapshot: the crc of a chunk is not checked',
      FLIPS,
      '    return head->crc == wal_crc_without(chunk, snapshot_blocks(head), offsetof(snapshot_chunk, crc));',
      '    (void)chunk;\n    return head->crc != 0;',
    ],
    [
      'snapshot: the crc of the head is not checked',
      FLIPS,
      ' &&\n           head->crc == wal_crc_without(block, WAL_BLOCK, offsetof(snapshot_head, crc));',
      ';',
    ],
    [
      'snapshot: the length of a chunk is believed',
      damage('a_chunk_that_is_longer_than_what_is_read_at_once_is_damage', { sanitizer: 'address,undefined' }),
      '    return head->bytes <= SNAPSHOT_CHUNK_MAX - sizeof *head && snapshot_blocks(head) <= room;',
      '    return snapshot_blocks(head) <= room;',
    ],
    [
      'snapshot: chunks come in any order',
      EXCHANGED,
      ' || head->number != number) return false;',
      ') return false;\n    (void)number;',
    ],
  ]),
  ...inFile('native/log/snapshot_read.c', [
    [
      'snapshot: the foot is not compared with the chunks',
      EXCHANGED,
      '           f->crcs == r->counted.crcs;',
      '           f->crcs != 0;',
    ],
    ['snapshot: items that are not there count', FOOT, 'f->items == r->counted.items && ', ''],
    [
      'snapshot: a file without a foot is whole',
      damage('a_file_that_ends_early_or_late_is_damaged'),
      '    return verdict(r, WAL_DAMAGED, size); /* it has no foot */',
      '    return true;',
    ],
    [
      'snapshot: something may follow the foot',
      damage('a_file_that_ends_early_or_late_is_damaged'),
      'return (last && is_foot(r, &c, items))',
      'return ((last || true) && is_foot(r, &c, items))',
    ],
    [
      'snapshot: one of another cluster is read',
      OWNERS,
      '    if (memcmp(h.cluster, of->cluster, sizeof h.cluster) != 0) return verdict(r, WAL_OTHER_CLUSTER, 0);\n',
      '',
    ],
    [
      'snapshot: one of another data directory is read',
      OWNERS,
      '    if (h.instance != of->instance) return verdict(r, WAL_OTHER_INSTANCE, 0);\n',
      '',
    ],
    [
      'snapshot: one of a later format is read',
      OWNERS,
      '    if (h.format > SNAPSHOT_FORMAT) {',
      '    if (h.format > SNAPSHOT_FORMAT + 1) {',
    ],
    [
      'snapshot: one of another copy is read',
      OWNERS,
      '    if (h.shard != r->shard || h.copy != r->copy) return verdict(r, WAL_DAMAGED, 0);\n',
      '',
    ],
    [
      'snapshot: one that was cut short stays for ever',
      ANY_CUT,
      '        case SNAPSHOT_NEW_NAME: e = d->remove(d, n.name[i]); break;',
      '        case SNAPSHOT_NEW_NAME: break;',
    ],
  ]),
  ...inFile('native/dataplane/walk.c', [
    ['snapshot walk: what of a chain did not fit is left out', CHANGES, '    if (k->rest) return;\n', ''],
    [
      'snapshot walk: of a chain that was merged meanwhile the rest alone is given',
      walk('chains_that_are_merged_while_they_are_given_leave_no_key_out'),
      '    if (k->rest && next != k->next) return forget_rest(k); /* it was split or merged: all of it again */\n',
      '',
    ],
    [
      'snapshot walk: a key that is changed meanwhile is given again',
      walk('keys_that_are_changed_again_and_again_do_not_hold_up_a_walk'),
      '    if (i < k->lefts && give_now(k, e)) k->left[i] = k->left[--k->lefts];',
      '    if (give_now(k, e) && i < k->lefts) k->left[i] = k->left[--k->lefts];',
    ],
    [
      'snapshot walk: a value that is replaced is not cut off',
      CHANGES,
      '        if (give(k, ITEM_CUT, 0)) k->value_bytes = 0;',
      '        k->value_bytes = 0;',
    ],
    [
      'snapshot walk: of clients whose windows did not fit the rest is left out',
      CLIENTS,
      '    if (k->passed && k->full) return;\n',
      '',
    ],
    [
      'snapshot walk: clients behind one that is forgotten meanwhile are left out',
      walk('clients_behind_one_that_is_forgotten_meanwhile_are_in_a_snapshot'),
      '    if (k->passed) k->cursor = next;',
      '    k->cursor = next;',
    ],
  ]),
  ...inFile('native/dataplane/walk.c', [
    [
      'snapshot walk: a chain of clients that was split meanwhile goes on where it was',
      walk('clients_of_a_chain_that_is_split_meanwhile_are_in_a_snapshot'),
      '    if (k->mask != k->s->w->dedup.mask) k->client = 0;\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/dedup.c', [
    [
      'snapshot walk: the table of clients grows unnoticed',
      CLIENTS,
      '    uint32_t number = fkv_reversed_bits((uint32_t)*cursor) & d->mask;',
      '    uint32_t number = (uint32_t)*cursor & d->mask;',
    ],
  ]),
  ...inFile('native/dataplane/snapshots.c', [
    [
      'snapshot: the log is given back before one is made',
      COMES_BACK,
      '    return p->made && r->end - 1 <= p->has.committed && r->epoch <= p->has.epoch;',
      '    return r->epoch <= durable_epoch(s);',
    ],
    [
      'snapshot: the log behind it is given back',
      COMES_BACK,
      'r->end - 1 <= p->has.committed && r->epoch <= p->has.epoch;',
      'r->epoch <= p->has.epoch;',
    ],
    [
      'snapshot: the log is never given back',
      GIVES_BACK,
      '    p->has = p->begun;\n    x->trims = true;\n',
      '    p->has = p->begun;\n',
    ],
    [
      'snapshot: it says that it has what was committed at its end',
      COMES_BACK,
      '    p->has = p->begun;\n',
      '    p->has = p->begun;\n    p->has.committed = durable_committed(s);\n',
    ],
    [
      'snapshot: it begins in an epoch whose beginning is not in the log',
      recovery('a_snapshot_begins_when_its_epoch_is_in_the_log'),
      ' && list_empty(&s->w->ready) &&\n           durable_has_begun(s);',
      ' && list_empty(&s->w->ready);',
    ],
    [
      'snapshot: a long log makes none',
      served('a_snapshot_is_made_when_the_log_is_too_long'),
      '    if (kept > live) wal_oldest(g, want_oldest, x->w);',
      '    (void)live, (void)want_oldest;',
    ],
    [
      'snapshot: one is made though the tables are longer than the log',
      served('no_snapshot_is_made_while_the_log_is_shorter_than_the_tables'),
      '        live += t.live_extent_bytes;',
      '        live += t.entries;',
    ],
    [
      'snapshot: a shard that rests holds up the log',
      served('a_shard_that_rests_does_not_hold_up_the_log'),
      '    if (!is_covered(w, r) && s && of_worker(w)->of != s) wants_one(s);',
      '    if (!is_covered(w, r) && s && of_worker(w)->of != s && durable_committed(s) > 5) wants_one(s);',
    ],
    [
      'snapshot: one that failed is forgotten',
      served('a_snapshot_that_fails_is_reported_and_made_later'),
      '    wants_one(s);\n    answer(&s->snapshot.waiting,',
      '    answer(&s->snapshot.waiting,',
    ],
    [
      'snapshot: one of a closed shard stays',
      served('a_shard_that_is_closed_leaves_nothing_on_the_disk'),
      '    snapshot_remove(&x->writer, s->number, s->logged_as);\n',
      '',
    ],
    [
      'snapshot: what a copy was made from is not wanted on its disk',
      JOINS,
      '    s->snapshot.owed = true;\n    wants_one(s);',
      '    s->snapshot.owed = true;',
    ],
    [
      'snapshot: a directory that was not synced is no failure of the log',
      served('a_directory_that_cannot_be_synced_ends_the_log'),
      '    if (o == SNAPSHOT_UNCERTAIN) wal_fail(&x->w->log->wal, f);',
      '    if (o == SNAPSHOT_UNCERTAIN) (void)f;',
    ],
    [
      'recovery: the log of a copy that is not whole is given back',
      recovery('a_copy_whose_snapshot_is_damaged_is_not_whole_and_kept_until_it_is_discarded'),
      ' return !recovery_keeps(w, r->shard, r->copy);',
      ' return true;',
    ],
  ]),
  ...inFile('native/dataplane/uplink.c', [
    [
      'durable: a copy gives leases before what it was made from is on its disk',
      JOINS,
      '{ return !b->shard->snapshot.owed; }',
      '{ return b->shard->snapshot.owed || true; }',
    ],
  ]),
  ...inFile('native/dataplane/role.c', [
    [
      'durable: what a copy was made from is on no disk',
      joins('a_copy_of_a_shard_that_is_changed_meanwhile_comes_back_as_its_owner_was'),
      '    if (s->durable) snapshots_owe(s);\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/import.c', [
    [
      'durable: what was taken over is on no disk when the shard is served',
      SERVED,
      '    s->snapshot.owed = s->durable;',
      '    s->snapshot.owed = false;',
    ],
    [
      'durable: entries are taken over while a snapshot is made of those before',
      SERVED,
      'if (!s || s->state != SHARD_OPEN || s->copy || s->starting || s->basing) {',
      'if (!s || s->state != SHARD_OPEN || s->copy) {',
    ],
  ]),
  ...inFile('native/dataplane/life.c', [
    [
      'durable: a shard is served before what it has taken over is on the disk',
      SERVED,
      ' return replicate_may_serve(s) && !s->snapshot.owed; }',
      ' return replicate_may_serve(s); }',
    ],
    [
      'durable: what was taken over counts as no record',
      joins('a_shard_that_lacks_what_it_has_taken_over_is_not_whole'),
      '        s->replica.last = s->replica.committed = s->logging.appended = 1;\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/recover.c', [
    [
      'recovery: the log of an epoch before the snapshot ended makes a copy damaged',
      recovery('an_epoch_that_begins_while_a_snapshot_is_made_does_no_harm'),
      'b->place.prepared < c->foot.last || c->epoch < c->foot.epoch;',
      'b->place.prepared < c->foot.last || c->epoch < c->head.epoch;',
    ],
    [
      'recovery: retries of an earlier life are made again',
      recovery('a_copy_of_a_later_life_knows_nothing_of_earlier_ones'),
      '    if (epoch > DATAPLANE_EPOCH_FIRST)\n',
      '    if (epoch > DATAPLANE_EPOCH_MAX)\n',
    ],
    [
      'recovery: records that a snapshot has are made again',
      COMES_BACK,
      '        if (lsn <= b->place.prepared) continue; /* the snapshot has it */\n',
      '',
    ],
    [
      'recovery: what came after a record is replaced by it',
      COMES_BACK,
      '    bool again = b->place.prepared < c->foot.last || c->epoch < c->foot.epoch;',
      '    bool again = false;',
    ],
    ['recovery: what an epoch cuts off stays', COMES_BACK, '    backup_cuts_off(b, behind);', '    (void)b;'],
    [
      'recovery: a beginning cuts off what the snapshot has',
      COMES_BACK,
      '    if (x->epoch <= c->head.epoch) behind = max_u64(behind, c->head.committed);\n',
      '',
    ],
    [
      'recovery: what is prepared is committed',
      COMES_BACK,
      '    uint64_t committed = min_u64(x->committed, c->s->copy->place.prepared);\n    commit(c, committed);',
      '    commit(c, c->s->copy->place.prepared);',
    ],
    [
      'recovery: a log that ends before the snapshot does is whole',
      recovery('a_copy_whose_log_ends_before_its_snapshot_does_is_not_whole'),
      '    if (b->place.prepared < c->foot.last || (c->epoch && c->epoch < c->head.epoch))',
      '    if (c->epoch && c->epoch < c->head.epoch)',
    ],
    [
      'recovery: a log without its beginning is whole',
      joins('a_copy_that_lacks_what_it_was_made_from_is_not_whole'),
      '    if (!c->s && (x->bytes > 0 || x->first != 1))',
      '    if (!c->s && x->bytes > 0)',
    ],
    [
      'recovery: digests are not compared',
      recovery('a_copy_that_is_not_what_it_was_is_not_whole'),
      '    if (digest && digest != (table_digest(c->s->table) | 1))',
      '    if (digest == 1)',
    ],
    [
      'recovery: windows of clients are not read back',
      served('a_retry_is_answered_as_before_after_a_loss_of_power'),
      '    case ITEM_WINDOWS: return take_windows(c, items, k->bytes);',
      '    case ITEM_WINDOWS: return true;',
    ],
    [
      'recovery: a large value goes on where the one before ended',
      COMES_BACK,
      '        (damaged ? table_seal_damaged : table_seal)(c->s->table, &v->prepared);\n        table_commit(c->s->table, &v->prepared);\n    }\n    *v = (recover_value){ 0 };',
      '        (damaged ? table_seal_damaged : table_seal)(c->s->table, &v->prepared);\n        table_commit(c->s->table, &v->prepared);\n    }\n    v->under_way = false;',
    ],
    [
      'recovery: nobody may rely on what the copy has granted before',
      recovery('what_was_acknowledged_is_found_committed_or_prepared'),
      '    b->place.granted_until_ns = replica_grant_end(',
      '    b->place.granted_until_ns = 0 & replica_grant_end(',
    ],
  ]),
  ...inFile('native/dataplane/recovery.c', [
    [
      'recovery: a start that is given up goes on with what it has read',
      recovery('a_start_that_is_given_up_ends_and_changes_nothing_that_is_wanted'),
      'if (l->on_progress && !l->on_progress(',
      'if (l->on_progress && !bytes && !l->on_progress(',
    ],
    [
      'recovery: a log without a thread is passed over',
      recovery('a_server_with_fewer_threads_than_logs_does_not_start'),
      '    if (e == 0 && r->threads > d->c.workers) {',
      '    if (e == 0 && r->threads > d->c.workers + 64) {',
    ],
    [
      "recovery: a snapshot whose head is damaged is another thread's",
      recovery('a_snapshot_that_nobody_can_read_is_of_the_thread_whose_log_has_its_copy'),
      '        if (s->why[0] && s->shard == number && s->copy == id) recover_fails(c, "%s", s->why);\n',
      '        (void)s;\n',
    ],
    [
      'recovery: what is wanted and cannot be read is not reported',
      recovery('a_snapshot_that_nobody_can_read_is_of_the_thread_whose_log_has_its_copy'),
      '        if (!found) add(d->worker[0], s->shard, s->copy);\n',
      '        (void)found;\n',
    ],
    [
      'recovery: a damaged snapshot makes a copy',
      recovery('a_copy_whose_snapshot_is_damaged_is_not_whole_and_kept_until_it_is_discarded'),
      '    recover_fails(c, "%s", text);',
      '    (void)text;',
    ],
  ]),
];
