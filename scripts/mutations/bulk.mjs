/** What must not be missing from large values on links, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const bulk = by('dataplane_bulk');
const joins = by('dataplane_bulk_join');
const lost = by('failover_seeds')('nothing_that_was_answered_or_read_is_lost');
const bytes = by('peer')('a_message_that_breaks_one_rule_is_refused');

export const mutations = [
  ...inFile('native/wire/peer.c', [
    [
      'bulk: a value lies beyond the region that is announced',
      bytes,
      ' && r.value_bytes <= a->region_bytes - into;',
      ';',
    ],
  ]),
  ...inFile('native/dataplane/pull.c', [
    [
      'bulk: a value is believed without its checksum',
      bulk('bytes_that_changed_on_their_way_are_pulled_again'),
      'FKV_EXTENT_HEADER, bytes) == x->from.crc;',
      'FKV_EXTENT_HEADER, bytes) | 1;',
    ],
    [
      'bulk: a record takes a value that is not whole',
      lost,
      '    if (!x->whole || !x->right) return BACKUP_WAITS;',
      '',
    ],
    [
      'bulk: a value is prepared before the change of its key that is committed',
      lost,
      '    backup_hears(b, x->from.epoch, x->from.committed);',
      '',
    ],
    [
      'bulk: an extent is given up while the copier writes to it',
      lost,
      '    if (x->jobs) {\n        __atomic_store_n(&x->dropped',
      '    if (x->jobs) unprepare(x);\n    if (x->jobs) {\n        __atomic_store_n(&x->dropped',
    ],
  ]),
  ...inFile('native/dataplane/pull.c', [
    [
      'bulk: a copy waits for ever for a value that it has no room for',
      joins('a_copy_without_room_for_what_took_effect_is_none'),
      '    if (x->said != FKV_OK) return backup_fails(b, x->said); /* it has a number: it can not be refused */',
      '',
    ],
    [
      'bulk: a value that is announced again is pulled twice',
      joins('a_copy_that_is_waited_for_no_more_gets_what_was_announced_to_it'),
      '    if (find(b, r.version)) return BACKUP_TOOK;',
      '',
    ],
  ]),
  ...inFile('native/dataplane/backup.c', [
    [
      'bulk: a copy ends for a value that it has forgotten and not yet undone',
      bulk('a_change_waits_for_the_extent_of_a_value_that_was_forgotten'),
      'return b->dropping ? FKV_BUSY : key_is_taken(b);',
      'return FKV_BAD_REQUEST;',
    ],
    [
      'bulk: what was forgotten and not yet undone has room of its own',
      bulk('a_value_waits_for_the_room_of_one_that_was_forgotten'),
      '    if (status == FKV_TABLE_FULL && b->dropping) return FKV_BUSY;',
      '',
    ],
  ]),
  ...inFile('native/dataplane/bulk.c', [
    [
      'bulk: small changes wait for a large value',
      bulk('small_changes_do_not_wait_for_a_large_value'),
      '        if (!is_everywhere(s, o)) continue;',
      '        (void)is_everywhere;',
    ],
    [
      'bulk: a copy is told of all values that came together',
      bulk('a_copy_is_told_of_a_few_values_at_a_time'),
      ' && left-- > 0;',
      ' && left;',
    ],
    [
      'bulk: a joining copy pulls what was changed since',
      joins('large_values_that_were_changed_since_are_none_at_a_copy_that_joins'),
      ' == FKV_OK && e.version == r->version;',
      ' == FKV_OK;',
    ],
    [
      'bulk: a joining copy keeps what was announced and then changed',
      joins('a_copy_that_is_waited_for_no_more_gets_what_was_announced_to_it'),
      '    return out->send(out->ctx, &m, sizeof m);',
      '    (void)m;\n    return 0;',
    ],
    ['bulk: a value is announced once, whatever becomes of the link', lost, '            o->announced &= others;', ''],
  ]),
  ...inFile('native/dataplane/replicate.c', [
    [
      'bulk: an owner that closes a shard does not tell its copies to forget',
      bulk('a_value_is_forgotten_when_its_owner_closes_the_shard'),
      '    bulks_end(s, FKV_SHARD_CLOSED); /* copies are told to forget them */\n    while (!list_empty(&s->feeds)) feed_end(LIST_OF(s->feeds.next, feed, of_shard));',
      '    while (!list_empty(&s->feeds)) feed_end(LIST_OF(s->feeds.next, feed, of_shard));\n    bulks_end(s, FKV_SHARD_CLOSED);',
    ],
  ]),
  ...inFile('native/dataplane/replicate.c', [
    [
      'bulk: a value without a number waits for copies that are gone',
      joins('a_large_value_without_a_number_ends_when_there_are_too_few_copies'),
      '    if (!replica_enough(&s->replica)) bulks_end(s, FKV_TOO_FEW_COPIES);',
      '',
    ],
  ]),
  ...inFile('native/dataplane/feed.c', [
    [
      'bulk: what follows a large value fills the messages of a copy that pulls it',
      joins('what_follows_a_large_value_waits_at_the_owner_until_the_copy_has_it'),
      'bool pulls = f->sent >= f->pulls &&',
      'bool pulls = i > REPLICA_PEERS && f->sent >= f->pulls &&',
    ],
    [
      'bulk: a value is announced before what took effect of its key',
      joins('what_follows_a_large_value_waits_at_the_owner_until_the_copy_has_it'),
      'return f->sent < r->committed || list_empty(&s->bulks) ? 0',
      'return list_empty(&s->bulks) ? 0',
    ],
    [
      'bulk: what a copy is spared takes its room',
      joins('a_copy_has_room_for_large_values_though_more_were_changed_since'),
      '    if (e == 0) f->base += not_taken;',
      '    (void)not_taken;',
    ],
    [
      'bulk: a value that was inherited is not announced',
      bulk('a_value_that_was_inherited_goes_to_the_other_copies'),
      '    if (r.kind != FKV_RECORD_BULK) return 0;',
      '    if (r.kind != FKV_RECORD_BULK || !p->of) return 0;',
    ],
  ]),
  ...inFile('native/dataplane/uplink.c', [
    [
      'bulk: what was announced over a link that is over is kept',
      bulk('a_value_whose_link_is_cut_is_pulled_again'),
      '    for (fkv_list *i = u->copies.next; i != &u->copies; i = i->next) pulls_drop(LIST_OF(i, backup, of_link));\n',
      '',
    ],
  ]),
];
