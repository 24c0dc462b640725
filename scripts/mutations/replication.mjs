/** What must not be missing from the rules of replication, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const lost = (when) => by('replica_model')(`nothing_is_lost_when_${when}`);
const rules = by('replica');
const changes = by('dataplane_replicate');
const deposed = by('dataplane_deposed');

export const mutations = [
  ...inFile('native/dataplane/replica_owner.c', [
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
  ...inFile('native/dataplane/op.c', [
    [
      'replication: a change takes effect before its backups have it',
      changes('a_change_is_neither_seen_nor_answered_before_the_backup_has_it'),
      '    if (s->backups) {',
      '    if (false) {',
    ],
  ]),
  ...inFile('native/dataplane/replicate.c', [
    [
      'replication: a client is told that what a backup has had no effect',
      changes('what_a_backup_may_have_is_undecided_when_the_shard_is_closed'),
      'op_ends(o, FKV_UNDECIDED);',
      'op_ends(o, FKV_SHARD_CLOSED);',
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
  ...inFile('native/dataplane/handover.c', [
    [
      'replication: a deposed owner is a copy while clients have leases',
      deposed('an_owner_is_a_copy_when_no_lease_is_left'),
      's->replica.last - s->replica.committed && s->w->now_ns >= s->lease_until_ns;',
      's->replica.last - s->replica.committed;',
    ],
  ]),
];
