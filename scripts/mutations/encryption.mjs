/** What must not be missing from encrypted data over tcp, each with the test that notices. */
import { drop, instead, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const tls = by('fabric_tcp_tls');
const access = by('dataplane_access');
const wire = by('wire');
const routes = (title) => ({ test: 'client/routes.test.ts', title });
const transports = (title) => ({ test: 'server/transports.test.ts', title });

export const mutations = rows('encryption', {
  'certificate-for-the-key': [drop(), tls('a_server_with_a_certificate_in_place_of_the_key_hears_nothing')],
  'key-of-an-expired-ticket': [without('access_good'), access('an_expired_ticket_comes_to_no_challenge')],
  'name-shows-ticket': [
    instead('^ bytes[i]', ''),
    wire('a_name_says_its_ticket_to_those_who_have_the_secret_and_nothing_to_others'),
  ],
  'any-port-in-the-clear': [
    instead('undefined', 'address'),
    routes(
      'a client that came by TLS takes data in the clear only where the server says so; "tls:" is never taken off',
    ),
  ],
  'data-in-the-clear': [
    instead('!settings.insecureData', 'settings.insecureData'),
    transports('tcp is encrypted when the control port is, but for --insecure-data, and its address says how it talks'),
  ],
});
