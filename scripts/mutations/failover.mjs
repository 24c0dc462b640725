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
];
