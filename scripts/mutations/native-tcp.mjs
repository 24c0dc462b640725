/**
 * What must not be missing from the tcp provider, each with the C test that notices: on a check, or by the thread
 * sanitizer's report.
 */
import { by, inFile } from './checks/in-file.mjs';

const THREAD = { sanitizer: 'thread', runs: 30 }; // a race is not seen in each run
const hostile = by('fabric_tcp_hostile');
const stress = by('fabric_tcp_stress');
const conformance = by('fabric_tcp');
const follow = by('fabric_tcp_follow');

export const mutations = [
  // ---------------------------------------------------------------- followed READs
  ...inFile('native/fabric/tcp/follow.c', [
    [
      'tcp: a READ is followed into another tenant',
      follow('a_region_of_another_tenant_is_not_led_to'),
      'next->tenant != c->tenant || ',
      '',
    ],
    [
      'tcp: a READ is followed beyond the end of a region',
      follow('what_leads_nowhere_or_too_far_does_not_come'),
      'if (to.offset > next->bytes || to.bytes > next->bytes - to.offset) return NULL;',
      'if (to.offset >= next->bytes) return NULL;',
    ],
  ]),
  ...inFile('native/fabric/tcp/mr.c', [
    [
      'tcp: a region that is deregistered keeps its name',
      follow('a_group_leads_to_its_own_regions_only'),
      '        tcp_unname(m);\n',
      '',
    ],
  ]),
  ...inFile('native/fabric/tcp/frame.c', [
    [
      'tcp: the bounds of a followed READ are believed',
      follow('a_followed_read_beyond_the_bounds_cuts_a_connection_off'),
      '(uint32_t)f->argument > FAB_FOLLOW_FIRST_MAX || f->argument >> 32 > FAB_FOLLOW_MAX',
      'f->argument >> 32 > UINT32_MAX',
    ],
  ]),
  // ---------------------------------------------------------------- what a peer may say
  ...inFile('native/fabric/tcp/rx.c', [
    [
      'tcp: the number of an answer is believed',
      hostile('false_answers_cut_a_connection_off_and_write_nothing_beyond_the_buffer'),
      ' || f->number != (uint32_t)c->answered) return BAD',
      ') return BAD',
    ],
    [
      'tcp: the length of an answer is believed',
      hostile('false_answers_cut_a_connection_off_and_write_nothing_beyond_the_buffer'),
      'if (end > q->bytes || (f->last != (end == q->bytes) && !(q->next_bytes && end == q->bytes))) return BAD;',
      '(void)end;',
    ],
    [
      'tcp: the length of what comes along is believed',
      follow('false_halves_cut_a_connection_off_and_write_nothing_beyond_their_places'),
      'f->argument == 0 || f->argument > q->next_bytes || !f->last',
      'f->argument == 0 || !f->last',
    ],
    [
      'tcp: frames before the answer to a hello are taken',
      hostile('a_client_that_does_not_wait_for_the_answer_is_cut_off'),
      'state == TCP_UP || f.type == TCP_BYE ? take_frame(c, &f) : BAD',
      'state ? take_frame(c, &f) : BAD',
    ],
    [
      'tcp: the limits of a hello are believed',
      hostile('hellos_that_cannot_be_served_are_dropped_or_refused_unseen'),
      'most < FAB_MESSAGE_MIN || h->window < tcp_cost(most) || h->depth == 0',
      'most == UINT32_MAX',
    ],
  ]),
  // ---------------------------------------------------------------- memory
  ...inFile('native/fabric/tcp/mr.c', [
    [
      'tcp: tenants are not compared',
      conformance('a_region_of_another_tenant_is_refused'),
      'm->tenant != tenant || ',
      '',
    ],
    [
      'tcp: any rkey opens a region',
      conformance('a_wrong_rkey_is_refused'),
      '    const tcp_mr *m = d->mrs[place_of(d, rkey)];\n',
      '    const tcp_mr *m = d->mrs[place_of(d, rkey)];\n    for (size_t i = 0; !m && i < d->mr_room; i++) m = d->mrs[i];\n',
    ],
    [
      'tcp: bounds are not compared',
      conformance('reads_beyond_the_bounds_are_refused'),
      'if (at > m->bytes || bytes > m->bytes - at) return NULL;',
      '',
    ],
  ]),
  ...inFile('native/fabric/tcp/mr.c', [
    [
      'tcp: deregistration does not wait for copies',
      stress('a_region_may_be_unmapped_as_soon_as_dereg_returns', THREAD),
      '        pthread_rwlock_wrlock(&d->mr_lock);\n        remove_from(d, m->rkey);\n        tcp_unname(m);\n        pthread_rwlock_unlock(&d->mr_lock);',
      '        remove_from(d, m->rkey);\n        tcp_unname(m);',
    ],
  ]),
  ...inFile('native/fabric/tcp/serve.c', [
    [
      'tcp: regions are copied by memcpy',
      stress('aligned_words_are_never_torn', THREAD),
      'fkv_copy_shared(out + used, from + q->done, n);',
      '__builtin_memcpy(out + used, from + q->done, n);',
    ],
  ]),
];
