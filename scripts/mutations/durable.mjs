/** What makes the answers of durable shards survive a loss of power, each with the C test that notices when it is missing. */
import { by, inFile } from './checks/in-file.mjs';

const lost = (when) => by('replica_model')(`nothing_is_lost_when_${when}`);
const rules = by('replica');
const shards = by('dataplane_durable');
const lives = by('dataplane_durable_life');
const write = by('log_write');
const logs = by('failover_seeds')('what_was_answered_or_read_comes_back_with_each_copy_when_all_lose_their_power');

const early = by('dataplane_sync');
const several = by('dataplane_early');

const BOTH = lost('both_copies_lose_their_power');
const LARGE = shards('a_large_value_is_in_both_logs_before_it_is_answered');

/** What a turn of the log does once snapshots have had theirs. */
const TURN = `    g->more = false;
    list_take_all(&g->behind, &now);
    while (!list_empty(&now)) {
        shard *s = LIST_OF(now.next, shard, logging.behind);
        list_remove(&s->logging.behind);
        if (wal_room(&g->wal) == 0 || !append_records(g, s)) list_push(&g->behind, &s->logging.behind);
        count_buffered(s);
        if (answers_early(s)) came_further(s);
    }
    flush(g);
`;

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
    ['durable: an owner commits what is not in its log', BOTH, '    to = min_of(to, counts);\n', ''],
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
      '    b->log.epoch = 0;\n    b->log.logged = b->log.buffered = 0;\n',
      '',
    ],
    [
      'durable: a backup acknowledges what is not in its log',
      BOTH,
      '.prepared = min_of(b->prepared, replica_counts(&b->log, b->epoch)) };',
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
      'uint64_t has = min_of(b->prepared, replica_counts(&b->log, epoch));',
      'uint64_t has = b->prepared;',
    ],
  ]),
  ...inFile('native/dataplane/replicate.c', [
    [
      'durable: an owner does not begin its epoch in the log',
      shards('a_new_owner_commits_nothing_before_its_epoch_is_in_its_log'),
      '    if (s->durable) durable_begins(s);\n    backup_commit',
      '    backup_commit',
    ],
  ]),
  ...inFile('native/dataplane/backup.c', [
    [
      'durable: a backup does not begin a new epoch in the log',
      shards('a_backup_gives_no_lease_before_the_epoch_is_in_its_log'),
      'if (b->shard->durable && b->place.epoch != before) durable_begins(b->shard);',
      '(void)before;',
    ],
  ]),
  ...inFile('native/dataplane/life.c', [
    [
      'durable: a shard that is no copy does not begin its epoch in the log',
      lives('a_shard_that_is_no_copy_begins_its_epoch_in_the_log_when_it_is_served'),
      '    if (s->durable) durable_begins(s);\n',
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
      'durable: a copy gives leases when its log has failed',
      shards('a_copy_whose_log_failed_gives_no_lease'),
      '->epoch = 0;\n    if (c->on_log_failed)',
      ';\n    if (c->on_log_failed)',
    ],
  ]),
  ...inFile('native/dataplane/replica_owner.c', [
    [
      'early answers: an owner that is left alone does not wait for its disk',
      several('an_owner_that_is_left_alone_waits_for_its_disk'),
      '(o->in_sync > 1 || o->alone);',
      '(o->in_sync > 0 || o->alone);',
    ],
    [
      'early answers: an owner answers early while it has a copy taken away',
      several('an_owner_relies_on_its_disk_until_its_config_is_another_one'),
      'return !replica_relies_on_disk(o) && (',
      'return (',
    ],
    [
      'early answers: what an owner relies on outlives its config',
      several('what_an_owner_is_asked_to_rely_on_ends_with_its_config'),
      'return o->disk_in == o->config;',
      'return o->disk_in > 0;',
    ],
    [
      'early answers: a copy is taken away before the disk of its owner has all',
      several('an_owner_relies_on_its_disk_until_its_config_is_another_one'),
      'return replica_on_disk(&o->log, o->epoch) >= o->committed;',
      'return o->log.kept <= 1;',
    ],
  ]),
  ...inFile('native/dataplane/replica.h', [
    [
      'early answers: what was buffered in an earlier epoch counts in the next',
      rules('what_is_buffered_counts_in_its_own_epoch_only'),
      '    if (l->epoch != epoch) l->buffered = 0;',
      '   ',
    ],
  ]),
  ...inFile('native/dataplane/run.c', [
    [
      'early answers: a change is answered when its owner has no right any more',
      several('a_change_is_not_answered_early_when_its_owner_has_no_right_any_more'),
      '    if (is_too_late(o, s)) s = FKV_UNDECIDED;\n',
      '    (void)is_too_late;\n',
    ],
  ]),
  ...inFile('native/dataplane/orphan.c', [
    [
      'early answers: a copy whose owner is gone does not sync at once',
      several('a_backup_without_an_owner_has_all_on_its_disk_at_once'),
      '    if (gone && b->shard->durable) durable_hurry(b->shard->w);',
      '   ',
    ],
  ]),
  ...inFile('native/dataplane/replicate.c', [
    [
      'early answers: what was answered with a copy that goes stays in the buffer',
      several('an_owner_that_is_left_alone_waits_for_its_disk'),
      '    if (s->durable) durable_counts_anew(s);\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/durable.c', [
    [
      'early answers: the buffer never goes by itself',
      early('the_disk_has_what_was_answered_after_the_time'),
      'if (g->urgent || now - g->gathers_ns >= sync_ns) wal_flush',
      'if (g->urgent) wal_flush',
    ],
    [
      'early answers: what others wait for does not go at once',
      several('an_owner_that_is_left_alone_waits_for_its_disk'),
      '    if (!answers_early(s)) g->urgent = true;\n',
      '',
    ],
    [
      'early answers: a snapshot is ahead of the log',
      early('a_snapshot_waits_until_the_log_has_what_it_names'),
      'replica_on_disk(log_of(s), durable_epoch(s)) >= lsn;',
      'lsn > 0;',
    ],
    [
      'early answers: a snapshot of a backup is ahead of its log',
      several('a_snapshot_of_a_backup_waits_until_its_log_has_what_it_names'),
      'c.log.sync_ns == 0 || replica_on_disk',
      'c.log.sync_ns == 0 || follows(s) || replica_on_disk',
    ],
    [
      'early answers: the beginning of an epoch waits as long as changes may',
      early('the_beginning_of_an_epoch_goes_to_the_disk_at_once'),
      'sync_ns > 0 && durable_has_begun(s) && (follows(s)',
      'sync_ns > 0 && (follows(s)',
    ],
    [
      'early answers: a snapshot begins only where no change is answered',
      early('a_snapshot_begins_in_a_turn_that_answers_changes'),
      `    snapshots_step(&g->snapshots);\n${TURN}`,
      `${TURN}    snapshots_step(&g->snapshots);\n`,
    ],
  ]),
  ...inFile('native/dataplane/loop.c', [
    [
      'early answers: a server that ends loses the last of them',
      early('a_server_that_ends_loses_nothing'),
      '    durable_sync_all(w);\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/calls.c', [
    [
      'durable: a durable shard is opened without a log',
      shards('a_durable_shard_is_refused_where_there_is_no_log'),
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
