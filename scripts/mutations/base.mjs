/** What must not be missing from native/base, each with the C test that notices. */
import { drop, instead, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const region = by('region');
const shared = by('files');

export const mutations = rows('base', {
  'core-dumps': [drop(), region('core_dumps_have_nothing_of_a_region_at_its_owner_and_at_a_reader')],
  'no-seal': [
    instead('SEALS', 'SEALS & ~F_SEAL_FUTURE_WRITE'),
    region('a_client_that_holds_the_descriptor_changes_nothing_and_the_owner_lives'),
  ],
  'not-zeroed': [drop(), shared('holes_are_used_again_as_zeroes_and_grow_together')],
  'holes-of-before': [without('f->old'), shared('after_a_renewal_nothing_new_comes_into_files_of_before')],
});
