/** What finds a copy that is none, each with the C test that notices when it is missing. */
import { by, inFile } from './checks/in-file.mjs';

const scrub = by('table_scrub');
const copy = by('dataplane_integrity');

export const mutations = [
  ...inFile('native/table/change.c', [
    [
      'integrity: entries that expire are in the digest',
      scrub('what_expires_is_in_no_digest'),
      '    if (fkv_extent_expiry(e->expiry_space)) return;\n    uint64_t word',
      '    uint64_t word',
    ],
    [
      'integrity: what is changed behind a scrub is damage',
      scrub('what_changes_during_a_scrub_is_no_damage'),
      '    if (t->scrub.order && table_order_of(hash) < t->scrub.order) t->scrub.digest ^= word;',
      '',
    ],
    [
      'integrity: what is replaced stays in the digest',
      scrub('the_same_entries_have_the_same_digest_however_they_came'),
      '    digest_changes(t, p->hash, extent_of(t, p->old_word));',
      '',
    ],
  ]),
  ...inFile('native/table/digest.c', [
    [
      'integrity: a scrub believes the bytes of an entry',
      scrub('one_flipped_bit_is_found'),
      '        if (s->crc != f.e->crc) return over(t, TABLE_SCRUB_DAMAGED);',
      '',
    ],
    [
      'integrity: a scrub misses nothing',
      scrub('an_entry_that_is_not_there_any_more_is_found'),
      't->scrub.digest == t->digest ?',
      't->buckets ?',
    ],
    [
      'integrity: a scrub goes on with the bytes of an entry that was replaced',
      scrub('what_changes_during_a_scrub_is_no_damage'),
      '    if (s->word != f->word || s->version != f->e->version)',
      '    if (s->word == 0)',
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
      'integrity: digests of different places of the log are compared',
      copy('a_digest_of_another_place_of_the_log_says_nothing'),
      ' && x->committed == b->applied;',
      ';',
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
