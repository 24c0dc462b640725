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
const feed = test('state-feed');
const gate = test('call-gate');
const front = test('front-thread');
const watch = test('thread-watch');

export const mutations = [
  ...inFile('server/cli/unread.ts', [
    [
      'log: lines that nobody reads are kept without a bound',
      {
        test: 'server/cli/unread.test.ts',
        title: 'lines that nobody reads are kept up to a bound, and the others counted until it is read again',
      },
      'this.#stream.writableLength + line.length > this.#bytesMax',
      'line.length > this.#bytesMax',
    ],
  ]),
  ...inFile('server/control/front-thread.ts', [
    [
      'control: who closes a thread that has died waits for ever',
      front('a thread that dies is told once, and what is left of it can be closed'),
      'await this.#ended;',
      "await once(this.#worker, 'exit');",
    ],
    [
      'control: whether the thread of clients and operators answers is not looked at',
      front('a thread that has stopped answering is told, and that it answers again'),
      'return this.#watch.stalledMs;',
      'return undefined;',
    ],
  ]),
  ...inFile('server/control/thread-watch.ts', [
    [
      'control: a thread that answers counts as stalled',
      watch('a thread counts as stalled after four looks without an answer, and no more once it answers'),
      'this.#asked = false;\n    this.#looks = 0;',
      'this.#looks = 0;',
    ],
  ]),
  ...inFile('server/control/places.ts', [
    [
      'control: silent connections keep others out',
      places('a newcomer always has a place: the address with the most loses its oldest'),
      'while (this.size >= this.#most) {',
      'while (this.size >= Infinity) {',
    ],
    [
      'control: the address with the fewest connections loses one',
      places('a newcomer always has a place: the address with the most loses its oldest'),
      'if (same.size > (most?.size ?? 0)) most = same;',
      'most ??= same;',
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
    [
      'control: strangers take the places of known addresses',
      places('strangers never cost a known address its place'),
      'this.#options.isKnown(visitor.source) ? this.#known : this.#strangers;',
      'this.#strangers;',
    ],
  ]),
  ...inFile('server/control/logins.ts', [
    [
      'control: wrong tokens cost no time',
      logins('after some wrong tokens an address waits, longer each time'),
      'until: now + wait,',
      'until: now,',
    ],
    [
      'control: wrong tokens are remembered without a bound',
      logins('an attacker with many addresses costs a bounded memory'),
      'if (this.#wrong.size <= ADDRESSES) return 0;',
      'if (this.#wrong.size >= 0) return 0;',
    ],
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
    [
      'control: handshakes begin as fast as they come',
      handshakes('so many begin at once, then so many per second, the newest first'),
      'if (!queue.bucket.take(now)) {',
      'if (!queue.bucket.take(now) && now < 0) {',
    ],
    [
      'control: one turn begins any number of handshakes',
      handshakes('in one turn only a few begin'),
      'while (left > 0 && !queue.isEmpty) {',
      'while (!queue.isEmpty) {',
    ],
    [
      'control: known addresses share the rate of strangers',
      handshakes('known addresses have a rate of their own'),
      '(known ? this.#known : this.#strangers).add(handshake);',
      '(known ? this.#strangers : this.#strangers).add(handshake);',
    ],
  ]),
  ...inFile('server/control/state-feed.ts', [
    [
      'control: changes of the metadata pile up before a thread that is busy',
      feed('one change is on its way at a time, and then the newest follows'),
      'if (this.#underWay || this.#newest === this.#sent) return;',
      'if (this.#newest === this.#sent) return;',
    ],
    [
      'control: a change of the metadata leaves shards out',
      feed('the other end has the same state, and what did not change is what it had'),
      'for (const [i, shard] of shards) all[i] = shard;',
      'for (const [i, shard] of shards) all[i] ??= shard;',
    ],
  ]),
  ...inFile('server/control/call-gate.ts', [
    [
      'control: everybody who asks for the status has the thread of Raft put it together',
      gate('any number of callers for a status are one question at a time, asked after they came'),
      'if (this.#busy || next === undefined) return;',
      'if (next === undefined) return;',
    ],
    [
      'control: any number of calls wait for the thread of Raft',
      gate('calls under way are bounded'),
      'if (this.#underWay >= CALLS_ALL)',
      'if (this.#underWay >= Infinity)',
    ],
  ]),
  ...inFile('server/control/control-plane.ts', [
    [
      'control: answers are sent to an end that does not read them',
      plane('a connection that does not read its answers gets no more calls answered'),
      'if (this.#answers.length === 0 && connection.backlog <= ANSWERS_UNREAD) {',
      'if (!connection.closed) {',
    ],
    [
      'control: one operator fills the log with changes',
      plane('changes by one operator are limited, and neither those of another nor what changes nothing'),
      'return ms !== undefined;',
      'return true;',
    ],
    [
      'control: one operator keeps another from changes',
      plane('changes by one operator are limited, and neither those of another nor what changes nothing'),
      "`${this.#who?.name ?? ''} ${this.#guest.source}`",
      "''",
    ],
    [
      'control: servers come in at the port of clients',
      plane('a server is told which port is for servers, and a Raft message ends its connection'),
      "if (hello.role === 'peer') {",
      "if (hello.role === 'peer' && hello.from === '') {",
    ],
    [
      'control: clients take the places of operators',
      plane('clients beyond --max-connections are refused, operators have places of their own, and room comes back'),
      "access === 'operator' ? OPERATOR_PLACES : 0",
      'OPERATOR_PLACES',
    ],
    [
      'control: monitors take the places of operators',
      plane('clients beyond --max-connections are refused, operators have places of their own, and room comes back'),
      "access === 'operator' ? OPERATOR_PLACES : 0",
      "access === 'operator' || access === 'monitor' ? OPERATOR_PLACES : 0",
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
