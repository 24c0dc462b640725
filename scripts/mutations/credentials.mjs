/** What must not be missing from how certificates and tokens are checked, each with the test that notices. */
import { always, instead, never, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const certificates = (title) => ({ test: 'server/control/certificates.test.ts', title });
const cluster = (title) => ({ test: 'test/integration/certificates.long.test.ts', title });
const TRUSTED = 'a certificate of another authority, of another cluster, or of the past is refused, also with a token';
const ONE_ROLE = 'a certificate that claims a role opens no other, nor anything elsewhere';
const ROLES_OF_ONE = 'certificates of one directory make a cluster, and each opens its role without a token';
const standing = (title) => ({ test: 'server/control/standing.test.ts', title });

export const mutations = rows('credentials', {
  'another-authority': [never(), certificates(TRUSTED)],
  'another-cluster': [never(), certificates(TRUSTED)],
  'any-role': [never(), certificates(ONE_ROLE)],
  'tenant-certificate': [
    without('...(tenant'),
    certificates('a certificate opens its role without a token, and that of a tenant its tenant'),
  ],
  'name-of-another': [never(), cluster(ROLES_OF_ONE)],
  'session-resumed': [
    instead('constants.SSL_OP_NO_TICKET', '0'),
    certificates('a session does not go on: each connection is verified anew'),
  ],
  'expired-certificate': [
    without('lapsed'),
    certificates('a client whose certificate expires is sent away with the next change or ticket'),
  ],
  'token-taken-out': [
    never('now.some'),
    standing('a token that is taken out of its file ends the connections that were let in with it, and no other'),
  ],
  'server-as-another': [
    always('id === undefined'),
    {
      test: 'net/certificate.test.ts',
      title: 'a server is known by its host or by its role name, and a role name must fit',
    },
  ],
});
