/** What must not be missing from encrypted data over tcp, each with the test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const tls = by('fabric_tcp_tls');
const access = by('dataplane_access');
const wire = by('wire');
const routes = (title) => ({ test: 'client/routes.test.ts', title });
const transports = (title) => ({ test: 'server/transports.test.ts', title });

export const mutations = [
  ...inFile('native/fabric/tcp/tls.c', [
    [
      'encryption: a server shows a certificate in place of the key',
      tls('a_server_with_a_certificate_in_place_of_the_key_hears_nothing'),
      'if (step == TCP_TLS_DONE && !t->f->SSL_session_reused(t->ssl)) return TCP_TLS_BAD;',
      '',
    ],
    [
      'encryption: a key is used for ever',
      tls('keys_are_exchanged_while_both_ends_send'),
      'if (t->records++ >= t->records_most) {',
      't->records++;\n    if (false) {',
    ],
  ]),
  ...inFile('native/dataplane/access.c', [
    [
      'encryption: the key of an expired ticket is good',
      access('an_expired_ticket_comes_to_no_challenge'),
      '(uint8_t)a->secret[i].number == t.secret &&\n               access_good(a, &t, fkv_wall_ms());',
      '(uint8_t)a->secret[i].number == t.secret;',
    ],
  ]),
  ...inFile('native/wire/ticket.c', [
    [
      'encryption: a name is the ticket as it is',
      wire('a_name_says_its_ticket_to_those_who_have_the_secret_and_nothing_to_others'),
      '((const uint8_t *)from)[i] ^ bytes[i];',
      '((const uint8_t *)from)[i];',
    ],
  ]),
  ...inFile('core/metadata/data-address.ts', [
    [
      'encryption: a client that came by TLS takes any port in the clear',
      routes(
        'a client that came by TLS takes data in the clear only where the server says so; "tls:" is never taken off',
      ),
      'isEncrypted(address) || !secure ? address : undefined',
      'isEncrypted(address) || !secure ? address : address',
    ],
  ]),
  ...inFile('server/transports.ts', [
    [
      'encryption: data stays in the clear beside TLS',
      transports(
        'tcp is encrypted when the control port is, but for --insecure-data, and its address says how it talks',
      ),
      'settings.tls !== undefined && !settings.insecureData',
      'settings.tls !== undefined && settings.insecureData',
    ],
  ]),
];
