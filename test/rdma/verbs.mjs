/** What makes verbs safe (native/fabric/verbs), each with the C test that notices over soft-RoCE or soft-iWARP. */
import { drop, instead, never } from '../../scripts/mutations/checks/operators.mjs';
import { by, rows } from '../../scripts/mutations/checks/rows.mjs';

const rxe = (test) => by('fabric_verbs')(test, { device: 'rxe' });

const NEVER_COMPLETED = rxe('what_the_device_never_completes_ends_in_time');
const LOST_DEVICE = rxe('a_client_lets_a_lost_device_go_and_binds_anew');

export const mutations = rows('verbs', {
  'rkey-upper-half': [instead('r[i].rkey >> 32', '0'), rxe('a_wrong_rkey_is_refused')],
  'one-protection-domain': [instead('p->tenant == tenant', 'p'), rxe('a_region_of_another_tenant_is_refused')],
  'unanswered-ended-as-other': [drop(), NEVER_COMPLETED],
  'posted-unnoted': [drop(), NEVER_COMPLETED],
  'lost-device-bound': [never(), LOST_DEVICE],
  'stays-registered': [drop(), LOST_DEVICE],
});
