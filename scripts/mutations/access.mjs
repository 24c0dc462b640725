/** What must not be missing from who may use the data plane and what strangers can take, each with the test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const hostileShm = by('fabric_shm_hostile');
const requests = by('fabric_verbs_requests');
const holes = by('fabric_shm_holes');
const access = by('dataplane_access');
const growth = by('dataplane_growth');

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
    [
      'join tokens: they are kept without a bound',
      joins('tokens are bounded, and those that expired make room'),
      'if (others.length >= JOIN_TOKENS_MAX)',
      'if (others.length >= Infinity)',
    ],
  ]),
  ...inFile('server/control/client-list.ts', [
    [
      'clients: one answer has them all, however many there are',
      {
        test: 'server/control/client-list.test.ts',
        title: 'pages follow each other, have an end, and no client twice',
      },
      'rest.slice(0, CLIENTS_PAGE)',
      'rest.slice(0)',
    ],
  ]),
  ...inFile('server/admin-calls.ts', [
    [
      'clients: a monitor sees who they are',
      { test: 'server/control/client-list.test.ts', title: 'operators alone may ask' },
      "access === 'operator' && Object.hasOwn(checks, method)",
      'Object.hasOwn(checks, method)',
    ],
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
  ...inFile('server/control/peer-plane.ts', [
    [
      'join tokens: guesses cost no time',
      {
        test: 'server/control/peer-plane.test.ts',
        title: 'wrong join tokens make their address wait, no other, and no right one',
      },
      'const waitMs = logins.wrong(guesses);',
      'const waitMs = 0 * logins.wrong(guesses);',
    ],
  ]),
  // ---------------------------------------------------------------- audit
  ...inFile('server/audit.ts', [
    [
      'audit: a join token is written',
      { test: 'server/audit.test.ts', title: 'no secret and nothing unforeseen of a call is written' },
      '{ joinToken: digitsOf(token) }',
      '{ joinToken: token }',
    ],
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
    [
      'audit: what others say ends up in lines of its own',
      { test: 'server/audit.test.ts', title: 'failed logins are written so often and then counted, whatever they say' },
      'const text = printable(reason, TEXT_MAX);',
      'const text = reason;',
    ],
  ]),
  ...inFile('server/log.ts', [
    [
      'audit: failed logins are written without a bound',
      { test: 'server/audit.test.ts', title: 'failed logins are written so often and then counted, whatever they say' },
      'if (this.#said <= this.#lines) this.#say(text, fields);',
      'this.#say(text, fields);',
    ],
    [
      'audit: who did what is not written where only errors are',
      {
        test: 'server/log.test.ts',
        title: 'who did what is written whatever level is asked for, as text or as an object',
      },
      "this.#sink('info', auditText(fields), fields);",
      "if (order[this.#least] !== 'error') this.#sink('info', auditText(fields), fields);",
    ],
  ]),
  ...inFile('client/cluster.ts', [
    [
      'roles: a reader is not told that it may only read',
      {
        test: 'test/integration/reader.test.ts',
        title: 'a reader is told that it may only read, whichever change it asks for',
      },
      "this.#access.readOnly = access === 'reader';",
      'this.#access.readOnly = access === undefined;',
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
      'access: a wrong answer uses a challenge up',
      access('a_hello_that_was_heard_opens_nothing_here_or_elsewhere'),
      '    if (!access_proved(w->access, t, fkv_hello_head(h)',
      '    challenge_answered(&w->challenges, h->challenge);\n    if (!access_proved(w->access, t, fkv_hello_head(h)',
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
    [
      'access: an earlier ticket that is shown again ends a connection',
      access('a_connection_ends_with_its_ticket_unless_it_was_shown_another'),
      'if (r.ticket.expires_ms < c->ticket.expires_ms) return FKV_OK;',
      '',
    ],
    [
      'access: connections outlive their tickets where nothing comes',
      access('an_idle_connection_ends_in_time'),
      'if (w->expiry_ms == UINT64_MAX) return UINT64_MAX;',
      'if (w->expiry_ms) return UINT64_MAX;',
    ],
    [
      'access: connections outlive rules that their tickets break',
      access('who_is_revoked_goes_and_comes_back_with_a_later_ticket_only'),
      '    w->wall_ms = fkv_wall_ms();\n    clients_expire(w);\n',
      '',
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
      'access: nonces come again when numbers do',
      access('numbers_of_challenges_begin_again_and_their_nonces_do_not'),
      'fkv_mac(&c->secret, &whole, sizeof whole, made.nonce);',
      'fkv_mac(&c->secret, &number, sizeof number, made.nonce);',
    ],
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
      'access: two exchange the ticket secret at once',
      rules('two that exchange the secret at once exchange it once'),
      'if (c.number !== number + 1)',
      'if (c.number < number)',
    ],
    [
      'access: revocations are forgotten while tickets live',
      rules('revocations are kept for longer than tickets live, are bounded, and outlive an exchange'),
      'r.beforeMs + KEPT_MS > atMs',
      'r.beforeMs > atMs',
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
      'access: after two exchanges in a row clients wait for tickets that open something',
      tickets('a client whose ticket is of a secret that is gone gets another at once'),
      'if (this.#isStale(state)) this.#renew(state);\n      else ',
      '',
    ],
    [
      'access: who is revoked gets new tickets',
      tickets('who is revoked is sent away, and comes back as another client'),
      'const revoked = this.#isRevoked(state);',
      'const revoked = this.#isRevoked(state) && this.tenant < 0;',
    ],
    [
      'access: nobody gets a ticket of the new secret before its time',
      tickets('after another secret all get tickets of it, at first new clients too by the one before'),
      'setTimeout(() => this.#renew(), settleMs',
      'setTimeout(() => undefined, settleMs',
    ],
  ]),
  ...inFile('server/metadata/leader-duties.ts', [
    [
      'access: the ticket secret is never exchanged',
      {
        test: 'server/metadata/driver.test.ts',
        title:
          'the leader makes the cluster, gives the shards out when a server stays away, and exchanges the ticket secret every day',
      },
      'rotatedMs) >= ROTATE_MS',
      'rotatedMs) >= 2 * ROTATE_MS',
    ],
  ]),
  ...inFile('server/control/tickets.ts', [
    [
      'access: tickets are made with a secret that owners may not know yet',
      tickets('after another secret all get tickets of it, at first new clients too by the one before'),
      'settles ? previous : present',
      'settles && tenant < 0 ? previous : present',
    ],
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
      'access: clients do not renew',
      by('client')('a_client_that_is_given_tickets_in_time_keeps_its_connection'),
      'timer_set(&s->timers, &o->timer, 0);\n        renewal_look(o);\n',
      'timer_set(&s->timers, &o->timer, 0);\n',
    ],
    [
      "access: changes are sent again in another client's name",
      by('session')('under_another_client_s_ticket_nothing_is_sent_again_and_the_rest_goes_on'),
      'if (open && r->sent_before && fkv_op_is(r->head.op, FKV_CHANGES)) request_give_up(r, FKV_DISCONNECTED);',
      '(void)open;',
    ],
  ]),
  // ---------------------------------------------------------------- places
  ...inFile('native/fabric/verbs/events.c', [
    [
      'access: peers that flood an owner over verbs take memory without a bound',
      requests('of_peers_that_ask_faster_than_they_are_looked_at_the_oldest_give_way'),
      'evicted = take_for(cq, e->from);',
      '(void)take_for;',
    ],
    [
      'access: peers of one address end those of another over verbs',
      requests('peers_of_one_address_end_none_of_another'),
      'fab_strangers_count(&waiting, w, w->from)',
      'fab_strangers_count(&waiting, w, 0)',
    ],
  ]),
  ...inFile('native/fabric/shm/listen.c', [
    [
      'access: silent peers over shm are not bounded',
      hostileShm('silent_peers_take_no_places_and_the_oldest_of_them_goes'),
      '            if (l->silent >= SHM_SILENT) end_oldest_silent(l);\n',
      '',
    ],
  ]),
  ...inFile('native/fabric/shm/link.c', [
    [
      'access: silent peers over shm take places',
      hostileShm('silent_peers_take_no_places_and_the_oldest_of_them_goes'),
      'if (l->conns - l->silent >= ',
      'if (l->conns > ',
    ],
  ]),
  // ---------------------------------------------------------------- memory that clients offer
  ...inFile('native/fabric/shm/attach.c', [
    [
      'access: an owner maps memory with holes',
      holes('memory_with_holes_is_not_mapped_and_stays_as_it_is'),
      'hole >= 0 && (uint64_t)hole >= end',
      'hole <= (off_t)end',
    ],
    [
      'access: an owner fills its tables with what a client offers',
      holes('of_memory_that_a_client_offers_the_owner_has_in_its_tables_what_it_read'),
      'if (!is_client) madvise(',
      'madvise(',
    ],
  ]),
  // ---------------------------------------------------------------- descriptors
  ...inFile('native/dataplane/start.c', [
    [
      'access: strangers take the descriptors of segments',
      growth('clients_that_say_nothing_do_not_take_the_descriptors_of_segments'),
      '.spare_descriptors = spare_descriptors(),',
      '.spare_descriptors = 0 * spare_descriptors(),',
    ],
  ]),
  ...inFile('native/table/segment.c', [
    [
      'access: a lack of descriptors is called a full table',
      growth('without_descriptors_for_segments_changes_are_told_that_the_system_is_at_fault'),
      't->refused_why = why;',
      't->refused_why = why == FKV_OK ? why : FKV_TABLE_FULL;',
    ],
  ]),
];
