/**
 * What must not be missing between tenants, at owners and on the control port, each with the test that notices.
 */
import { by, inFile } from './checks/in-file.mjs';

const owner = by('dataplane_tenant');
const test = (file, title) => ({ test: file, title });
const control = (title) => test('server/control/control-plane.test.ts', title);

export const mutations = [
  // ---------------------------------------------------------------- owners
  ...inFile('native/dataplane/request.c', [
    [
      'tenant: requests for shards of other domains are answered',
      owner('every_kind_of_request_for_a_shard_of_another_domain_is_refused'),
      'if (!fkv_range_has(c->tenant->shards, r->shard)) return FKV_UNAUTHORIZED;',
      '',
    ],
  ]),
  ...inFile('native/dataplane/read.c', [
    [
      'tenant: a lease tells of all domains',
      owner('a_lease_covers_the_shards_of_the_clients_domain_only'),
      'streams(o, o->client->tenant->shards.count);',
      'static dp_tenant all; all.shards.count = o->worker->d->c.shards; o->client->tenant = &all; streams(o, all.shards.count);',
    ],
  ]),
  ...inFile('native/dataplane/memory.c', [
    [
      'tenant: all regions are registered for domain 0',
      owner('a_read_with_the_right_rkey_of_another_domains_region_is_refused'),
      '&s->region, dataplane_tenant_of(w->d, shard), &s->mr[p]',
      '&s->region, 0 * shard, &s->mr[p]',
    ],
  ]),
  ...inFile('native/dataplane/connection.c', [
    [
      'tenant: every connection is of domain 0',
      owner('a_read_with_the_right_rkey_of_another_domains_region_is_refused'),
      'fab_accept(wc->conn, h.ticket.tenant, &welcome, sizeof welcome)',
      'fab_accept(wc->conn, 0, &welcome, sizeof welcome)',
    ],
    [
      'tenant: one domain may take the connections of all',
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
      'tenant: clients are told of the shards of all domains',
      test(
        'core/protocol/client-map.test.ts',
        'a client of a tenant is told of its shards, their regions and their owners, and of nothing else',
      ),
      'return state.shards.slice(first, first + count);',
      'return count < 0 ? state.shards.slice(first) : state.shards;',
    ],
  ]),
  ...inFile('server/control/control-plane.ts', [
    [
      'tenant: every ticket is one for the default domain',
      control('a token opens one tenant: its clients get its shards, a ticket for it, and what changes there'),
      'issueTicket(makeTicket, state(), clientId, tenant, Date.now())',
      'issueTicket(makeTicket, state(), clientId, DEFAULT_TENANT, Date.now())',
    ],
    [
      'tenant: any client may ask what operators do',
      control('clients of a tenant make no calls'),
      'if (this.#tenant !== DEFAULT_TENANT) {',
      'if (this.#tenant < DEFAULT_TENANT) {',
    ],
    [
      'tenant: a domain has as many clients as come',
      control('a tenant has no more clients than it may have'),
      'if (this.#host.has(tenant) >= maxClients) {',
      'if (this.#host.has(tenant) >= Infinity) {',
    ],
  ]),
  ...inFile('server/control/auth.ts', [
    [
      'tenant: the token of a domain opens the default one',
      control('a token opens one tenant: its clients get its shards, a ticket for it, and what changes there'),
      'return named?.domain ?? (open ? {} : undefined);',
      'return named !== undefined || open ? {} : undefined;',
    ],
  ]),
  ...inFile('server/control/subscription.ts', [
    [
      'tenant: the frames of one domain are sent to another',
      control('a token opens one tenant: its clients get its shards, a ticket for it, and what changes there'),
      'const last = this.#last.get(tenant);',
      'const last = [...this.#last.values()][0];',
    ],
  ]),
  ...inFile('server/config/tenants.ts', [
    [
      'tenant: a server starts whatever tenants it thinks of',
      test(
        'server/config/tenants.test.ts',
        'a server whose tenants are not those of the cluster does not belong to it',
      ),
      'if (said(given) === said(made)) return;',
      "if (said(given) !== '') return;",
    ],
  ]),
];
