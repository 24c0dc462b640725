/** What must not be missing where copies of shards join, are required and lead, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const join = by('dataplane_join');
const away = by('dataplane_away');
const lease = by('dataplane_lease');
const ends = by('dataplane_join_ends');

export const mutations = [
  ...inFile('native/dataplane/shard.c', [
    [
      'joins: a new shard is copied only once it is served',
      join('a_new_shard_is_copied_before_it_is_served'),
      'return s && shard_is_new(s) ? status_of(w->now_ns < own_right(w)) : shard_status(w, s);',
      'return shard_status(w, s);',
    ],
  ]),
  ...inFile('native/dataplane/shard.h', [
    [
      'joins: a copy that leads is copied before it serves',
      join('a_copy_that_leads_is_not_copied_before_it_serves'),
      'return s->state == SHARD_OPEN && !s->copy;',
      'return s->state == SHARD_OPEN;',
    ],
  ]),
  ...inFile('native/dataplane/request.c', [
    [
      'joins: clients are answered by a new shard that is not served',
      join('a_new_shard_is_copied_before_it_is_served'),
      'r->flags & FKV_REQUEST_SCAN_COPY ? shard_copy_status(w, o->shard) : shard_status(w, o->shard)',
      'shard_copy_status(w, o->shard)',
    ],
  ]),
  ...inFile('native/client/copy_page.c', [
    [
      'joins: the records come before the last page is in the table',
      join('what_is_deleted_while_the_last_page_is_taken_over_does_not_come_back'),
      '    if (s == FKV_OK) s = hand_over(c);\n    if (s != FKV_OK) settle',
      '    if (s == FKV_OK && !c->join.said) s = hand_over(c);\n    if (s != FKV_OK) settle',
    ],
  ]),
  ...inFile('native/dataplane/copies.c', [
    [
      'joins: an owner is not told that a copy asks in vain',
      away('a_copy_that_was_away_for_too_long_is_forgotten'),
      'if (!s->copy || s->copy->leads) tell(s, id, DATAPLANE_COPY_REFUSED);',
      '(void)s, (void)id;',
    ],
    [
      'joins: leases are short for a copy that is not there',
      lease('leases_are_short_only_while_a_copy_that_joins_is_connected'),
      'peer->standing == REPLICA_JOINS && !p->unlinked_ns;',
      'peer->standing == REPLICA_JOINS;',
    ],
    [
      'joins: leases are long when a copy was lost',
      lease('leases_are_short_when_a_copy_was_lost_until_one_is_in_sync'),
      '!is_in_sync && is_lost(&s->place[i])) s->lost_until_ns = s->w->now_ns + LOST_NS;',
      '!is_in_sync && is_lost(&s->place[i])) s->lost_until_ns = 0;',
    ],
    [
      'joins: leases are short though no copy is missing any more',
      lease('leases_are_short_when_a_copy_was_lost_until_one_is_in_sync'),
      'if (is_in_sync && !was_in_sync) s->lost_until_ns = 0;',
      '(void)is_in_sync;',
    ],
    [
      'joins: leases stay short when a lost copy does not come back',
      lease('leases_are_long_again_when_a_lost_copy_does_not_come_back'),
      'return now < s->lost_until_ns ||',
      'return s->lost_until_ns ||',
    ],
    [
      'joins: leases are long while a server copies the shard',
      lease('leases_are_short_while_a_server_copies_the_shard'),
      ' || (s->log.ring && now < s->log.asked_ns + COPYING_NS);',
      ';',
    ],
    [
      'joins: leases stay short when a server copies the shard no more',
      lease('leases_are_short_while_a_server_copies_the_shard'),
      's->log.ring && now < s->log.asked_ns + COPYING_NS',
      's->log.ring',
    ],
    [
      'joins: a new owner grants long leases at once',
      away('a_new_owner_grants_short_leases_since_the_one_before_may_come_back'),
      '    s->lost_until_ns = s->w->now_ns + LOST_NS;\n    for',
      '    for',
    ],
    [
      'joins: nobody is told that a copy has lost its connection',
      ends('a_copy_that_loses_its_connection_is_told_of'),
      'tell(s, id, DATAPLANE_COPY_UNLINKED);',
      '',
    ],
    [
      'joins: that a copy has lost its connection is told once',
      ends('a_copy_that_loses_its_connection_is_told_of'),
      '} else if (now >= next_unlinked(p)) {',
      '} else if (!p->told_ns && now >= next_unlinked(p)) {',
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
    [
      'joins: a copy whose link is gone is not missed',
      ends('a_copy_that_loses_its_connection_is_told_of'),
      '    if (i >= 0) f->shard->place[i].unlinked_ns = f->shard->w->now_ns;',
      '    (void)i;',
    ],
  ]),
  ...inFile('native/dataplane/role.c', [
    [
      'joins: a copy is not told which sequences clients have used',
      join('a_retry_of_what_was_made_before_a_copy_joined_is_no_second_write'),
      '        dedup_forget(&w->dedup, k->sequence[i].client, s->slot, k->sequence[i].sequence, w->now_ns);',
      '        (void)dedup_forget;',
    ],
    [
      'joins: a copy is not told that its owner knows no earlier sequences',
      join('what_an_owner_does_not_know_its_copy_does_not_know_either'),
      '    if (at->doubt_ms) dedup_doubt',
      '    if (at->doubt_ms == 1) dedup_doubt',
    ],
    [
      'joins: a copy leads in an epoch of the past',
      ends('calls_that_do_not_fit_are_refused'),
      'k->config.epoch <= s->copy->place.epoch',
      'k->config.epoch == UINT32_MAX',
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
  ...inFile('native/dataplane/replicate.c', [
    [
      'joins: changes wait for copies that there are not',
      join('changes_without_enough_copies_are_refused_and_have_no_effect'),
      '    if (!replica_enough(&s->replica)) return FKV_TOO_FEW_COPIES;',
      '',
    ],
  ]),
  ...inFile('native/dataplane/replica_owner.c', [
    [
      'joins: a copy that the metadata was asked for is let go of',
      join('a_copy_that_stands_still_is_late_and_is_back'),
      '    if (p && p->standing > REPLICA_REQUIRED) return false;',
      '',
    ],
    [
      'joins: an eligible copy is let go of',
      away('a_copy_that_is_eligible_comes_back_with_what_it_has'),
      'else if (p->standing == REPLICA_IN_SYNC && may_rejoin(c, p->id) && p->prepared >= o->committed)',
      'else if (p->standing == REPLICA_NONE && may_rejoin(c, p->id) && p->prepared >= o->committed)',
    ],
    [
      'joins: a copy that was away is let go of',
      away('a_copy_that_was_away_comes_back_with_what_it_has'),
      'if (c->joining_id[i] == id) return true;',
      '',
    ],
  ]),
  ...inFile('native/dataplane/lease.c', [
    [
      'joins: leases are long while a copy joins',
      join('a_copy_is_proposed_when_clients_leases_of_before_are_over'),
      's->expects ? min_u64(longest, JOIN_LEASE_NS) : longest',
      'longest',
    ],
    [
      'joins: one shard that a copy joins cuts the grants of the others',
      lease('shards_that_copies_join_take_one_grant_and_the_others_another'),
      'if (s && s->expects != first) continue;',
      'if (first) continue;',
    ],
  ]),
  ...inFile('native/dataplane/uplink.c', [
    [
      'joins: a copy is not told that its owner does not know it',
      away('a_copy_that_was_away_for_too_long_is_forgotten'),
      'backup_tell(b, DATAPLANE_COPY_UNKNOWN);',
      '',
    ],
  ]),
  ...inFile('native/dataplane/replicate.c', [
    [
      'joins: what a new owner commits of the past is not kept for copies that join',
      away('a_copy_that_is_away_when_its_shard_comes_to_another_owner_lacks_what_that_commits'),
      'if (!s->backlog) continue;',
      'if (lsn > 0) continue;',
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
  ...inFile('native/table/change.c', [
    [
      'joins: a value that is damaged at its owner is listed with a good checksum',
      by('table_scrub')('one_flipped_bit_is_found'),
      'e->value_bytes) == table_checksum(e);',
      'e->value_bytes) != 1;',
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
  ...inFile('native/dataplane/backlog.c', [
    [
      'joins: what copies may lack takes any amount of memory',
      away('a_copy_that_lacks_what_was_not_kept_is_unknown'),
      'return taken < most ? BACKLOG_PART * (most - taken) : 0;',
      'return taken < most ? BACKLOG_PART * (most - taken) : most - 1;',
    ],
    [
      'joins: what copies of one shard may lack takes all the memory that there is for others',
      by('backlog')('a_shard_that_begins_finds_room_and_then_has_as_much_as_the_other'),
      'return taken < most ? BACKLOG_PART * (most - taken) : 0;',
      'return taken < most ? most : 0;',
    ],
    [
      'joins: what a copy lacks takes the room of what it has too',
      by('backlog')('room_is_that_of_all_records_that_follow'),
      '.before = b->extents,',
      '.before = 0,',
    ],
    [
      'joins: what copies may lack is counted without the memory that it lies in',
      by('backlog')('small_and_large_records_in_turn_take_no_more_memory_than_there_may_be'),
      'return (uint32_t)(sizeof *p + sizeof p) + p->room;',
      'return p->room;',
    ],
    [
      'joins: a piece of what copies may lack keeps the room that it does not need',
      by('backlog')('small_and_large_records_in_turn_take_no_more_memory_than_there_may_be'),
      'if (last) close_piece(b, last);',
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
    [
      'joins: an eligible copy is forgotten when it is away for long',
      away('a_copy_that_is_eligible_comes_back_with_what_it_has'),
      'if (p->unlinked_ns && !p->eligible && now - p->unlinked_ns',
      'if (p->unlinked_ns && now - p->unlinked_ns',
    ],
    [
      'joins: a copy is late by the time before it was waited for',
      away('a_copy_that_was_away_comes_back_with_what_it_has'),
      '!waited || peer->prepared',
      'peer->prepared',
    ],
    [
      'joins: a copy that gives no lease is late only when something changes',
      join('a_copy_that_is_silent_is_late_without_a_change'),
      '    if (p->silent_ns) since = min_u64(since, p->silent_ns);',
      '',
    ],
    [
      'joins: a copy is required before it follows',
      ends('a_copy_is_required_when_it_has_joined'),
      'if (!s->place[i].joined || s->place[i].unlinked_ns ||',
      'if (s->place[i].unlinked_ns ||',
    ],
    [
      'joins: a copy is required without a connection',
      away('a_copy_that_is_away_again_is_not_required'),
      's->place[i].unlinked_ns || lags ||',
      'lags ||',
    ],
    [
      'joins: a copy is required however far it lags',
      ends('a_copy_that_lags_far_is_not_required'),
      's->place[i].unlinked_ns || lags ||',
      's->place[i].unlinked_ns ||',
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
