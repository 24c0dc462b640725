/** What must not be missing from the Redis gateway, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';
const resp = by('resp');
const hash = by('resp_hash');

export const mutations = [
  ...inFile('native/resp/hash_reads.c', [
    [
      'gateway: a damaged hash is believed',
      hash('damaged_hashes_are_answered_and_not_believed'),
      'if (s == FKV_OK && !fkv_count_fields(k->value, r->value_bytes, count)) s = FKV_WRONG_CODEC;',
      '(void)fkv_count_fields(k->value, r->value_bytes, count);',
    ],
  ]),
  ...inFile('native/resp/swap.c', [
    [
      'gateway: SET GET changes another entry than it has read',
      resp('a_set_that_looks_first_is_one_step'),
      '    j->step = STEP_READ;\n    return false;',
      '    return true;',
    ],
  ]),
  ...inFile('native/resp/about.c', [
    [
      'gateway: what a browser sends is run',
      resp('http_ends_the_connection_before_its_body_is_run'),
      'c->broken = true;',
      'wrong_arguments(c, "post");',
    ],
  ]),
];
