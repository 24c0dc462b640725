/**
 * What must not be missing between trust domains, at owners and on the control port, each with the test that notices.
 */
import { by, inFile } from './checks/in-file.mjs';

const owner = by('dataplane_trust');
const test = (file, title) => ({ test: file, title });
const control = (title) => test('server/control/control-plane.test.ts', title);

export const mutations = [
  // ---------------------------------------------------------------- owners
  ...inFile('native/dataplane/request.c', [
    [
      'trust: requests for shards of other domains are answered',
      owner('every_kind_of_request_for_a_shard_of_another_domain_is_refused'),
      'if (!fkv_range_has(c->trust->shards, r->shard)) return FKV_UNAUTHORIZED;',
      '',
    ],
  ]),
  ...inFile('native/dataplane/read.c', [
    [
      'trust: a lease tells of all domains',
      owner('a_lease_covers_the_shards_of_the_clients_domain_only'),
      'streams(o, o->client->trust->shards.count);',
      'static trust_domain all; all.shards.count = o->worker->d->c.shards; o->client->trust = &all; streams(o, all.shards.count);',
    ],
  ]),
  ...inFile('native/dataplane/memory.c', [
    [
      'trust: all regions are registered for domain 0',
      owner('a_read_with_the_right_rkey_of_another_domains_region_is_refused'),
      '&s->region, dataplane_trust_of(w->d, shard), &s->mr[p]',
      '&s->region, 0 * shard, &s->mr[p]',
    ],
  ]),
  ...inFile('native/dataplane/connection.c', [
    [
      'trust: every connection is of domain 0',
      owner('a_read_with_the_right_rkey_of_another_domains_region_is_refused'),
      'fab_accept(wc->conn, h.ticket.trust, &welcome, sizeof welcome)',
      'fab_accept(wc->conn, 0, &welcome, sizeof welcome)',
    ],
    [
      'trust: one domain may take the connections of all',
      owner('connections_of_one_domain_leave_room_for_the_others'),
      'if (count_up(places_of(t, flags, &none), t->max_clients)) return true;',
      'if (count_up(places_of(t, flags, &none), UINT32_MAX)) return true;',
    ],
  ]),
  ...inFile('native/dataplane/connection.c', [
    [
      'dataplane: a client has as many connections as it makes',
      by('dataplane_limits')('a_client_has_no_more_than_a_few_connections_and_the_newest_stay'),
      'if (n > CONNECTIONS_OF_ONE) client_doom(oldest);',
      '(void)oldest;',
    ],
  ]),
  // ---------------------------------------------------------------- what clients are told
  ...inFile('core/protocol/client-map.ts', [
    [
      'trust: clients are told of the shards of all domains',
      test(
        'core/protocol/client-map.test.ts',
        'a client of a trust domain is told of its shards, their regions and their owners, and of nothing else',
      ),
      'return state.shards.slice(first, first + count);',
      'return count < 0 ? state.shards.slice(first) : state.shards;',
    ],
  ]),
  ...inFile('server/control/control-plane.ts', [
    [
      'trust: every ticket is one for the default domain',
      control('a token opens one trust domain: its clients get its shards, a ticket for it, and what changes there'),
      'issueTicket(makeTicket, state(), clientId, trust, Date.now())',
      'issueTicket(makeTicket, state(), clientId, DEFAULT_TRUST, Date.now())',
    ],
    [
      'trust: any client may ask what operators do',
      control('clients of a trust domain make no calls'),
      'if (this.#trust !== DEFAULT_TRUST) {',
      'if (this.#trust < DEFAULT_TRUST) {',
    ],
    [
      'trust: a domain has as many clients as come',
      control('a trust domain has no more clients than it may have'),
      'if (this.#host.has(trust) >= maxClients) {',
      'if (this.#host.has(trust) >= Infinity) {',
    ],
  ]),
  ...inFile('server/control/auth.ts', [
    [
      'trust: the token of a domain opens the default one',
      control('a token opens one trust domain: its clients get its shards, a ticket for it, and what changes there'),
      'return named?.domain ?? (open ? {} : undefined);',
      'return named !== undefined || open ? {} : undefined;',
    ],
  ]),
  ...inFile('server/control/client-session.ts', [
    [
      'trust: the frames of one domain are sent to another',
      control('a token opens one trust domain: its clients get its shards, a ticket for it, and what changes there'),
      'const last = this.#last.get(trust);',
      'const last = [...this.#last.values()][0];',
    ],
  ]),
  ...inFile('server/config/trust-domains.ts', [
    [
      'trust: a server starts whatever trust domains it thinks of',
      test(
        'server/config/trust-domains.test.ts',
        'a server whose trust domains are not those of the cluster does not belong to it',
      ),
      'if (said(given) === said(made)) return;',
      "if (said(given) !== '') return;",
    ],
  ]),
];
