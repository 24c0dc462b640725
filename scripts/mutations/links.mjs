/** What must not be missing from the links between data planes, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const bytes = by('peer');
const copy = by('dataplane_backup');
const copies = by('dataplane_copies');
const links = by('dataplane_links');

export const mutations = [
  ...inFile('native/wire/peer.c', [
    [
      'links: a copy that has committed what it has not prepared is believed',
      bytes('a_message_that_breaks_one_rule_is_refused'),
      ' && f->committed <= f->prepared &&',
      ' &&',
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
      'links: a copy takes records of keys of other shards',
      copy('a_record_of_another_shard_or_an_older_version_ends_the_copy'),
      '.shards, hash) != s->number)',
      '.shards, hash) == UINT32_MAX)',
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
  ]),
  ...inFile('native/dataplane/feed.c', [
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
  ]),
  ...inFile('native/dataplane/downlink.c', [
    [
      'links: an acknowledgement of a time that was never sent is a lease',
      links('only_servers_have_links_and_over_a_link_only_its_messages_count'),
      '    if (m->list.asked_ns > l->asked_ns) return false;',
      '',
    ],
  ]),
  ...inFile('native/dataplane/connection.c', [
    [
      'links: whoever has a ticket has a link',
      links('only_servers_have_links_and_over_a_link_only_its_messages_count'),
      '    if (!(t->flags & FKV_TICKET_REPLICA)) return c;',
      '    if (t->flags == 0) return c;',
    ],
  ]),
];
