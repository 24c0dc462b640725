/** What makes the answers of durable shards survive a loss of power, each with the C test that notices when it is missing. */
import { by, inFile } from './checks/in-file.mjs';

const lost = (when) => by('replica_model')(`nothing_is_lost_when_${when}`);
const rules = by('replica');
const shards = by('dataplane_durable');
const lives = by('dataplane_durable_life');
const write = by('log_write');
const logs = by('failover')('what_was_answered_or_read_is_in_the_logs_of_all_copies_when_all_lose_their_power');

const BOTH = lost('both_copies_lose_their_power');
const LARGE = shards('a_large_value_is_in_both_logs_before_it_is_answered');
const FULL = shards('a_full_disk_refuses_changes_after_a_while_and_takes_them_again');

export const mutations = [
  ...inFile('native/dataplane/replica.h', [
    [
      'durable: what was logged in an earlier epoch counts in the next',
      rules('what_is_logged_counts_in_its_own_epoch_only'),
      'l->epoch == epoch ? l->logged : 0;',
      'l->epoch <= epoch ? l->logged : 0;',
    ],
  ]),
  ...inFile('native/dataplane/replica_owner.c', [
    [
      'durable: an owner commits what is not in its log',
      BOTH,
      '    to = min_of(to, replica_on_disk(&o->log, o->epoch));\n',
      '',
    ],
    [
      'durable: a copy that leads waits for no log',
      lost('an_owner_is_suspected_and_all_lose_their_power'),
      '.inherited = own->prepared,\n                          .log = own->log };',
      '.inherited = own->prepared };',
    ],
    [
      'durable: an owner that steps down forgets what is logged',
      rules('what_is_logged_counts_in_its_own_epoch_only'),
      '    own->log = o->log;\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/replica_backup.c', [
    [
      'durable: a joiner takes its log for that of what it was made from',
      rules('what_is_logged_counts_in_its_own_epoch_only'),
      '    b->log.epoch = 0;\n    b->log.logged = 0;\n',
      '',
    ],
    [
      'durable: a backup acknowledges what is not in its log',
      BOTH,
      '.prepared = min_of(b->prepared, replica_on_disk(&b->log, b->epoch)) };',
      '.prepared = b->prepared };',
    ],
    [
      'durable: a backup gives a lease in an epoch that is not in its log',
      shards('a_backup_gives_no_lease_before_the_epoch_is_in_its_log'),
      'if (b->withheld || !has_begun(b)) return false;',
      'if (b->withheld || (false && !has_begun(b))) return false;',
    ],
    [
      'durable: a backup commits what is not in its log',
      logs,
      'uint64_t has = min_of(b->prepared, replica_on_disk(&b->log, epoch));',
      'uint64_t has = b->prepared;',
    ],
  ]),
  ...inFile('native/dataplane/replicate.c', [
    [
      'durable: a change that is logged is undone when the lease is over',
      shards('a_change_that_is_logged_when_the_owners_lease_is_over_is_made'),
      'o->replicated = s->durable || replica_waits(&s->replica);',
      'o->replicated = replica_waits(&s->replica);',
    ],
    [
      'durable: changes without copies have no records',
      shards('a_shard_without_copies_waits_for_its_own_log'),
      's->backups = s->durable || replica_waits(&s->replica);',
      's->backups = replica_waits(&s->replica);',
    ],
    [
      'durable: changes are prepared though the log has no room',
      FULL,
      '    if (o->shard->durable && durable_admits(o->shard) != FKV_OK) return FKV_BUSY;\n',
      '',
    ],
    [
      'durable: an owner does not begin its epoch in the log',
      shards('a_new_owner_commits_nothing_before_its_epoch_is_in_its_log'),
      '    if (s->durable) durable_begins(s);\n    b->scrub_ns',
      '    b->scrub_ns',
    ],
  ]),
  ...inFile('native/dataplane/backup.c', [
    [
      'durable: a backup does not begin a new epoch in the log',
      shards('a_backup_gives_no_lease_before_the_epoch_is_in_its_log'),
      'if (b->shard->durable && b->place.epoch != before) durable_begins(b->shard);',
      '(void)before;',
    ],
    [
      'durable: a backup has room on a full disk',
      shards('a_backup_whose_disk_is_full_has_no_room'),
      'uint64_t room = durable_is_full(b->shard) ? 0 : room_left(b);',
      'uint64_t room = room_left(b);',
    ],
    [
      'durable: the next change of a key damages a copy whose log lags',
      lives('a_copy_that_joins_waits_with_a_keys_next_change_until_its_log_has_the_one_before'),
      'return !lags ? FKV_BAD_REQUEST : durable_is_full(b->shard) ? FKV_TABLE_FULL : FKV_BUSY;',
      'return lags ? FKV_BAD_REQUEST : FKV_BAD_REQUEST;',
    ],
    [
      'durable: a copy that joins waits for a log whose disk is full',
      lives('a_copy_that_joins_and_has_a_full_disk_does_not_wait_for_its_log'),
      'durable_is_full(b->shard) ? FKV_TABLE_FULL : FKV_BUSY;',
      'durable_is_full(b->shard) ? FKV_BUSY : FKV_BUSY;',
    ],
  ]),
  ...inFile('native/dataplane/feed.c', [
    [
      'durable: a copy is sent more than it keeps while its log lags',
      lives('a_copy_that_joins_is_not_sent_more_than_it_keeps_while_its_log_lags'),
      '(f->shard->durable && f->sent > acknowledged + UNLOGGED_MOST)',
      'false',
    ],
  ]),
  ...inFile('native/dataplane/life.c', [
    [
      'durable: a shard that is no copy does not begin its epoch in the log',
      lives('a_shard_that_is_no_copy_begins_its_epoch_in_the_log_when_it_is_served'),
      '        if (s->durable) durable_begins(s);\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/durable.c', [
    [
      'durable: what a copy drops counts as given to the log',
      logs,
      '    at->appended = min_u64(at->appended, suffix_last(s));\n',
      '',
    ],
    [
      'durable: a large value is not logged before its record',
      LARGE,
      '        if (!append_value(g, s, &p)) return false;\n',
      '        (void)append_value;\n',
    ],
    [
      'durable: a large value goes on where the one before has ended',
      LARGE,
      '        at->value_at = 0;\n    }\n    return true;',
      '    }\n    return true;',
    ],
    [
      'durable: sections of a closed shard count for the next',
      shards('what_the_log_reports_of_a_closed_shard_is_not_taken_for_that_of_the_next'),
      ' || s->names != x->copy ||',
      ' ||',
    ],
    [
      'durable: a copy gives leases when its log has failed',
      shards('a_copy_whose_log_failed_gives_no_lease'),
      '->epoch = 0;\n    if (c->on_log_failed)',
      ';\n    if (c->on_log_failed)',
    ],
    ['durable: a full disk is never looked at again', FULL, 'if (g->retry_ns) wal_retry(&g->wal);', '(void)wal_retry;'],
  ]),
  ...inFile('native/dataplane/wait.c', [
    [
      'durable: a change that waited for a full disk is told to come again',
      FULL,
      'op_ends(o, full ? FKV_TABLE_FULL : FKV_BUSY);',
      'op_ends(o, full ? FKV_BUSY : FKV_BUSY);',
    ],
  ]),
  ...inFile('native/dataplane/import.c', [
    [
      'durable: entries that are in no log are taken over',
      shards('what_would_be_in_no_log_is_refused'),
      'if (!takes || s->durable) {',
      'if (!takes) {',
    ],
  ]),
  ...inFile('native/dataplane/calls.c', [
    [
      'durable: a durable shard is opened without a log',
      shards('what_would_be_in_no_log_is_refused'),
      ' && (!o->durable || d->c.log.disk);',
      ';',
    ],
  ]),
  ...inFile('native/log/file.c', [
    [
      'durable: a file goes though a record needs what is in it',
      write('what_a_record_has_in_front_of_it_keeps_its_file_until_a_snapshot_has_the_record'),
      's->first + (s->bytes > 0 && s->count == 0 ? 1 : s->count);',
      's->first + s->count;',
    ],
  ]),
];
