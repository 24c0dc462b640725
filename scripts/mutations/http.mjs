/** What must not be missing from the port of browsers and Prometheus, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const port = (title) => ({ test: 'test/integration/http.long.test.ts', title });
const READING = 'only GET and HEAD are answered, without a body and under a name of this machine';
const TOKENS = 'where there are tokens, one of a monitor or operator opens all but /healthz and /readyz';
const alone = (title) => ({ test: 'server/http/port.test.ts', title });
const PIPELINED = 'a request that comes before the last one is answered ends its connection';
const READY = {
  test: 'server/http/readiness.test.ts',
  title: 'a server is ready when it has a lease, knows a leader and serves what it owns',
};
const events = (title) => ({ test: 'server/http/events.test.ts', title });
const CUT = 'a page that does not read, or whose token was taken away, is cut off';

export const mutations = [
  ...inFile('server/http/port.ts', [
    [
      'http: any method is answered',
      port(READING),
      "if (method !== 'GET' && method !== 'HEAD') {",
      "if (method === '') {",
    ],
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
    [
      'http: requests wait on a connection without a bound',
      alone(PIPELINED),
      'peer === undefined || peer.isDue',
      'peer === undefined',
    ],
    [
      'http: a connection is of use for one request',
      alone('requests one after the other share a connection'),
      'peer.isDue = false;',
      '',
    ],
    ['http: Node answers requests without Host by itself', alone(PIPELINED), ', requireHostHeader: false', ''],
    [
      'http: requests that expect something pass the bound',
      alone(PIPELINED),
      "if (this.#begin(request, response)) this.#text(request, response, 400, 'no body is taken');",
      "this.#text(request, response, 400, 'no body is taken');",
    ],
    [
      'http: a request without Host is answered',
      alone('a request without Host is refused, as HTTP/1.1 wants it'),
      "if (headers.host === undefined && request.httpVersion === '1.1') {",
      "if (headers.host === '') {",
    ],
    [
      'http: nobody hears of a wrong token',
      alone('a wrong token is in the log and counts at the control port too; none is no attempt'),
      'this.#refusals.say(`${remote} was refused: ${message}`, loginFailed',
      'void (`${remote} was refused: ${message}`, loginFailed',
    ],
    [
      'http: guesses here and at the control port are counted apart',
      alone('a wrong token is in the log and counts at the control port too; none is no attempt'),
      'identify(logins, credentials',
      'identify(new logins.constructor(), credentials',
    ],
    [
      'http: a login by certificate is forgotten',
      alone('an address is known after a login, by certificate as by token'),
      'known.add(guest.source);',
      'if (token !== undefined) known.add(guest.source);',
    ],
  ]),
  ...inFile('server/http/access.ts', [
    [
      'http: at loopback every name is its own',
      {
        test: 'server/http/access.test.ts',
        title: 'at a loopback address a request names this machine, or a name of --http-listen',
      },
      'if (local === undefined || !isLoopback(local)) return true;',
      'return true;',
    ],
  ]),
  ...inFile('server/http/readiness.ts', [
    ['http: a server without a lease is ready', READY, 'if (node.leaseHeld !== true)', 'if (node.id === "")'],
    [
      'http: a server with shards that it does not serve is ready',
      READY,
      'if (waiting.length === 0)',
      'if (waiting.length < 9)',
    ],
    [
      'http: a server that started is ready before shards have their copies',
      {
        test: 'server/http/readiness.test.ts',
        title:
          'a start is over when every shard has the copies that it is to have, or after a minute; later a lack is no matter',
      },
      'this.#began = lack.length === 0 || ',
      'this.#began = lack.length >= 0 || ',
    ],
  ]),
  ...inFile('server/http/page/follow.ts', [
    [
      'http: a page that was refused stays without figures',
      {
        test: 'server/http/page/follow.test.ts',
        title: 'a stream that was refused is opened again, one that the browser opens again is not',
      },
      'if (source.readyState === CLOSED)',
      'if (source.readyState > CLOSED)',
    ],
  ]),
  ...inFile('server/http/events.ts', [
    [
      'http: a page whose answer never began keeps its place',
      events('a page is gone with its connection, also where its answer never began'),
      'of [stream, connection]',
      'of [stream]',
    ],
    [
      'http: as many pages as come are open',
      events('there are at most so many pages'),
      'if (this.#listening.size >= LISTENERS) {',
      'if (this.#listening.size >= Infinity) {',
    ],
    [
      'http: a page that does not read is written to',
      events(CUT),
      'hasLapsed || one.stream.writableLength > LISTENER_UNREAD',
      'hasLapsed',
    ],
    [
      'http: a page outlives its token',
      events(CUT),
      'hasLapsed || one.stream.writableLength > LISTENER_UNREAD',
      'one.stream.writableLength > LISTENER_UNREAD',
    ],
  ]),
  ...inFile('server/status.ts', [
    [
      'http: the thread of clients looks for each shard among all',
      { test: 'server/status.test.ts', title: 'the figures of a shard are not looked for among those of all' },
      'served.get(s.owner)?.get(s.shard)',
      'node?.dataPlane?.shards.find((one) => one.shard === s.shard)',
    ],
  ]),
  ...inFile('server/cli/top-watch.ts', [
    [
      'top: it ends with the server that it asked',
      {
        test: 'server/cli/top-watch.test.ts',
        title: 'when its server is gone, farkv top goes on with another until there is none',
      },
      'if (looks === 0) throw error;',
      'throw error;',
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
  ...inFile('server/http/fresh.ts', [
    [
      'http: whoever asks has the thread of Raft asked',
      {
        test: 'server/http/fresh.test.ts',
        title: 'whoever asks while a question is under way, or shortly after, gets its answer',
      },
      'if (this.#answer === undefined || isOld) {',
      'if (this.#answer !== this.#options) {',
    ],
  ]),
  ...inFile('server/cli/table.ts', [
    [
      'top: what a server sends moves the cursor',
      {
        test: 'server/http/view.test.ts',
        title: 'a frame says first what needs a person, fits its screen, and has no control characters',
      },
      'given.map((row) => row.map(visible))',
      'given',
    ],
  ]),
];
