/** What must not be missing from the links between data planes, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const bytes = by('peer');
const copy = by('dataplane_backup');
const copies = by('dataplane_copies');
const links = by('dataplane_links');
const orphan = by('dataplane_orphan');

export const mutations = [
  ...inFile('native/wire/peer.c', [
    [
      'links: a copy that has committed what it has not prepared is believed',
      bytes('a_message_that_breaks_one_rule_is_refused'),
      ' && f->committed <= f->prepared &&',
      ' &&',
    ],
    [
      'links: items that are not there are read',
      bytes('every_truncation_and_every_byte_too_many_is_refused'),
      ' && bytes == l->count * item_bytes;',
      ' && bytes + item_bytes > 0;',
    ],
  ]),
  ...inFile('native/dataplane/backup.c', [
    [
      'links: a copy keeps prepared what its new owner has not',
      copy('a_new_owner_takes_away_what_it_has_not'),
      '    for (; prepared > b->place.prepared; prepared--) drop(b, prepared);',
      '    (void)prepared, (void)drop;',
    ],
    [
      'links: a copy that has shown what its new owner has not goes on',
      copy('a_copy_that_has_shown_what_its_new_owner_has_not_is_none'),
      'if (t->epoch > b->place.epoch && b->place.committed > t->last) return backup_fails(b, FKV_BAD_REQUEST);',
      'if (t->epoch > b->place.epoch && b->place.committed > t->last) return BACKUP_ANEW;',
    ],
    [
      'links: a copy takes bytes that changed on their way',
      copy('bytes_that_changed_on_their_way_are_asked_for_again'),
      '    if (!wire_record_whole(r, key, value)) return BACKUP_ANEW;',
      '',
    ],
    [
      'links: a copy takes records in any order',
      copy('what_is_not_the_next_record_of_its_owner_is_not_taken'),
      '    if (replica_arrives(&b->place, head->epoch, lsn) != REPLICA_NEXT) return BACKUP_ANEW;',
      '',
    ],
    [
      'links: a copy does not remember whose changes it commits',
      copy('a_retry_is_known_as_soon_as_its_change_is_committed'),
      '    dedup_note(&w->dedup, r->client, s->slot, r->sequence, &result, w->now_ns);',
      '    (void)result;',
    ],
    [
      'links: a copy takes records of keys of other shards',
      copy('a_record_of_another_shard_or_an_older_version_ends_the_copy'),
      '.shards, hash) != s->number)',
      '.shards, hash) == UINT32_MAX)',
    ],
    [
      'links: a copy waits for ever for a key that its owner can not have changed twice',
      copy('two_records_of_one_key_that_are_not_committed_end_the_copy'),
      '    if (status == FKV_BUSY && why == TABLE_BUSY_KEY) return b->dropping ? FKV_BUSY : key_is_taken(b);',
      '',
    ],
    [
      'links: a copy says a limit that it cannot keep',
      copy('what_lies_within_the_limit_finds_room'),
      '.limit = b->taken + room };',
      '.limit = UINT64_MAX - 0 * room };',
    ],
    [
      'links: a copy that withholds grants leases',
      copy('a_copy_counts_its_leases_and_grants_none_when_it_withholds'),
      'b->failed != FKV_OK || !replica_acknowledges(&b->place, until, &a)) return false;',
      'b->failed != FKV_OK) return false;\n    if (!replica_acknowledges(&b->place, until, &a)) a = (replica_ack){ b->place.epoch, b->place.prepared };',
    ],
  ]),
  ...inFile('native/dataplane/life.c', [
    [
      'links: a copy is served while it follows another owner',
      copy('a_copy_is_not_served'),
      '|| s->starting || (s->copy && !s->copy->leads) ? FKV_BUSY',
      '|| s->starting ? FKV_BUSY',
    ],
    [
      'links: a new owner does not know what it has not been told',
      copies('what_only_another_copy_has_is_dropped_there_and_made_anew_by_its_retry'),
      's->state == SHARD_OPEN && !s->copy) status',
      's->state == SHARD_OPEN) status',
    ],
  ]),
  ...inFile('native/dataplane/suffix.c', [
    [
      'links: a record does not say whose change it is',
      copies('what_was_answered_is_found_at_the_next_owner_and_a_retry_gets_the_same_answer'),
      'r.client = dedup_client_id(o->memory);',
      'r.client = 1;',
    ],
  ]),
  ...inFile('native/dataplane/feed.c', [
    [
      'links: an owner takes it that a copy has what it drops',
      copies('what_only_another_copy_has_is_dropped_there_and_made_anew_by_its_retry'),
      '*prepared = m->epoch < o->epoch ? min_u64(m->prepared, o->inherited) : m->prepared;',
      '*prepared = m->prepared;',
    ],
    [
      'links: a copy that lacks what is committed goes on from there',
      copies('who_cannot_follow_is_refused'),
      'return *prepared + 1 >= first && *prepared <= o->last;',
      'return first > 0 && *prepared <= o->last;',
    ],
    [
      'links: an owner of the past is followed',
      copies('who_cannot_follow_is_refused'),
      '    if (!replica_goes_on(o, m->id, m->epoch)) return false;',
      '',
    ],
    [
      'links: an acknowledgement of what was not sent counts',
      copies('an_acknowledgement_of_what_was_not_sent_is_none'),
      'if (i < 0 || a->prepared > f->sent) return false;',
      'if (i < 0) return false;',
    ],
    [
      'links: what was lost with a connection is not sent again',
      copies('what_was_lost_with_a_connection_is_sent_again_over_the_next'),
      '.sent = prepared,',
      '.sent = s->replica.last,',
    ],
  ]),
  ...inFile('native/dataplane/replicate.c', [
    [
      'links: a change is sent that a backup has no room for',
      copies('a_change_that_a_backup_has_no_room_for_is_refused_before_it_is_sent'),
      ' && then > s->place[i].limit) return FKV_TABLE_FULL;',
      ' && then == 0) return FKV_TABLE_FULL;',
    ],
    [
      'links: what a new owner inherited never takes effect',
      copies('what_a_new_owner_inherits_is_committed_when_the_others_have_it'),
      '    if (s->copy) commit_inherited(s, committed);',
      '    (void)commit_inherited;',
    ],
    [
      'links: a new owner gives versions of the one before',
      copies('what_was_answered_is_found_at_the_next_owner_and_a_retry_gets_the_same_answer'),
      '    if (c->epoch != s->epoch) table_set_epoch(s->table, c->epoch);',
      '',
    ],
  ]),
  ...inFile('native/dataplane/downlink.c', [
    [
      'links: a copy that lacks what is gone ends the link of all others',
      by('dataplane_away')('a_copy_that_lacks_what_is_gone_is_told_alone_and_joins_again_while_its_link_goes_on'),
      'check_sent(l, e == -ESTALE ? lost(l, f) : e);',
      'check_sent(l, e);\n        (void)lost;',
    ],
    [
      'links: an acknowledgement of a time that was never sent is a lease',
      links('only_servers_have_links_and_over_a_link_only_its_messages_count'),
      '    if (m->list.asked_ns > l->asked_ns) return false;',
      '',
    ],
    [
      "links: a shard that rests loses its owner's right",
      links('a_shard_that_rests_goes_on_to_be_served_and_its_backup_commits'),
      '        l->beat_ns = min_u64(l->beat_ns, w->now_ns + beat_after(f));',
      '',
    ],
  ]),
  ...inFile('native/dataplane/orphan.c', [
    [
      'links: nobody is told that an owner stands still',
      orphan('a_copy_whose_owner_stands_still_says_so_when_its_last_lease_is_over'),
      '    else if (now >= b->doubt_ns)\n        tell(b, true);\n',
      '',
    ],
    [
      'links: an owner counts as gone while it has a lease',
      orphan('a_copy_whose_owner_stands_still_says_so_when_its_last_lease_is_over'),
      'max_u64(b->place.granted_until_ns, max_u64(heard_ns, b->followed_ns) + lease)',
      'b->followed_ns',
    ],
    [
      'links: who stood still takes its owner for gone',
      orphan('who_stood_still_does_not_take_its_owner_for_gone'),
      'b->doubt_ns = now + lease / DOUBTS_A_LEASE;',
      'tell(b, true);',
    ],
  ]),
  ...inFile('native/dataplane/uplink.c', [
    [
      'links: nobody is told that an owner is gone',
      orphan('a_copy_whose_owner_is_gone_says_so'),
      'if (!u->answered) orphans_all(&u->copies);',
      '',
    ],
    [
      'links: nobody is told that an owner is back',
      orphan('a_copy_whose_owner_stands_still_says_so_when_its_last_lease_is_over'),
      'orphan_no_more(LIST_OF(i, backup, owes));',
      '',
    ],
    [
      'links: a link that was cut is not made again',
      links('a_link_that_is_cut_is_made_again_and_nothing_is_lost'),
      '            if (u->state != RESTS) rest(u, AGAIN_MS);',
      '            if (u->state != RESTS) rest(u, 1u << 30);',
    ],
    [
      'links: a copy that was refused does not ask again',
      links('a_copy_follows_as_soon_as_its_owner_is_one'),
      '    follow_in(u, b, b->refusals < SOON ? min_u64(AGAIN_MS, UINT64_C(1) << b->refusals) : REFUSED_MS);\n',
      '',
    ],
    [
      'links: a copy that was refused asks again late',
      links('a_copy_that_is_refused_asks_again_soon_and_later_less_often'),
      'b->refusals < SOON ? min_u64(AGAIN_MS, UINT64_C(1) << b->refusals) : REFUSED_MS',
      'REFUSED_MS',
    ],
    [
      'links: a copy that nobody knows asks again and again',
      links('a_copy_that_is_refused_asks_again_soon_and_later_less_often'),
      '    if (b->refusals < SOON) b->refusals++;\n',
      '',
    ],
    [
      'links: a record that waits for memory is passed over',
      links('records_that_wait_for_memory_are_taken_in_order'),
      '    return r != BACKUP_WAITS;',
      '    return true;',
    ],
  ]),
  ...inFile('native/dataplane/connection.c', [
    [
      'links: clients take the places of links',
      links('clients_do_not_take_the_places_of_links'),
      '    if (flags & FKV_TICKET_REPLICA) return true;',
      '',
    ],
    [
      'links: whoever has a ticket has a link',
      links('only_servers_have_links_and_over_a_link_only_its_messages_count'),
      '    if (!(t->flags & FKV_TICKET_REPLICA)) return c;',
      '    if (t->flags == 0) return c;',
    ],
  ]),
];
