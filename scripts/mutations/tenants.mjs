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
      'streams(o, lease_places(o->client->tenant->shards));',
      'static dp_tenant all; all.shards.count = o->worker->d->c.shards; o->client->tenant = &all; streams(o, lease_places(all.shards));',
    ],
  ]),
  ...inFile('native/dataplane/memory.c', [
    [
      'tenant: all regions are registered for domain 0',
      owner('a_read_with_the_right_rkey_of_another_domains_region_is_refused'),
      '&s->region, dataplane_tenant_of(d, shard), &s->mr[p]',
      '&s->region, 0 * shard, &s->mr[p]',
    ],
  ]),
  ...inFile('native/dataplane/connection.c', [
    [
      'tenant: every connection is of domain 0',
      owner('a_read_with_the_right_rkey_of_another_domains_region_is_refused'),
      'fab_accept(conn, t->tenant, welcome, sizeof *welcome)',
      'fab_accept(conn, 0, welcome, sizeof *welcome)',
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
      'if (n > CONNECTIONS_OF_ONE) client_doom(oldest, FKV_END_SURPLUS);',
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
      '{ client, tenant, writes }',
      '{ client, tenant: 0, writes }',
    ],
    [
      'roles: clients may call what operators call',
      control('clients make no calls, also those of the default tenant'),
      'if (!isCaller(access)) {',
      "if (access === 'joiner') {",
    ],
    [
      'roles: the ticket of a reader writes',
      control('a token says what its owner may do: calls by role, tickets that write or not'),
      "const writes = access === 'writer';",
      'const writes = true;',
    ],
    [
      'tenant: a domain has as many clients as come',
      control('a tenant has no more clients than it may have'),
      'if (this.#host.has(tenant) >= maxClients) {',
      'if (this.#host.has(tenant) >= Infinity) {',
    ],
  ]),
  ...inFile('server/control/peer-plane.ts', [
    [
      'roles: a server that asks for its place is a peer',
      test('server/control/peer-plane.test.ts', 'a server that asks for its place may do nothing else'),
      "hello.join === true ? 'joiner' : 'peer'",
      "'peer'",
    ],
  ]),
  ...inFile('server/control/auth.ts', [
    [
      'tenant: the token of a tenant opens the default one',
      control('a token opens one tenant: its clients get its shards, a ticket for it, and what changes there'),
      'const of = { tenant: name,',
      'const of = {',
    ],
    [
      'roles: the token of one role opens another',
      control('a wrong token, a missing one and one of another role are refused'),
      'key.tokens.accepts(token) && key.role === role',
      'key.tokens.accepts(token)',
    ],
    [
      'roles: with some tokens, a role without one is open',
      test('server/control/auth.test.ts', 'without any token everybody is let in; with one, nobody without'),
      'if (this.isOpen) return',
      'if (!this.#keys.some((key) => key.role === role)) return',
    ],
    [
      'roles: a token that was taken out of its file is good until the server starts again',
      test(
        'server/control/auth.test.ts',
        'a file is read again when it has changed, each of its lines is good, and one that cannot be read leaves what was',
      ),
      ': new WatchedFiles([source.file], read, watch);',
      ': { value: read() };',
    ],
  ]),
  ...inFile('server/config/secret-file.ts', [
    [
      'roles: a file of secrets may be read by all',
      test('server/config/load.test.ts', 'a file of secrets that others may read is refused'),
      'if (othersMay(file, process.getuid?.() ?? 0))',
      'if (mode < 0)',
    ],
  ]),
  ...inFile('server/config/load.ts', [
    [
      'roles: one token for two roles',
      test(
        'server/config/load.test.ts',
        'each role has tokens of its own, from a text or a file, and one source must be meant',
      ),
      'if (other !== undefined && other !== of)',
      'if (false)',
    ],
    [
      'roles: several servers have no secret of their own',
      test('server/config/load.test.ts', 'several servers that use tokens have one for themselves'),
      '    tokens.peer === undefined &&\n',
      '    cluster === null &&\n',
    ],
    [
      'roles: TLS counts as access control',
      test(
        'server/config/load.test.ts',
        'beyond loopback a server needs a token or --insecure; TLS alone lets anybody in',
      ),
      'cluster === undefined && !insecure',
      'tls === undefined && !insecure',
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
