/** What must not be missing where a copy joins with what it has (docs/rejoin.md), each with the test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const rejoin = by('dataplane_rejoin');
const base = (title) => ({ test: 'core/shards/base.test.ts', title });

const DIFFER = rejoin('only_values_that_differ_are_read');

export const mutations = [
  ...inFile('native/dataplane/base.c', [
    ['rejoin: what the owner has deleted stays', DIFFER, '    l->entry[l->count++] = *e;', '    (void)e;'],
    [
      'rejoin: another version counts as the same value',
      DIFFER,
      'return here->version == e->version && here',
      'return here',
    ],
    [
      'rejoin: a later version of other contents stays',
      rejoin('a_base_with_other_contents_becomes_what_the_owner_has'),
      'if (p->same && bsearch(&e->version, p->of.version, p->same, sizeof e->version, by_version)) return;',
      'if (p->of.count && e->version > 2) return;',
    ],
    [
      'rejoin: what was prepared is of the base',
      rejoin('what_was_prepared_and_not_committed_is_not_of_the_base'),
      '    backup_cuts_off(b, b->applied);',
      '',
    ],
    [
      'rejoin: a damaged copy is a base',
      rejoin('what_is_served_or_leads_or_is_damaged_is_no_base'),
      's->copy && s->copy->failed == FKV_CORRUPT',
      's->copy && s->copy->failed == FKV_CLOSED',
    ],
  ]),
  ...inFile('core/shards/handover.ts', [
    [
      'rejoin: what an owner had is thrown away',
      base('what an owner had is kept too, when its server was away for so long that it is no copy of the next owner'),
      'entry?.id ?? (isMissed(c, life) ? c.random64() : undefined)',
      'entry?.id',
    ],
  ]),
];
