/** What must not be missing from the Redis gateway, each with the C test that notices. */
import { always, drop } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const hash = by('resp_hash');
const resp = by('resp');

export const mutations = rows('gateway', {
  'damaged-hash': [drop('s = FKV_WRONG_CODEC'), hash('damaged_hashes_are_answered_and_not_believed')],
  'set-get-in-two-steps': [always(), resp('a_set_that_looks_first_is_one_step')],
  browser: [drop('c->broken'), resp('http_ends_the_connection_before_its_body_is_run')],
});
