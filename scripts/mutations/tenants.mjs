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
  ]),
  ...inFile('server/control/control-plane.ts', [
    [
      'tenant: every ticket is one for the default domain',
      control('a token opens one tenant: its clients get its shards, a ticket for it, and what changes there'),
      '{ client, tenant, writes }',
      '{ client, tenant: 0, writes }',
    ],
    [
      'roles: the ticket of a reader writes',
      control('a token says what its owner may do: calls by role, tickets that write or not'),
      "const writes = access === 'writer';",
      'const writes = true;',
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
];
