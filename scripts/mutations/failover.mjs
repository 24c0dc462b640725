/** The rules of replication once more, each taken out of the data planes whole: in simulated time, with links, clients and
 * luck, lives of a shard show it (native/test/dataplane/failover.h). */
import { by, inFile } from './checks/in-file.mjs';

const handover = by('dataplane_handover');
const lost = by('failover_seeds')('nothing_that_was_answered_or_read_is_lost');

export const mutations = [
  ...inFile('native/dataplane/handover.c', [
    [
      'failover: an owner hands over while clients may rely on it',
      handover('it_is_told_when_every_lease_is_over_and_the_heir_has_all'),
      'if (!has_all(s, heir) || s->w->now_ns < s->lease_until_ns) return;',
      'if (!has_all(s, heir)) return;',
    ],
    [
      'failover: an owner hands over what the heir may lack',
      handover('it_is_not_told_while_the_heir_lacks_a_change'),
      'return s->held == 0 && o->committed == o->last && heir->prepared == o->last;',
      'return heir->prepared <= o->last;',
    ],
  ]),
  ...inFile('native/dataplane/replica_owner.c', [
    [
      'failover: a copy whose addition was asked for is not waited for',
      lost,
      'return p->standing >= REPLICA_REQUIRED;',
      'return p->standing == REPLICA_IN_SYNC;',
    ],
    [
      'failover: a new owner commits what came with the shard at once',
      lost,
      '.committed = own->committed,\n                          .inherited',
      '.committed = own->prepared,\n                          .inherited',
    ],
    [
      'failover: a new owner serves while the one before may be relied on',
      lost,
      ' && now_ns >= own->granted_until_ns;',
      ' && (now_ns | 1);',
    ],
    [
      'failover: an owner grants beyond its backups',
      lost,
      'if (is_required(&o->peer[i])) until = min_of(until, o->peer[i].lease_ns);',
      '',
    ],
    [
      'failover: a removed copy is waited for for ever',
      lost,
      'else if (p->standing == REPLICA_IN_SYNC) *p = (replica_peer){ 0 };',
      'else if (p->standing == REPLICA_IN_SYNC) (void)p;',
    ],
  ]),
  ...inFile('native/dataplane/replica_backup.c', [
    [
      'failover: a backup keeps what its new owner has not',
      lost,
      'b->prepared = min_of(b->prepared, last);',
      '(void)last;',
    ],
    [
      'failover: a backup forgets the lease that it grants',
      lost,
      'b->granted_until_ns = max_of(b->granted_until_ns, until_ns);',
      '(void)until_ns;',
    ],
  ]),
  ...inFile('native/dataplane/replica_owner.c', [
    [
      'failover: the acknowledgement of one backup is enough',
      lost,
      'if (is_required(&o->peer[i])) to = min_of(to, o->peer[i].prepared);',
      'if (is_required(&o->peer[i])) to = min_of(o->last, o->peer[i].prepared);',
    ],
  ]),
  ...inFile('native/dataplane/op.c', [
    ['failover: a change takes effect before its backups have it', lost, '    if (s->backups) {', '    if (false) {'],
  ]),
  ...inFile('native/dataplane/replicate.c', [
    [
      'failover: a client is told that what a backup has had no effect',
      lost,
      'op_ends(o, FKV_UNDECIDED);',
      'op_ends(o, FKV_SHARD_CLOSED);',
    ],
    [
      'failover: what a new owner inherited never takes effect',
      lost,
      '    if (s->copy) commit_inherited(s, committed);',
      '    (void)commit_inherited;',
    ],
    [
      'failover: a new owner gives versions of the one before',
      lost,
      '    if (c->epoch != s->epoch) table_set_epoch(s->table, c->epoch);',
      '',
    ],
  ]),
  ...inFile('native/dataplane/run.c', [
    [
      'failover: what backups have is undone when it comes late',
      lost,
      'if (late && !o->replicated)',
      'if (late || fkv_now_ns() >= shard_right(w, o->shard))',
    ],
  ]),
  ...inFile('native/dataplane/shard.c', [
    [
      'failover: an owner answers though its backups do not let it',
      lost,
      'return s->backups ? replica_right(&s->replica, own_right(w)) : own_right(w);',
      'return own_right(w);',
    ],
  ]),
  ...inFile('native/dataplane/suffix.c', [
    [
      'failover: a record does not say whose change it is',
      lost,
      'r.client = dedup_client_id(o->memory);',
      'r.client = 1;',
    ],
  ]),
  ...inFile('native/dataplane/feed.c', [
    [
      'failover: an owner takes it that a copy has what it drops',
      lost,
      '*prepared = m->epoch < o->epoch ? min_u64(m->prepared, o->inherited) : m->prepared;',
      '*prepared = m->prepared;',
    ],
    [
      'failover: what was lost with a connection is not sent again',
      lost,
      '.sent = prepared,',
      '.sent = s->replica.last,',
    ],
  ]),
  ...inFile('native/dataplane/backup.c', [
    [
      'failover: a copy keeps prepared what its new owner has not',
      lost,
      '    for (; prepared > b->place.prepared; prepared--) drop(b, prepared);',
      '    (void)prepared, (void)drop;',
    ],
    [
      'failover: a copy does not remember whose changes it commits',
      lost,
      '    dedup_note(&w->dedup, r->client, s->slot, r->sequence, &result, w->now_ns);',
      '    (void)result;',
    ],
  ]),
  ...inFile('native/dataplane/life.c', [
    [
      'failover: a new owner is served before it may be',
      lost,
      'if (status == FKV_OK && !may_serve(s)) {',
      'if (status == FKV_UNDECIDED && !may_serve(s)) {',
    ],
  ]),
  ...inFile('native/dataplane/uplink.c', [
    [
      'failover: a record that waits for memory is passed over',
      lost,
      '    return r != BACKUP_WAITS;',
      '    return true;',
    ],
    [
      'failover: a link that was cut is not made again',
      lost,
      '            if (u->state != RESTS) rest(u, AGAIN_MS);',
      '            if (u->state != RESTS) rest(u, 1u << 30);',
    ],
  ]),
  ...inFile('native/dataplane/dedup.c', [
    [
      'failover: a change that another owner made is not remembered',
      lost,
      '        *e = (entry){ tag_of(sequence, (uint8_t)r->status), r->version, r->value };',
      '        (void)r;',
    ],
  ]),
  ...inFile('native/client/session/reply.c', [
    ['failover: an undecided change goes out again as another', lost, ' && reply->status != FKV_UNDECIDED;', ';'],
  ]),
];
