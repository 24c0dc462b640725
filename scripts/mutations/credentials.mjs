/** What must not be missing from how certificates and tokens are checked, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const certificates = (title) => ({ test: 'server/control/certificates.test.ts', title });
const standing = (title) => ({ test: 'server/control/standing.test.ts', title });
const cluster = (title) => ({ test: 'test/integration/certificates.long.test.ts', title });
const ROLES_OF_ONE = 'certificates of one directory make a cluster, and each opens its role without a token';
const ONE_ROLE = 'a certificate that claims a role opens no other, nor anything elsewhere';
const TRUSTED = 'a certificate of another authority, of another cluster, or of the past is refused, also with a token';
const tickets = (title) => ({ test: 'server/control/tickets.test.ts', title });

export const mutations = [
  ...inFile('server/cli/commands/secrets.ts', [
    [
      'secrets: a token of every server beside certificates with names',
      cluster(ROLES_OF_ONE),
      "name !== 'peer-token' || server === undefined",
      "name !== 'peer-token' || server !== null",
    ],
  ]),
  ...inFile('server/metadata/peers.ts', [
    [
      'servers: the name of a known one can be taken while a log is read',
      {
        test: 'server/metadata/peers.test.ts',
        title: 'nobody takes the name of a known server before this one has read its log',
      },
      'this.servers.find((s) => s.id === peer)?.instance ??',
      'state.servers.find((s) => s.id === peer)?.instance ??',
    ],
  ]),
  ...inFile('server/control/auth.ts', [
    [
      'certificates: those of another authority open their role',
      certificates(TRUSTED),
      'if (untrusted !== undefined) return',
      'if (untrusted === "") return',
    ],
    [
      'certificates: those of another cluster open their role',
      certificates(TRUSTED),
      'if (name.cluster !== cluster) return',
      'if (name.cluster === "") return',
    ],
    [
      'certificates: one of any role opens every port',
      certificates(ONE_ROLE),
      'if (!OPENS[role].includes(name.role)) return',
      'if (OPENS[role].length === 0) return',
    ],
    [
      'certificates: one of a tenant opens the default one',
      certificates('a certificate opens its role without a token, and that of a tenant its tenant'),
      '...(tenant === undefined ? {} : { tenant: tenant.name }),',
      '',
    ],
  ]),
  ...inFile('server/control/logins.ts', [
    [
      'certificates: one is refused for a token that the server does not have',
      {
        test: 'server/control/logins.test.ts',
        title: 'a certificate opens its role, whatever token comes with it, where no token opens that role',
      },
      ' || !credentials.hasTokens(role)',
      '',
    ],
  ]),
  ...inFile('server/control/peer-plane.ts', [
    [
      'certificates: a server comes under the name of another',
      cluster(ROLES_OF_ONE),
      'if (certified !== undefined && certified !== hello.from)',
      'if (certified === "")',
    ],
  ]),
  ...inFile('server/control/tls.ts', [
    [
      'certificates: a session goes on without being verified',
      certificates('a session does not go on: each connection is verified anew'),
      'secureOptions: constants.SSL_OP_NO_TICKET,',
      'secureOptions: 0 * constants.SSL_OP_NO_TICKET,',
    ],
  ]),
  ...inFile('server/control/control-plane.ts', [
    [
      'access: a ticket is made by a state by which its client is revoked',
      tickets('who is revoked gets no ticket on the way out that would be good'),
      'issueTicket(tickets, now, { client',
      'issueTicket(tickets, state(), { client',
    ],
    [
      'certificates: a client stays when its own has expired',
      certificates('a client whose certificate expires is sent away with the next change or ticket'),
      ' || lapsed?.(wallMs()) !== undefined',
      '',
    ],
  ]),
  ...inFile('server/control/auth.ts', [
    [
      'tokens: one that is taken out of its file leaves its connections',
      standing('a token that is taken out of its file ends the connections that were let in with it, and no other'),
      '!now.some((one) => timingSafeEqual(one.digest, given))',
      'now.length === 0',
    ],
  ]),
  ...inFile('net/certificate.ts', [
    [
      'certificates: any holder of one is a server to a dialer',
      {
        test: 'net/certificate.test.ts',
        title: 'a server is known by its host or by its role name, and a role name must fit',
      },
      "name?.role === 'peer' &&",
      'name !== undefined &&',
    ],
    [
      'certificates: a server answers in the name of another',
      {
        test: 'net/certificate.test.ts',
        title: 'a server is known by its host or by its role name, and a role name must fit',
      },
      '(id === undefined || name.name === id || name.name === ANY_SERVER)',
      '(id === undefined || name.name !== "")',
    ],
    [
      'certificates: a name within a name gives a role',
      { test: 'net/certificate.test.ts', title: 'a role name is an entry of its own, not a part of one' },
      '/(?:[^,"]|"(?:[^"\\\\]|\\\\.)*")+/g',
      '/[^,]+/g',
    ],
  ]),
];
