/** What must not be missing where copies of shards join, are required and lead, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const join = by('dataplane_join');
const ends = by('dataplane_join_ends');

export const mutations = [
  ...inFile('native/client/copy_page.c', [
    [
      'joins: the records come before the last page is in the table',
      join('what_is_deleted_while_the_last_page_is_taken_over_does_not_come_back'),
      '    if (s == FKV_OK) s = hand_over(c);\n    if (s != FKV_OK) settle',
      '    if (s == FKV_OK && !c->join.said) s = hand_over(c);\n    if (s != FKV_OK) settle',
    ],
  ]),
  ...inFile('native/dataplane/run.c', [
    [
      'joins: a copy joins behind changes that are not in the table yet',
      join('a_copy_joins_behind_what_is_in_the_table'),
      '    if (o->request.flags & FKV_REQUEST_SCAN_FROM_HERE) commit_ready(o->worker);',
      '',
    ],
  ]),
  ...inFile('native/dataplane/feed.c', [
    [
      'joins: what is committed before a copy has made its link is not kept for it',
      join('what_is_deleted_while_the_last_page_is_taken_over_does_not_come_back'),
      'bool kept = s->backlog && f',
      'bool kept = !s->backlog && f',
    ],
  ]),
  ...inFile('native/dataplane/dedup.c', [
    [
      'joins: the first change of a client that is seen vouches for those before it',
      join('what_an_owner_does_not_know_its_copy_does_not_know_either'),
      '    if (w && in_doubt(d, slot, now_ns)) w->forgotten = sequence - 1;',
      '    (void)sequence;',
    ],
  ]),
  ...inFile('native/dataplane/replica_owner.c', [
    [
      'joins: a copy that the metadata was asked for is let go of',
      join('a_copy_that_stands_still_is_late_and_is_back'),
      '    if (p && p->standing > REPLICA_REQUIRED) return false;',
      '',
    ],
  ]),
  ...inFile('native/wire/wire.c', [
    [
      'joins: a listed value is taken over that was damaged on its way',
      by('wire')('a_checked_value_is_whole_or_is_not_taken'),
      'return crc == crc_of(e, key, value);',
      'return crc || e;',
    ],
  ]),
  ...inFile('native/dataplane/read.c', [
    [
      'joins: what is damaged at its owner is whole in a copy of it, and in an answer',
      ends('what_is_damaged_at_its_owner_comes_to_no_copy_and_no_client'),
      '    if (s == FKV_OK && !table_is_whole(&e)) s = FKV_CORRUPT;\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/copies.c', [
    [
      'joins: an addition is asked for while clients rely on leases of before',
      join('a_copy_is_proposed_when_clients_leases_of_before_are_over'),
      'replica_require(&s->replica, id, s->lease_until_ns)',
      'replica_require(&s->replica, id, 0)',
    ],
    [
      'joins: copies that the owner does not know are in sync',
      ends('calls_that_do_not_fit_are_refused'),
      'if (replica_place(&s->replica, k->id[i]) < 0) status = FKV_BAD_REQUEST;',
      'if (replica_place(&s->replica, k->id[i]) < -1) status = FKV_BAD_REQUEST;',
    ],
  ]),
  ...inFile('native/dataplane/import.c', [
    [
      'joins: entries are taken over into a copy that follows',
      ends('calls_that_do_not_fit_are_refused'),
      'if (!s || s->state != SHARD_OPEN || s->copy || s->starting || s->basing) {',
      'if (!s || s->state != SHARD_OPEN || s->starting) {',
    ],
  ]),
  ...inFile('native/dataplane/life.c', [
    [
      'joins: a copy that leads is served while its earlier owner may be relied on',
      ends('a_shard_is_closed_in_each_state_of_its_copy'),
      '    if (status == FKV_OK && !may_serve(s)) {',
      '    if (status == FKV_CORRUPT) {',
    ],
  ]),
];
