/** What finds a copy that is none, each with the C test that notices when it is missing. */
import { by, inFile } from './checks/in-file.mjs';

const scrub = by('table_scrub');
const copy = by('dataplane_integrity');

export const mutations = [
  ...inFile('native/table/digest.c', [
    [
      'integrity: a scrub believes the bytes of an entry',
      scrub('one_flipped_bit_is_found'),
      '        if (s->crc != f.e->crc) return over(t, TABLE_SCRUB_DAMAGED);',
      '',
    ],
  ]),
  ...inFile('native/dataplane/integrity.c', [
    [
      'integrity: digests are not compared',
      copy('a_copy_that_lacks_an_entry_says_so'),
      '    if (x->digest != as_sent(table_digest(b->shard->table))) damaged(b);',
      '',
    ],
    [
      'integrity: the memory of a copy is not looked at',
      copy('a_bit_that_flips_in_a_copys_memory_is_found'),
      '    case TABLE_SCRUB_DAMAGED: damaged(b); break;',
      '    case TABLE_SCRUB_DAMAGED: break;',
    ],
    [
      'integrity: a damaged copy acknowledges',
      copy('a_copy_that_lacks_an_entry_says_so'),
      '    b->failed = FKV_CORRUPT;',
      '',
    ],
  ]),
];
