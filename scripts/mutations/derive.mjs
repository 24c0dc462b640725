/** What must not be missing of changes that an owner makes from the present entry (native/dataplane/derive.h). */
import { by, inFile } from './checks/in-file.mjs';

const derive = by('dataplane_derive');
const copies = by('dataplane_derive_copies');
const fields = by('dataplane_fields');

export const mutations = [
  ...inFile('native/dataplane/run.c', [
    [
      'derive: what is made of a damaged value has a good checksum',
      derive('of_what_is_damaged_nothing_is_made'),
      'if (s == FKV_OK && !table_is_whole(&e)) s = FKV_CORRUPT;',
      '',
    ],
  ]),
  ...inFile('native/dataplane/derive_fields.c', [
    [
      'derive: of a hash that is cut its whole fields are taken',
      fields('what_is_no_hash_is_left_as_it_is'),
      'return status == FKV_OK && at < present->value_bytes ? FKV_WRONG_CODEC : status;',
      'return status;',
    ],
  ]),
  ...inFile('native/wire/wire.c', [
    [
      'wire: fields that are cut are taken',
      by('wire')('fields_that_break_one_rule_are_refused'),
      '    if (!fkv_count_fields(body, left, &count) || count == 0) return false;\n',
      '    (void)fkv_count_fields(body, left, &count);\n',
    ],
  ]),
  ...inFile('native/dataplane/op.c', [
    [
      'derive: a retry is answered without the result',
      derive('a_retry_is_answered_the_first_sum_and_adds_nothing'),
      '.version = o->reply.version, .value = o->reply.expiry_ms };',
      '.version = o->reply.version };',
    ],
  ]),
  ...inFile('native/dataplane/suffix.c', [
    [
      'derive: a copy is not told of the result',
      copies('the_next_owner_answers_a_retry_the_first_result'),
      '    r.value = o->reply.expiry_ms;',
      '',
    ],
    [
      'failover: a new owner answers a retry without the result',
      by('failover_seeds')('nothing_that_was_answered_or_read_is_lost'),
      '    r.value = o->reply.expiry_ms;',
      '',
    ],
  ]),
];
