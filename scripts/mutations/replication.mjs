/** What must not be missing from the rules of replication, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const lost = (when) => by('replica_model')(`nothing_is_lost_when_${when}`);
const rules = by('replica');
const changes = by('dataplane_replicate');
const dedup = by('dedup');
const deposed = by('dataplane_deposed');

export const mutations = [
  ...inFile('native/dataplane/replica_owner.c', [
    [
      'replication: a copy that joins goes on after an epoch that it has missed',
      rules('who_joins_goes_on_from_the_epoch_before_and_no_earlier_one'),
      'is_required(&o->peer[i]) || epoch + 1 >= o->epoch',
      'true',
    ],
    [
      'replication: a copy is required that does not follow',
      rules('an_addition_that_the_metadata_refused_is_asked_for_again'),
      ' || !p->follows) return false;\n    p->standing = REPLICA_REQUIRED;',
      ') return false;\n    p->standing = REPLICA_REQUIRED;',
    ],
    [
      'replication: a new owner knows no copy that joins',
      deposed('a_deposed_owner_keeps_what_it_has_prepared_and_goes_on_with_the_next_owner'),
      'for (uint32_t i = 0; i < c->joining; i++) replica_join(o, c->joining_id[i]);',
      '',
    ],
    [
      'replication: a copy whose addition was asked for is not waited for',
      lost('a_copy_is_added_and_its_owner_dies'),
      'return p->standing >= REPLICA_REQUIRED;',
      'return p->standing == REPLICA_IN_SYNC;',
    ],
    [
      'replication: an addition that was refused is never asked for again',
      rules('an_addition_that_the_metadata_refused_is_asked_for_again'),
      'p->standing = REPLICA_JOINS;\n    }',
      'p->standing = REPLICA_PROPOSED;\n    }',
    ],
    [
      'replication: records that are not committed are without bound',
      rules('a_window_that_is_full_takes_no_records_until_some_are_committed'),
      ' && o->last - o->committed < REPLICA_WINDOW;',
      ';',
    ],
    [
      'replication: a new owner commits what came with the shard at once',
      lost('an_owner_of_three_copies_dies'),
      '.committed = own->committed,\n                          .inherited',
      '.committed = own->prepared,\n                          .inherited',
    ],
    [
      'replication: a new owner serves before its suffix has taken effect',
      rules('a_new_owner_serves_when_every_copy_in_sync_has_acknowledged_in_its_epoch'),
      'followed && o->committed >= o->inherited && now_ns',
      'followed && now_ns',
    ],
    [
      'replication: a new owner draws records before every copy in sync follows it',
      lost('owners_of_four_copies_reach_some_of_them'),
      'followed &= !is_required(&o->peer[i]) || o->peer[i].follows;',
      'followed |= i > REPLICA_PEERS;',
    ],
    [
      'replication: a new owner serves while the one before may be relied on',
      lost('a_client_reads_of_an_owner_that_is_suspected'),
      ' && now_ns >= own->granted_until_ns;',
      ' && (now_ns | 1);',
    ],
    [
      'replication: an acknowledgement of another epoch counts',
      rules('an_acknowledgement_counts_of_this_epoch_and_of_records_that_there_are'),
      'if (!p || a->epoch != o->epoch || a->prepared > o->last) return false;',
      'if (!p || a->prepared > o->last) return false;',
    ],
    [
      'replication: a record takes effect with too few copies',
      lost('each_record_needs_two_copies'),
      'uint64_t to = replica_enough(o) ? o->last : min_of(o->last, o->inherited);',
      'uint64_t to = o->last;',
    ],
    [
      'replication: an owner grants beyond its backups',
      lost('a_client_reads_of_an_owner_that_is_suspected'),
      'if (is_required(&o->peer[i])) until = min_of(until, o->peer[i].lease_ns);',
      '',
    ],
    [
      'replication: a copy that lacks committed records is added',
      lost('a_copy_is_added_and_its_owner_dies'),
      'if (p->prepared < o->committed || now_ns < p->settled_ns) return false;',
      'if (now_ns < p->settled_ns) return false;',
    ],
    [
      "replication: a copy is added while clients' leases of before run",
      lost('a_client_reads_while_a_copy_is_added'),
      'if (p->prepared < o->committed || now_ns < p->settled_ns) return false;',
      'if (p->prepared < o->committed) return false;',
    ],
  ]),
  ...inFile('native/dataplane/replica_backup.c', [
    [
      'replication: a backup follows an owner of the past',
      rules('a_backup_drops_what_its_new_owner_has_not'),
      'bool replica_follow(replica_backup *b, uint32_t epoch, uint64_t last) {\n    if (epoch < b->epoch) return false;',
      'bool replica_follow(replica_backup *b, uint32_t epoch, uint64_t last) {',
    ],
    [
      'replication: a backup keeps what its new owner has not',
      rules('a_backup_drops_what_its_new_owner_has_not'),
      'b->prepared = min_of(b->prepared, last);',
      '(void)last;',
    ],
    [
      'replication: a copy becomes that of an owner of the past',
      lost('a_third_copy_is_added_by_one_owner_and_by_the_next'),
      'bool replica_copied(replica_backup *b, uint32_t epoch, uint64_t lsn) {\n    if (epoch < b->epoch) return false;',
      'bool replica_copied(replica_backup *b, uint32_t epoch, uint64_t lsn) {',
    ],
    [
      'replication: a backup takes records of an owner of the past',
      lost('an_owner_of_three_copies_dies'),
      'if (epoch < b->epoch) return REPLICA_STALE;\n    return epoch == b->epoch && lsn',
      'return lsn',
    ],
    [
      'replication: a backup commits what it has not prepared',
      lost('a_copy_is_added_and_its_owner_dies'),
      'uint64_t has = min_of(b->prepared, replica_counts(&b->log, epoch));',
      'uint64_t has = replica_counts(&b->log, epoch);',
    ],
    [
      "replication: an owner does not count the drift of its backups' leases",
      rules('a_lease_ends_for_its_owner_before_it_ends_for_the_backup'),
      'return asked_ns + (lease_ns > drift ? lease_ns - drift : 0);',
      'return asked_ns + lease_ns + 0 * drift;',
    ],
    [
      'replication: a backup forgets the lease that it grants',
      lost('a_client_reads_of_an_owner_that_is_suspected'),
      'b->granted_until_ns = max_of(b->granted_until_ns, until_ns);',
      '(void)until_ns;',
    ],
  ]),
  ...inFile('native/wire/record.c', [
    [
      'replication: a record whose retries nobody could recognise is taken',
      by('record')('a_record_that_breaks_one_rule_is_refused'),
      'r->client == 0 || ',
      '',
    ],
    [
      'replication: bytes that changed on their way are taken',
      by('record')('records_come_as_they_were_put'),
      'return body_crc(r, key, value) == r->body_crc;',
      'return body_crc(r, key, value) != 0;',
    ],
  ]),
  ...inFile('native/dataplane/op.c', [
    [
      'replication: a change takes effect before its backups have it',
      changes('a_change_is_neither_seen_nor_answered_before_the_backup_has_it'),
      '    if (s->backups) {',
      '    if (false) {',
    ],
    [
      'replication: what waits for backups keeps its message',
      changes('what_waits_for_a_backup_does_not_stop_its_client'),
      '    o->body = NULL;\n    give_message_back(o);',
      '    o->body = NULL;',
    ],
  ]),
  ...inFile('native/dataplane/replicate.c', [
    [
      'replication: all that waits takes effect with the first acknowledgement',
      changes('changes_take_effect_in_the_order_of_their_records'),
      '        if (o->lsn > committed) break;',
      '',
    ],
    [
      'replication: a client is told that what a backup has had no effect',
      changes('what_a_backup_may_have_is_undecided_when_the_shard_is_closed'),
      'op_ends(o, FKV_UNDECIDED);',
      'op_ends(o, FKV_SHARD_CLOSED);',
    ],
    [
      'replication: a change is prepared though the window is full',
      changes('a_change_waits_while_the_window_is_full'),
      '    if (replica_enough(r) && !replica_admits(r)) return FKV_BUSY;',
      '',
    ],
  ]),
  ...inFile('native/dataplane/run.c', [
    [
      'replication: what backups have is undone when it comes late',
      changes('an_owner_answers_and_grants_no_longer_than_its_backup_lets_it'),
      'if (late && !o->replicated)',
      'if (late || fkv_now_ns() >= shard_right(w, o->shard))',
    ],
  ]),
  ...inFile('native/dataplane/shard.c', [
    [
      'replication: an owner answers though its backups do not let it',
      changes('an_owner_answers_and_grants_no_longer_than_its_backup_lets_it'),
      'return s->backups ? replica_right(&s->replica, own_right(w)) : own_right(w);',
      'return own_right(w);',
    ],
  ]),
  ...inFile('native/dataplane/lease.c', [
    [
      'replication: a grant for several shards is as long as that of the first',
      changes('an_owner_answers_and_grants_no_longer_than_its_backup_lets_it'),
      'if (n > 0 && !is_about(own, granted)) break;\n        granted = min_u64(granted, own);',
      '',
    ],
  ]),
  ...inFile('native/client/session/reply.c', [
    [
      'replication: an undecided change goes out again as another',
      by('session')('an_undecided_change_keeps_its_sequence_and_says_that_it_was_sent_before'),
      ' && reply->status != FKV_UNDECIDED;',
      ';',
    ],
  ]),
  ...inFile('native/dataplane/dedup.c', [
    [
      'replication: a change that another owner made is not remembered',
      lost('an_owner_dies'),
      '        *e = (entry){ tag_of(sequence, (uint8_t)r->status), r->version, r->value };',
      '        (void)r;',
    ],
    [
      'replication: changes before a copy joined are not known to be forgotten',
      lost('a_copy_is_added_and_its_owner_dies'),
      'if (sequence > c->windows[slot]->forgotten) c->windows[slot]->forgotten = sequence;',
      '(void)sequence;',
    ],
    [
      'replication: a change that there was no room to remember may be made again',
      dedup('what_another_owner_made_is_answered_and_without_room_it_is_in_doubt'),
      '    d->doubt_until_ns = now_ns + IDLE_NS;\n    return NULL;',
      '    return NULL;',
    ],
  ]),
  ...inFile('native/dataplane/handover.c', [
    [
      'replication: a deposed owner is a copy while clients have leases',
      deposed('an_owner_is_a_copy_when_no_lease_is_left'),
      's->replica.last - s->replica.committed && s->w->now_ns >= s->lease_until_ns;',
      's->replica.last - s->replica.committed;',
    ],
    [
      'replication: a deposed owner waits for copies to have large values',
      deposed('a_large_value_that_copies_do_not_have_is_no_change_of_a_deposed_owner'),
      'bulks_end(s, FKV_SHARD_CLOSED);\n',
      '\n',
    ],
  ]),
  ...inFile('native/dataplane/feed.c', [
    [
      'replication: a link does not ask in which epoch a copy has followed',
      deposed('a_deposed_owner_does_not_go_on_with_the_owner_after_the_next'),
      'if (!replica_goes_on(o, m->id, m->epoch)) return false;',
      'if (m->epoch > o->epoch) return false;',
    ],
  ]),
  ...inFile('native/dataplane/replicate.c', [
    [
      'replication: a deposed owner tells clients that what has a record had no effect',
      deposed('a_deposed_owner_keeps_what_it_has_prepared_and_goes_on_with_the_next_owner'),
      'backup_keeps(s->copy, o->lsn, &r, &o->prepared);\n        run_let_go(o);',
      'backup_keeps(s->copy, o->lsn, &r, &o->prepared);\n        op_ends(o, FKV_SHARD_CLOSED);',
    ],
  ]),
];
