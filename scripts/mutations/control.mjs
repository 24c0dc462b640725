/** What strangers, clients and operators may cost the ports of the control plane, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const test = (file) => (title) => ({ test: `server/control/${file}.test.ts`, title });
const plane = test('control-plane');
const peers = test('peer-plane');
const STRANGER =
  'a server that asks for its place is a stranger until it has one: it is told little, and may cost little';
const places = test('places');
const logins = test('logins');
const handshakes = test('handshakes');

export const mutations = [
  ...inFile('server/control/places.ts', [
    [
      'control: silent connections keep others out',
      places('a newcomer always has a place: the address with the most loses its oldest'),
      'while (this.size >= this.#most) {',
      'while (this.size >= Infinity) {',
    ],
    [
      'control: silent connections of many addresses cost clients of one address their places',
      places('who lets a server wait goes before those of a full address, whatever address it has'),
      'this.#late(now) ?? this.#oldestOfMost()',
      'this.#oldestOfMost()',
    ],
    [
      'control: a connection that waits for its turn counts as late',
      places('a connection that waits for its turn is not late, and one that has sent something begins to wait anew'),
      'if (since !== undefined) this.#waitedFor.set(visitor, since);',
      'this.#waitedFor.set(visitor, since ?? 0);',
    ],
    [
      'control: clients of one address cost each other their places while others hold a few each',
      places('an address has a share of a full room, and who came after it does not cost it its place'),
      'most.size <= share ? undefined',
      'most.size <= 0 * share ? undefined',
    ],
  ]),
  ...inFile('server/control/logins.ts', [
    [
      'control: a guesser keeps out others of its address',
      logins('a right token is let in at once, whatever others of its address show'),
      'const identity = credentials.identify(role, token);',
      'const identity = logins.failed > 9 ? undefined : credentials.identify(role, token);',
    ],
    [
      'control: an address with many wrong tokens is not told to wait',
      plane('wrong tokens make their address wait, and no other'),
      'if (waitMs > 0)\n',
      'if (waitMs > Infinity)\n',
    ],
  ]),
  ...inFile('server/control/handshakes.ts', [
    [
      'control: handshakes of one address keep out another',
      handshakes('addresses take turns: a flood of one delays another by one handshake'),
      'this.#waiting.get(handshake.source) ?? [];\n    same.push(handshake);\n    this.#waiting.set(handshake.source, same);',
      "this.#waiting.get('') ?? [];\n    same.push(handshake);\n    this.#waiting.set('', same);",
    ],
  ]),
  ...inFile('server/control/control-plane.ts', [
    [
      'control: servers come in at the port of clients',
      plane('a server is told which port is for servers, and a Raft message ends its connection'),
      "if (hello.role === 'peer') {",
      "if (hello.role === 'peer' && hello.from === '') {",
    ],
  ]),
  ...inFile('server/control/peer-plane.ts', [
    [
      'joiners: one is told the number of the directory that it asked',
      peers(STRANGER),
      'incoming.welcome({ serverId, clusterId }, JOINER_FRAME_LIMITS, JOINER_VISIT);',
      'incoming.welcome(fields, JOINER_FRAME_LIMITS, JOINER_VISIT);',
    ],
    [
      'joiners: one sends frames of a server',
      peers(STRANGER),
      'incoming.welcome({ serverId, clusterId }, JOINER_FRAME_LIMITS, JOINER_VISIT);',
      'incoming.welcome({ serverId, clusterId }, PEER_FRAME_LIMITS, JOINER_VISIT);',
    ],
    [
      'joiners: one sends any number of frames',
      peers(STRANGER),
      'incoming.welcome({ serverId, clusterId }, JOINER_FRAME_LIMITS, JOINER_VISIT);',
      'incoming.welcome({ serverId, clusterId }, JOINER_FRAME_LIMITS);',
    ],
    [
      'joiners: one takes the place of a server',
      peers(STRANGER),
      "          if (arrived.access === 'joiner') {\n",
      "          if (arrived.access === 'joiner') {\n            guest.admitted();\n",
    ],
    [
      'joiners: any number of joins is in hand',
      peers('only so many joins are in hand at once, however many ask'),
      '(this.#joins += 1) > JOINS_AT_ONCE',
      '(this.#joins += 1) > Infinity',
    ],
    ['joiners: one has many calls in hand', peers(STRANGER), "(peer?.access === 'peer' ? CALLS_MAX : 1)", 'CALLS_MAX'],
    [
      'control: clients and operators come in at the port of servers',
      peers('nobody but a server with the token of servers is let in'),
      "if (hello.role !== 'peer')",
      "if (hello.role !== 'peer' && hello.from === '')",
    ],
  ]),
];
