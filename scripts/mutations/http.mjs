/** Who may see what at the port of browsers and Prometheus, each with the test that notices. */
import { instead, never, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const port = (title) => ({ test: 'test/integration/http.long.test.ts', title });
const READING = 'only GET and HEAD are answered, without a body and under a name of this machine';
const TOKENS = 'where there are tokens, one of a monitor or operator opens all but /healthz and /readyz';
const events = (title) => ({ test: 'server/http/events.test.ts', title });
const CUT = 'a page that does not read, or whose token was taken away, is cut off';

export const mutations = rows('http', {
  'any-host-name': [never(), port(READING)],
  'no-token': [
    instead('this.#identify(request, response, this.#peers.get(socket)?.guest)', "{ access: 'monitor', name: '' }"),
    port(TOKENS),
  ],
  'token-of-a-writer': [instead("'admin'", "'client'"), port(TOKENS)],
  'outlives-token': [without('hasLapsed'), events(CUT)],
  'open-beyond-loopback': [
    without('httpListen'),
    {
      test: 'server/config/load.test.ts',
      title: 'beyond loopback a server needs a token or --insecure; TLS alone lets anybody in',
    },
  ],
});
