/**
 * What must not be missing between tenants, at owners and on the control port, each with the test that notices.
 */
import { always, drop, instead, never, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const owner = by('dataplane_tenant');
const test = (file, title) => ({ test: file, title });
const control = (title) => test('server/control/control-plane.test.ts', title);

export const mutations = rows('tenants', {
  'another-tenants-shard': [drop(), owner('every_kind_of_request_for_a_shard_of_another_domain_is_refused')],
  'regions-shared': [
    instead('dataplane_tenant_of(d, shard)', '0'),
    owner('a_read_with_the_right_rkey_of_another_domains_region_is_refused'),
  ],
  'connections-shared': [
    instead('t->tenant', '0'),
    owner('a_read_with_the_right_rkey_of_another_domains_region_is_refused'),
  ],
  'default-ticket': [
    instead('tenant, writes', 'tenant: 0, writes'),
    control('a token opens one tenant: its clients get its shards, a ticket for it, and what changes there'),
  ],
  'reader-writes': [always(), control('a token says what its owner may do: calls by role, tickets that write or not')],
  'joiner-as-peer': [
    never(),
    test('server/control/peer-plane.test.ts', 'a server that asks for its place may do nothing else'),
  ],
  'default-token': [
    without('tenant: name'),
    control('a token opens one tenant: its clients get its shards, a ticket for it, and what changes there'),
  ],
  'any-role': [without('key.role'), control('a wrong token, a missing one and one of another role are refused')],
  'open-role': [
    instead('this.isOpen', '!this.#keys.some((key) => key.role === role)'),
    test('server/control/auth.test.ts', 'without any token everybody is let in; with one, nobody without'),
  ],
  'secrets-for-all': [never(), test('server/config/load.test.ts', 'a file of secrets that others may read is refused')],
  'tls-as-access': [
    instead('cluster === undefined', 'tls === undefined'),
    test(
      'server/config/load.test.ts',
      'beyond loopback a server needs a token or --insecure; TLS alone lets anybody in',
    ),
  ],
  'frames-of-another': [
    instead('this.#last.get(tenant)', '[...this.#last.values()][0]'),
    control('a token opens one tenant: its clients get its shards, a ticket for it, and what changes there'),
  ],
});
