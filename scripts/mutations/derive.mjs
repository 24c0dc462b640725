/** What must not be missing of changes that an owner makes from the present entry (native/dataplane/derive.h). */
import { by, inFile } from './checks/in-file.mjs';

const derive = by('dataplane_derive');
const copies = by('dataplane_derive_copies');
const fields = by('dataplane_fields');

export const mutations = [
  ...inFile('native/dataplane/op.c', [
    [
      'derive: a put is taken for one that leaves no entry, as the change before it was',
      copies('owner_and_copy_count_the_same_bytes_of_a_hash_that_comes_and_goes'),
      'o->replicated = o->removes = false;',
      'o->replicated = false;',
    ],
  ]),
  ...inFile('native/base/integer.c', [
    [
      'derive: a number beyond 64 bits is read as another',
      derive('only_whole_numbers_in_decimal_text_are_incremented'),
      '    if (n > most) return false;',
      '    (void)most;',
    ],
  ]),
  ...inFile('native/dataplane/run.c', [
    [
      'derive: what is made of a damaged value has a good checksum',
      derive('of_what_is_damaged_nothing_is_made'),
      'if (s == FKV_OK && !table_is_whole(&e)) s = FKV_CORRUPT;',
      '',
    ],
  ]),
  ...inFile('native/dataplane/derive.c', [
    [
      'derive: an increment goes on beyond 64 bits',
      derive('an_increment_beyond_64_bits_changes_nothing'),
      '    if (__builtin_add_overflow(before, by, &sum)) return FKV_NOT_INTEGER;',
      '    sum = (int64_t)((uint64_t)before + (uint64_t)by);',
    ],
    [
      'derive: bytes of another codec are added to',
      derive('only_whole_numbers_in_decimal_text_are_incremented'),
      '    if (e && e->codec != r->codec) return FKV_WRONG_CODEC;',
      '',
    ],
    [
      'derive: a value is appended to without limit',
      derive('a_value_is_not_appended_to_beyond_its_limit'),
      '    if (d->tail_bytes > FKV_VALUE_MAX - d->kept) return FKV_VALUE_TOO_LARGE;',
      '',
    ],
    [
      'derive: an increment takes the time to live away',
      derive('a_time_to_live_is_kept_by_increment_and_append_and_changed_by_touch'),
      'r->op == FKV_OP_TOUCH ? r->expiry : e->expiry_ms;',
      'r->expiry;',
    ],
  ]),
  ...inFile('native/dataplane/derive_fields.c', [
    [
      'derive: a hash without fields stays',
      fields('a_hash_whose_last_field_is_deleted_is_gone'),
      '    d->removes = d->tail_bytes == 0;\n',
      '',
    ],
    [
      'derive: a name that is in a hash twice is written twice',
      fields('what_is_no_hash_is_left_as_it_is'),
      '        if (s && s->found) return FKV_WRONG_CODEC;\n',
      '',
    ],
    [
      'derive: of a hash that is cut its whole fields are taken',
      fields('what_is_no_hash_is_left_as_it_is'),
      'return status == FKV_OK && at < present->value_bytes ? FKV_WRONG_CODEC : status;',
      'return status;',
    ],
    [
      'derive: a hash grows without limit',
      fields('a_hash_does_not_grow_beyond_its_limit'),
      'return d->tail_bytes > FKV_FIELDS_MAX ? FKV_VALUE_TOO_LARGE : FKV_OK;',
      'return FKV_OK;',
    ],
    [
      'derive: a hash beyond its limit is gone through',
      fields('a_hash_beyond_its_limit_is_not_gone_through'),
      '    if (before > FKV_FIELDS_MAX) return FKV_VALUE_TOO_LARGE;\n',
      '    if (before > FKV_FIELDS_MAX) return FKV_OK;\n',
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
  ...inFile('native/dataplane/op.h', [
    [
      'derive: the record of a hash that goes is counted as a value',
      copies('owner_and_copy_count_the_same_bytes_of_a_hash_that_comes_and_goes'),
      'return fkv_op_writes(o->request.op) && !o->removes;',
      'return fkv_op_writes(o->request.op);',
    ],
  ]),
  ...inFile('native/table/change.c', [
    [
      'derive: a compare-and-swap takes the time to live away',
      by('dataplane')('compare_and_swap_keeps_the_expiry_where_it_is_told_to'),
      '        kept.expiry_ms = fkv_extent_expiry(old.extent->expiry_space);',
      '',
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
  ...inFile('native/dataplane/replicate.c', [
    [
      'derive: an owner counts the bytes of requests, not of records',
      copies('owner_and_copy_count_the_same_bytes'),
      'o->request.key_bytes, o->value_bytes);\n}\n\n/* At all',
      'o->request.key_bytes, o->request.value_bytes);\n}\n\n/* At all',
    ],
  ]),
];
