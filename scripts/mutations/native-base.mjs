/** What must not be missing from native/base, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const region = by('region');

export const mutations = inFile('native/base/region.c', [
  [
    'base: core dumps have what is in the tables',
    region('core_dumps_have_nothing_of_a_region_at_its_owner_and_at_a_reader'),
    '    if (at != MAP_FAILED) madvise(at, bytes, MADV_DONTDUMP);\n',
    '',
  ],
  [
    'base: mappings are not aligned as huge pages are',
    region('what_is_said_of_huge_pages_is_true_for_the_owner_and_for_a_reader'),
    'bytes > SIZE_MAX / 2 || lies_well) return',
    'bytes > SIZE_MAX / 2 || plain) return',
  ],
  [
    'base: the offset of a mapping is forgotten in its alignment',
    region('what_is_said_of_huge_pages_is_true_for_the_owner_and_for_a_reader'),
    '(size_t)(offset - (uintptr_t)all)',
    '(size_t)(0 - (uintptr_t)all)',
  ],
  [
    'base: huge pages that did not come are said to be there',
    region('where_there_are_no_huge_pages_a_wish_gets_small_ones_and_a_need_an_error'),
    '        *pages = FKV_PAGES_SMALL;    /* some of it may be huge: it is not said of it */\n',
    '',
  ],
  [
    'base: huge pages that are needed are done without',
    region('where_there_are_no_huge_pages_a_wish_gets_small_ones_and_a_need_an_error'),
    '        if (flags & FKV_REGION_NEED_HUGE) return e;\n',
    '',
  ],
  [
    'base: no seal against writing',
    region('a_client_that_holds_the_descriptor_changes_nothing_and_the_owner_lives'),
    'if (e == 0 && fcntl(fd, F_ADD_SEALS, SEALS) != 0)',
    'if (e == 0 && fcntl(fd, F_ADD_SEALS, SEALS & ~F_SEAL_FUTURE_WRITE) != 0)',
  ],
]);
