/** Who may use the data plane: tickets, challenges, proofs, revocations, join tokens. Each with the test that notices. */
import { always, drop, instead, never, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const joins = (title) => ({ test: 'core/metadata/join-tokens.test.ts', title });
const access = by('dataplane_access');
const tickets = (title) => ({ test: 'server/control/tickets.test.ts', title });
const rules = (title) => ({ test: 'core/metadata/tickets.test.ts', title });

export const mutations = rows('access', {
  'queue-pair-number': [
    drop(),
    by('fabric_verbs_device')('what_was_sent_to_a_connection_that_ended_is_not_the_next_one_s'),
  ],
  'message-of-another-tenant': [
    drop(),
    by('fabric_verbs_device')('a_message_in_one_tenant_s_memory_reaches_no_connection_of_another'),
  ],
  'join-token-twice': [always('one.hash !== token'), joins('a token takes in one server, and no other afterwards')],
  'join-token-unknown': [always(), joins('a token that was never made, or has expired, takes in nobody')],
  'join-token-expired': [instead('atMs', '0'), joins('a token that was never made, or has expired, takes in nobody')],
  'join-without-token': [
    never(),
    {
      test: 'test/integration/join-token.long.test.ts',
      title: 'a join token is good for one server, and not needed afterwards',
    },
  ],
  'revoked-maps-on': [
    drop('fkv_files_renew'),
    access('who_lost_its_right_finds_no_later_segment_in_memory_that_it_has_mapped'),
  ],
  'no-proof': [drop(), access('who_knows_a_client_s_id_and_ticket_ends_none_of_its_connections')],
  'challenge-twice': [drop(), access('a_hello_that_was_heard_opens_nothing_here_or_elsewhere')],
  'renewal-unproved': [drop(), access('a_renewal_is_of_the_same_client_is_proved_and_is_for_this_connection')],
  'renewed-as-another': [
    without('is_like'),
    access('a_renewal_is_of_the_same_client_is_proved_and_is_for_this_connection'),
  ],
  'outlives-ticket': [drop(), access('a_connection_ends_with_its_ticket_unless_it_was_shown_another')],
  'expired-ticket': [without('wall_ms'), by('dataplane')('a_connection_without_a_good_ticket_is_refused_and_told_why')],
  'revoked-ticket': [without('is_revoked'), access('who_is_revoked_goes_and_comes_back_with_a_later_ticket_only')],
  'old-secret': [without('secret_of'), access('a_ticket_is_good_under_the_next_secret_and_not_under_the_one_after_it')],
  'proof-for-anything': [
    instead('memcpy(all, &head, sizeof head)', 'memset(all, 0, sizeof head)'),
    by('wire')('a_pass_is_good_only_unchanged_and_proves_one_thing_once'),
  ],
  'late-revocation': [
    instead('c.atMs + REVOKED_AHEAD_MS', 'c.atMs'),
    tickets(
      'a revocation is of the tickets that servers make before they hear of it or with a clock ahead, and of none later',
    ),
  ],
  'second-revocation': [
    without('...rules'),
    rules('who is revoked again loses the tickets of the time between, whatever the clock of the second server says'),
  ],
  'revoked-renews': [never(), tickets('who is revoked is sent away, and comes back as another client')],
  'id-of-another-tenant': [
    instead('ticket?.tenant === tenant', 'ticket !== undefined'),
    tickets('a client that shows its ticket keeps its id, and nobody else gets it'),
  ],
  'resent-as-another': [
    drop(),
    by('session')('under_another_client_s_ticket_nothing_is_sent_again_and_the_rest_goes_on'),
  ],
  'connects-as-another': [
    without('OWNER_CONNECTING'),
    by('session')('a_connection_that_is_being_made_is_another_client_s_after_the_pass'),
  ],
});
