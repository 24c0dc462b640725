/** What must not be missing from the port of browsers and Prometheus, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const port = (title) => ({ test: 'test/integration/http.long.test.ts', title });
const READING = 'only GET and HEAD are answered, without a body and under a name of this machine';
const TOKENS = 'where there are tokens, one of a monitor or operator opens all but /healthz and /readyz';
const events = (title) => ({ test: 'server/http/events.test.ts', title });
const CUT = 'a page that does not read, or whose token was taken away, is cut off';

export const mutations = [
  ...inFile('server/http/port.ts', [
    [
      'http: a request under any name of a host is answered',
      port(READING),
      'if (!isOwnHost(headers.host, socket.localAddress, this.#options.addresses)) {',
      "if (headers.host === '') {",
    ],
    [
      'http: whoever has no token sees everything',
      port(TOKENS),
      'const identity = this.#identify(request, response, this.#peers.get(socket)?.guest);',
      "const identity = { access: 'monitor', name: '' };",
    ],
    ['http: the token of a writer opens it', port(TOKENS), "role: 'admin' } as const", "role: 'client' } as const"],
  ]),
  ...inFile('server/http/events.ts', [
    [
      'http: a page outlives its token',
      events(CUT),
      'hasLapsed || one.stream.writableLength > LISTENER_UNREAD',
      'one.stream.writableLength > LISTENER_UNREAD',
    ],
  ]),
  ...inFile('server/config/load.ts', [
    [
      'http: anybody beyond loopback may read',
      {
        test: 'server/config/load.test.ts',
        title: 'beyond loopback a server needs a token or --insecure; TLS alone lets anybody in',
      },
      '...peerListen, ...httpListen, ',
      '...peerListen, ',
    ],
  ]),
];
