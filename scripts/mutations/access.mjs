/** What must not be missing from who may use the data plane and what strangers can take, each with the test that notices. */
import { by, inFile } from './checks/in-file.mjs';
const holes = by('fabric_shm_holes');
const access = by('dataplane_access');

const rules = (title) => ({ test: 'core/metadata/tickets.test.ts', title });
const tickets = (title) => ({ test: 'server/control/tickets.test.ts', title });

const joins = (title) => ({ test: 'core/metadata/join-tokens.test.ts', title });

export const mutations = [
  // ---------------------------------------------------------------- join tokens
  ...inFile('core/metadata/join-tokens.ts', [
    [
      'join tokens: a token takes in one server after the other',
      joins('a token takes in one server, and no other afterwards'),
      'left.filter((one) => one.hash !== token)',
      'left',
    ],
    [
      'join tokens: any token takes in a server',
      joins('a token that was never made, or has expired, takes in nobody'),
      ' : undefined;',
      ' : left;',
    ],
    [
      'join tokens: a token is good for ever',
      joins('a token that was never made, or has expired, takes in nobody'),
      'const left = valid(all, atMs);',
      'const left = valid(all, 0 * atMs);',
    ],
  ]),
  ...inFile('server/admin-calls.ts', [
    [
      'join tokens: each guess becomes an entry of the log',
      {
        test: 'server/admin-calls.test.ts',
        title:
          'of join tokens that nobody has made only so many become entries of the log, and one that was made always does',
      },
      '!context.mayGuess())',
      'context.mayGuess === undefined)',
    ],
    [
      'join tokens: a server joins without one',
      {
        test: 'test/integration/join-token.long.test.ts',
        title: 'a join token is good for one server, and not needed afterwards',
      },
      'if (context.joinTokens && token === undefined)',
      'if (context.joinTokens && token === "")',
    ],
  ]),
  // ---------------------------------------------------------------- audit
  ...inFile('server/audit.ts', [
    [
      "audit: a directory's number is written",
      { test: 'server/audit.test.ts', title: 'no secret and nothing unforeseen of a call is written' },
      '{ directory: digitsOf(instance) }',
      '{ directory: instance }',
    ],
    [
      'audit: what succeeded is left out among failures',
      {
        test: 'server/audit.test.ts',
        title:
          'what succeeded is written beside any number of failures, and failures of one kind leave room for another',
      },
      "if (fields?.result === 'ok') {",
      "if (fields?.result === '') {",
    ],
    [
      'audit: failures of one kind take the places of others',
      {
        test: 'server/audit.test.ts',
        title:
          'what succeeded is written beside any number of failures, and failures of one kind leave room for another',
      },
      "const kind = fields?.event ?? '';",
      "const kind = '';",
    ],
  ]),
  // ---------------------------------------------------------------- whose message it is
  ...inFile('native/fabric/verbs/conn.c', [
    [
      "access: what a connection left in the queue is the next one's of its number",
      by('fabric_verbs_device')('what_was_sent_to_a_connection_that_ended_is_not_the_next_one_s'),
      '    verbs_drain(cq);\n    int e = verbs_pool_of',
      '    int e = verbs_pool_of',
    ],
  ]),
  ...inFile('native/fabric/verbs/poll.c', [
    [
      'access: a message is given to a connection of another tenant',
      by('fabric_verbs_device')('a_message_in_one_tenant_s_memory_reaches_no_connection_of_another'),
      'if (c && c->pool != b->pool) c = NULL;',
      '',
    ],
  ]),
  // ---------------------------------------------------------------- who comes in
  ...inFile('native/dataplane/connection.c', [
    [
      'access: who is revoked reads later segments in memory that it has mapped',
      access('who_lost_its_right_finds_no_later_segment_in_memory_that_it_has_mapped'),
      'fkv_files_renew(s->files[k]);',
      '(void)s;',
    ],
    [
      'access: a proof is not looked at',
      access('who_knows_a_client_s_id_and_ticket_ends_none_of_its_connections'),
      'if (!access_proved(w->access, t, fkv_hello_head(h), nonce, h->proof)) return FKV_UNAUTHORIZED;',
      '(void)nonce;',
    ],
    [
      'access: a challenge is answered twice',
      access('a_hello_that_was_heard_opens_nothing_here_or_elsewhere'),
      '    challenge_answered(&w->challenges, h->challenge);\n',
      '',
    ],
    [
      'access: a renewal is not proved',
      access('a_renewal_is_of_the_same_client_is_proved_and_is_for_this_connection'),
      'if (!access_proved(w->access, &r.ticket, FKV_RENEWAL_HEAD, c->nonce, r.proof)) return FKV_UNAUTHORIZED;',
      '',
    ],
    [
      'access: a connection goes on as another client',
      access('a_renewal_is_of_the_same_client_is_proved_and_is_for_this_connection'),
      'if (!is_like(&r.ticket, &c->ticket) || ',
      'if (',
    ],
  ]),
  ...inFile('native/dataplane/loop.c', [
    [
      'access: connections outlive their tickets',
      access('a_connection_ends_with_its_ticket_unless_it_was_shown_another'),
      'if (w->wall_ms >= w->expiry_ms) clients_expire(w);',
      '',
    ],
  ]),
  ...inFile('native/dataplane/access.c', [
    [
      'access: an expired ticket opens',
      by('dataplane')('a_connection_without_a_good_ticket_is_refused_and_told_why'),
      'wall_ms < t->expires_ms && ',
      '(wall_ms || true) && ',
    ],
    [
      'access: a revoked ticket opens',
      access('who_is_revoked_goes_and_comes_back_with_a_later_ticket_only'),
      ' && !is_revoked(a, t);',
      ' && (is_revoked(a, t) || true);',
    ],
    [
      'access: a ticket of a secret that is gone keeps its connection',
      access('a_ticket_is_good_under_the_next_secret_and_not_under_the_one_after_it'),
      'secret_of(a, t) && ',
      '',
    ],
  ]),
  ...inFile('native/dataplane/challenge.c', [
    [
      'access: a challenge is good for ever',
      access('each_challenge_is_new_is_found_until_it_is_answered_and_not_for_ever'),
      'age > CHALLENGES || ',
      '',
    ],
  ]),
  ...inFile('native/wire/ticket.c', [
    [
      'access: a proof is for anything',
      by('wire')('a_pass_is_good_only_unchanged_and_proves_one_thing_once'),
      '    memcpy(all, &head, sizeof head);\n',
      '    memset(all, 0 * (int)head, sizeof head);\n',
    ],
  ]),
  ...inFile('core/metadata/tickets.ts', [
    [
      'access: a server that hears of a revocation late makes tickets that outlive it',
      tickets(
        'a revocation is of the tickets that servers make before they hear of it or with a clock ahead, and of none later',
      ),
      'c.atMs + REVOKED_AHEAD_MS, ',
      'c.atMs, ',
    ],
    [
      'access: a second revocation brings back what the first one took',
      rules('who is revoked again loses the tickets of the time between, whatever the clock of the second server says'),
      ', ...rules.revoked.filter(isSame).map((r) => r.beforeMs + 1)',
      '',
    ],
  ]),
  ...inFile('server/admin-calls.ts', [
    [
      'access: a revocation dated far ahead undoes others',
      tickets(
        'a revocation by a server whose clock was far ahead once undoes no other one whose tickets are still good',
      ),
      'Math.min(latestWallMs(), most)',
      'latestWallMs()',
    ],
    [
      'access: tickets made after a revocation outlive one of another kind',
      tickets(
        'who comes back after a revocation loses the next ticket to one of another kind too, by a clock that stood or is behind',
      ),
      ', ...afterOthers);',
      ');',
    ],
  ]),
  ...inFile('server/latest-wall.ts', [
    [
      'access: tickets of before the clock was set back outlive a revocation',
      tickets('a revocation is of the tickets too that were made before the clock was set back'),
      'Math.max(this.#latest, this.#wallMs())',
      'this.#wallMs()',
    ],
  ]),
  ...inFile('server/control/subscription.ts', [
    [
      'access: who is revoked gets new tickets',
      tickets('who is revoked is sent away, and comes back as another client'),
      'const revoked = this.#isRevoked(state);',
      'const revoked = this.#isRevoked(state) && this.tenant < 0;',
    ],
  ]),
  ...inFile('server/control/tickets.ts', [
    [
      'access: a revoked ticket keeps its id',
      tickets('who is revoked is sent away, and comes back as another client'),
      'ticket.issuedMs >= revokedBeforeMs(',
      'ticket.issuedMs >= 0 * revokedBeforeMs(',
    ],
    [
      'access: a ticket of another tenant keeps its id',
      tickets('a client that shows its ticket keeps its id, and nobody else gets it'),
      'ticket?.tenant === tenant && ',
      'ticket !== undefined && ',
    ],
  ]),
  ...inFile('native/client/session/owner.c', [
    [
      "access: changes are sent again in another client's name",
      by('session')('under_another_client_s_ticket_nothing_is_sent_again_and_the_rest_goes_on'),
      'if (open && r->sent_before && fkv_op_is(r->head.op, FKV_CHANGES)) request_give_up(r, FKV_DISCONNECTED);',
      '(void)open;',
    ],
  ]),
  // ---------------------------------------------------------------- memory that clients offer
  ...inFile('native/fabric/shm/attach.c', [
    [
      'access: an owner fills its tables with what a client offers',
      holes('of_memory_that_a_client_offers_the_owner_has_in_its_tables_what_it_read'),
      'if (!is_client) madvise(',
      'madvise(',
    ],
  ]),
];
