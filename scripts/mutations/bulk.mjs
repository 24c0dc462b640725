/** What must not be missing from large values on links, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const bulk = by('dataplane_bulk');
const joins = by('dataplane_bulk_join');
const lost = by('failover_seeds')('nothing_that_was_answered_or_read_is_lost');

export const mutations = [
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
  ...inFile('native/dataplane/backup.c', [
    [
      'bulk: a copy ends for a value that it has forgotten and not yet undone',
      bulk('a_change_waits_for_the_extent_of_a_value_that_was_forgotten'),
      'return b->dropping ? FKV_BUSY : key_is_taken(b);',
      'return FKV_BAD_REQUEST;',
    ],
  ]),
  ...inFile('native/dataplane/bulk.c', [
    [
      'bulk: a joining copy keeps what was announced and then changed',
      joins('a_copy_that_is_waited_for_no_more_gets_what_was_announced_to_it'),
      '    return out->send(out->ctx, &m, sizeof m);',
      '    (void)m;\n    return 0;',
    ],
  ]),
];
