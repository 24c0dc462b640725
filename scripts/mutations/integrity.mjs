/** What finds a copy that is none, each with the C test that notices when it is missing. */
import { drop } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const scrub = by('table_scrub');
const copy = by('dataplane_integrity');

export const mutations = rows('integrity', {
  'scrub-crc': [drop(), scrub('one_flipped_bit_is_found')],
  digests: [drop(), copy('a_copy_that_lacks_an_entry_says_so')],
  'damage-in-memory': [drop('damaged(b)'), copy('a_bit_that_flips_in_a_copys_memory_is_found')],
  'damaged-acknowledges': [drop(), copy('a_copy_that_lacks_an_entry_says_so')],
});
