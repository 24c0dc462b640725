/**
 * What must not be missing from the tcp provider, each with the C test that notices: on a check, or by the thread
 * sanitizer's report.
 */
import { drop, instead, never, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const follow = by('fabric_tcp_follow');
const hostile = by('fabric_tcp_hostile');
const conformance = by('fabric_tcp');
const stress = by('fabric_tcp_stress');
const THREAD = { sanitizer: 'thread', runs: 30 };

export const mutations = rows('tcp', {
  'follow-another-tenant': [without('tenant'), follow('a_region_of_another_tenant_is_not_led_to')],
  'follow-beyond-end': [without('to.bytes'), follow('what_leads_nowhere_or_too_far_does_not_come')],
  'answered-unsent': [never(), hostile('answers_to_reads_that_were_not_sent_cut_a_connection_off')],
  'answer-length': [drop(), hostile('false_answers_cut_a_connection_off_and_write_nothing_beyond_the_buffer')],
  tenant: [without('tenant'), conformance('a_region_of_another_tenant_is_refused')],
  'any-rkey': [
    instead(
      'd->mrs[place_of(d, rkey)];',
      'd->mrs[place_of(d, rkey)]; for (size_t i = 0; !m && i < d->mr_room; i++) m = d->mrs[i];',
    ),
    conformance('a_wrong_rkey_is_refused'),
  ],
  bounds: [drop(), conformance('reads_beyond_the_bounds_are_refused')],
  'dereg-without-lock': [
    instead('pthread_rwlock_wrlock', 'pthread_rwlock_rdlock'),
    stress('a_region_may_be_unmapped_as_soon_as_dereg_returns', THREAD),
  ],
  'torn-words': [instead('fkv_copy_shared', '__builtin_memcpy'), stress('aligned_words_are_never_torn', THREAD)],
});
