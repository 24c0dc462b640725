/** What must not be missing where a copy joins with what it has (docs/rejoin.md), each with the test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const rejoin = by('dataplane_rejoin');
const durable = by('dataplane_durable_join');
const base = (title) => ({ test: 'core/shards/base.test.ts', title });
const copies = (title) => ({ test: 'core/shards/copies.test.ts', title });

const DIFFER = rejoin('only_values_that_differ_are_read');

export const mutations = [
  ...inFile('native/dataplane/base.c', [
    ['rejoin: what the owner has deleted stays', DIFFER, '    l->entry[l->count++] = *e;', '    (void)e;'],
    [
      'rejoin: keys beyond the page go',
      rejoin('the_owners_table_may_have_grown'),
      'if (at < p->of.from || at >= p->of.to) return;',
      'if (at < p->of.from) return;',
    ],
    [
      'rejoin: a large part of the order is taken for its first chain',
      rejoin('what_the_owner_has_no_more_goes_however_much_it_is'),
      'p->at = next ? next : p->of.to;',
      'p->at = p->of.to;',
    ],
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
    [
      'rejoin: a shard that is served is a base',
      rejoin('what_is_served_or_leads_or_is_damaged_is_no_base'),
      's->state != SHARD_OPEN || s->starting',
      's->starting',
    ],
    [
      'rejoin: what leads is a base',
      rejoin('what_is_served_or_leads_or_is_damaged_is_no_base'),
      '(s->copy && s->copy->leads)',
      'false',
    ],
  ]),
  ...inFile('native/dataplane/life.c', [
    [
      'rejoin: the next copy goes by the name of the last on the disk',
      durable('a_copy_that_joins_with_its_base_gives_no_lease_before_that_is_on_its_disk'),
      's->incarnation = s->logged_as = id;',
      's->incarnation = id;\n    if (!s->logged_as) s->logged_as = id;',
    ],
  ]),
  ...inFile('native/client/copy_page.c', [
    [
      'rejoin: values that the base has are read',
      rejoin('a_copy_that_lacks_nothing_reads_nothing'),
      'if (c->config.base && c->same[i])',
      'if (c->config.base && c->same[i] && s != FKV_OK)',
    ],
  ]),
  ...inFile('native/client/copy.c', [
    [
      'rejoin: what is behind the last key stays',
      rejoin('what_the_owner_has_no_more_goes_however_much_it_is'),
      'cursor ? cursor : ALL_LISTED, &entries',
      'cursor, &entries',
    ],
  ]),
  ...inFile('core/shards/base.ts', [
    [
      'rejoin: the table of a damaged copy is kept',
      base('what is damaged is no base'),
      '!damaged && !full && attempts',
      'damaged !== undefined && !full && attempts',
    ],
    [
      'rejoin: a base that fails is tried for ever',
      base('a copy of a base that fails is tried again with the base, and at last without'),
      'attempts < ATTEMPTS',
      'attempts < Infinity',
    ],
    [
      'rejoin: a table is kept that others have replaced',
      base('it is closed when enough others have copies, when nobody wanted it for long, and when the server ends'),
      'others.length < replicas',
      'others.length >= 0',
    ],
    [
      'rejoin: a start that was replaced keeps its copies',
      copies('a copy is made by the start of a server that the metadata names'),
      'isNamed(c) && ',
      '',
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
  ...inFile('core/shards/backup.ts', [
    [
      'rejoin: a base goes by the name of the copy that it was',
      base('what a copy had is kept, under another name, until the leader has one made here'),
      "    life.incarnation = c.random64();\n    life.named = false;\n    c.ask(life, { do: 'keep base'",
      "    c.ask(life, { do: 'keep base'",
    ],
  ]),
];
