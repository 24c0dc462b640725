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
const EXCHANGED = damage('a_chunk_that_is_missing_exchanged_or_of_another_snapshot_is_damage');
const OWNERS = damage('a_snapshot_of_another_owner_or_of_a_later_format_is_named');

const CHANGES = walk('a_snapshot_and_the_changes_since_it_began_make_the_table');
const CLIENTS = walk('what_clients_have_done_before_it_began_is_in_a_snapshot');
const COMES_BACK = recovery('copies_come_back_as_they_were_after_cuts_in_any_operation');
const JOINS = joins('a_copy_joins_when_what_it_was_made_from_is_on_its_disk');
const SERVED = joins('what_was_taken_over_is_on_the_disk_before_the_shard_is_served');

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
  ]),
  ...inFile('native/log/snapshot_file.c', [
    [
      'snapshot: the crc of a chunk is not checked',
      FLIPS,
      '    return head->crc == wal_crc_without(chunk, snapshot_blocks(head), offsetof(snapshot_chunk, crc));',
      '    (void)chunk;\n    return head->crc != 0;',
    ],
    [
      'snapshot: the length of a chunk is believed',
      damage('a_chunk_that_is_longer_than_what_is_read_at_once_is_damage', { sanitizer: 'address,undefined' }),
      '    return head->bytes <= SNAPSHOT_CHUNK_MAX - sizeof *head && snapshot_blocks(head) <= room;',
      '    return snapshot_blocks(head) <= room;',
    ],
  ]),
  ...inFile('native/log/snapshot_read.c', [
    [
      'snapshot: the foot is not compared with the chunks',
      EXCHANGED,
      '           f->crcs == r->counted.crcs;',
      '           f->crcs != 0;',
    ],
    [
      'snapshot: a file without a foot is whole',
      damage('a_file_that_ends_early_or_late_is_damaged'),
      '    return verdict(r, WAL_DAMAGED, size); /* it has no foot */',
      '    return true;',
    ],
    [
      'snapshot: one of another cluster is read',
      OWNERS,
      '    if (memcmp(h.cluster, of->cluster, sizeof h.cluster) != 0) return verdict(r, WAL_OTHER_CLUSTER, 0);\n',
      '',
    ],
    [
      'snapshot: one of another copy is read',
      OWNERS,
      '    if (h.shard != r->shard || h.copy != r->copy) return verdict(r, WAL_DAMAGED, 0);\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/walk.c', [
    ['snapshot walk: what of a chain did not fit is left out', CHANGES, '    if (k->rest) return;\n', ''],
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
  ]),
  ...inFile('native/dataplane/snapshots.c', [
    [
      'snapshot: the log behind it is given back',
      COMES_BACK,
      'r->end - 1 <= p->has.committed && r->epoch <= p->has.epoch;',
      'r->epoch <= p->has.epoch;',
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
  ...inFile('native/dataplane/import.c', [
    [
      'durable: what was taken over is on no disk when the shard is served',
      SERVED,
      '    s->snapshot.owed = s->durable;',
      '    s->snapshot.owed = false;',
    ],
  ]),
  ...inFile('native/dataplane/life.c', [
    [
      'durable: a shard is served before what it has taken over is on the disk',
      SERVED,
      ' return replicate_may_serve(s) && !s->snapshot.owed; }',
      ' return replicate_may_serve(s); }',
    ],
  ]),
  ...inFile('native/dataplane/recover.c', [
    [
      'recovery: retries of an earlier life are made again',
      recovery('a_copy_of_a_later_life_knows_nothing_of_earlier_ones'),
      '    if (epoch > DATAPLANE_EPOCH_FIRST)\n',
      '    if (epoch > DATAPLANE_EPOCH_MAX)\n',
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
      'recovery: nobody may rely on what the copy has granted before',
      recovery('what_was_acknowledged_is_found_committed_or_prepared'),
      '    b->place.granted_until_ns = replica_grant_end(',
      '    b->place.granted_until_ns = 0 & replica_grant_end(',
    ],
  ]),
  ...inFile('native/dataplane/recovery.c', [
    [
      'recovery: a log without a thread is passed over',
      recovery('a_server_with_fewer_threads_than_logs_does_not_start'),
      '    if (e == 0 && r->threads > d->c.workers) {',
      '    if (e == 0 && r->threads > d->c.workers + 64) {',
    ],
    [
      'recovery: snapshots go on without their log',
      recovery('snapshots_whose_log_is_lost_are_not_gone_on_with'),
      '    if (found->verdict <= WAL_TORN && found->batch == 1 && snapshots > 0) {',
      '    if (found->verdict <= WAL_TORN && found->batch == 1 && snapshots > UINT32_MAX - 1) {',
    ],
  ]),
  ...inFile('native/dataplane/durable.c', [
    [
      'recovery: what a start holds back of the log stays',
      served('what_a_start_holds_back_of_the_log_is_given_back_with_the_next_batch'),
      '    if (wal_holds_back(&g->wal)) g->snapshots.trims = true;\n',
      '',
    ],
  ]),
];
