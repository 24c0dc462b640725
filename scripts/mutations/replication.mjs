/** The rules of replication (docs/replication-model.md) and of handing a shard over, each with the C test that notices. */
import { always, drop, instead, never, unwrap, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const lost = (when) => by('replica_model')(`nothing_is_lost_when_${when}`);
const rules = by('replica');
const changes = by('dataplane_replicate');
const deposed = by('dataplane_deposed');
const handover = by('dataplane_handover');

export const mutations = rows('replication', {
  'inherited-committed': [instead('own->committed', 'own->prepared'), lost('an_owner_of_three_copies_dies')],
  'served-before-inherited': [
    without('inherited'),
    rules('a_new_owner_serves_when_every_copy_in_sync_has_acknowledged_in_its_epoch'),
  ],
  'drawn-before-followed': [always('o->peer[i].follows'), lost('owners_of_four_copies_reach_some_of_them')],
  'served-while-relied-on': [without('granted_until_ns'), lost('a_client_reads_of_an_owner_that_is_suspected')],
  'acknowledged-in-another-epoch': [
    without('a->epoch'),
    rules('an_acknowledgement_counts_of_this_epoch_and_of_records_that_there_are'),
  ],
  'too-few-copies': [always(), lost('each_record_needs_two_copies')],
  'grants-beyond-backups': [drop(), lost('a_client_reads_of_an_owner_that_is_suspected')],
  'lacking-copy-added': [without('p->prepared'), lost('a_copy_is_added_and_its_owner_dies')],
  'added-under-old-leases': [without('settled_ns'), lost('a_client_reads_while_a_copy_is_added')],
  'follows-the-past': [drop(), rules('a_backup_drops_what_its_new_owner_has_not')],
  'keeps-what-owner-lacks': [drop(), rules('a_backup_drops_what_its_new_owner_has_not')],
  'commits-unprepared': [unwrap('min_of', 1), lost('a_copy_is_added_and_its_owner_dies')],
  drift: [instead('lease_ns - drift', 'lease_ns'), rules('a_lease_ends_for_its_owner_before_it_ends_for_the_backup')],
  'grant-forgotten': [drop(), lost('a_client_reads_of_an_owner_that_is_suspected')],
  'effect-before-backups': [never(), changes('a_change_is_neither_seen_nor_answered_before_the_backup_has_it')],
  'no-effect-claimed': [
    instead('FKV_UNDECIDED', 'FKV_SHARD_CLOSED'),
    changes('what_a_backup_may_have_is_undecided_when_the_shard_is_closed'),
  ],
  'answers-without-backups': [never(), changes('an_owner_answers_and_grants_no_longer_than_its_backup_lets_it')],
  'deposed-under-leases': [without('lease_until_ns'), deposed('an_owner_is_a_copy_when_no_lease_is_left')],
  'handed-over-under-leases': [
    without('lease_until_ns'),
    handover('it_is_told_when_every_lease_is_over_and_the_heir_has_all'),
  ],
  'handed-over-to-lacking': [always(), handover('it_is_not_told_while_the_heir_lacks_a_change')],
  'dropped-unnoted': [
    drop(),
    by('dedup')('what_another_owner_made_out_of_order_is_not_made_again_where_there_is_no_room_for_it'),
  ],
  'late-undone': [
    instead('late && !o->replicated', 'late || fkv_now_ns() >= shard_right(w, o->shard)'),
    by('failover_seeds')('nothing_that_was_answered_or_read_is_lost'),
  ],
});
