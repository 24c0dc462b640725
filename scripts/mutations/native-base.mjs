/** What must not be missing from native/base, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const region = by('region');

const regions = inFile('native/base/region.c', [
  [
    'base: core dumps have what is in the tables',
    region('core_dumps_have_nothing_of_a_region_at_its_owner_and_at_a_reader'),
    '    if (at != MAP_FAILED) madvise(at, bytes, MADV_DONTDUMP);\n',
    '',
  ],
  [
    'base: no seal against writing',
    region('a_client_that_holds_the_descriptor_changes_nothing_and_the_owner_lives'),
    'if (e == 0 && fcntl(fd, F_ADD_SEALS, SEALS) != 0)',
    'if (e == 0 && fcntl(fd, F_ADD_SEALS, SEALS & ~F_SEAL_FUTURE_WRITE) != 0)',
  ],
]);

const shared = by('files');

const files = inFile('native/base/files.c', [
  [
    'files: a region begins with what another one left',
    shared('holes_are_used_again_as_zeroes_and_grow_together'),
    'memset(out->base, 0, bytes);',
    '(void)bytes;',
  ],
  [
    'files: pages never go back',
    shared('pages_go_back_with_the_last_region_of_a_file'),
    'bool is_empty = file->used == 0;',
    'bool is_empty = false;',
  ],
  [
    'files: memory takes the last descriptor',
    shared('the_last_descriptors_are_left_to_others'),
    'if (e == 0 && is_for_others(file->all.fd)) {',
    'if (e == 0 && file->all.fd < 0) {',
  ],
  [
    'files: a renewal leaves holes to be used',
    shared('after_a_renewal_nothing_new_comes_into_files_of_before'),
    '&& !f->old &&',
    '&&',
  ],
]);

const pollers = inFile('native/base/poller.c', []);

export const mutations = [...regions, ...files, ...pollers];
