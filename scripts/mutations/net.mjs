/** What both ends of a control connection must not miss, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const test = (file) => (title) => ({ test: file, title });
const connection = test('net/connection.test.ts');
const turns = test('net/turns.test.ts');
const outbox = test('net/outbox.test.ts');
const deadline = test('net/deadline.test.ts');
const ends = test('net/control-client.test.ts');
const heartbeat = test('net/heartbeat.test.ts');
const incoming = test('net/incoming.test.ts');

export const mutations = [
  ...inFile('net/incoming.ts', [
    [
      'net: answers to pings pile up before an end that takes nothing',
      incoming('pings of an end that takes nothing are read and cost no memory; when it takes again they are answered'),
      'if (this.connection.backlog <= PONGS_UNREAD) ',
      '',
    ],
  ]),
  ...inFile('net/deadline.ts', [
    [
      'net: a wait ends before the sockets are read',
      deadline('bytes that arrived while the process stood still are handled before the wait ends'),
      'setTimeout(() => setImmediate(() => setImmediate(act)), ms)',
      'setTimeout(act, ms)',
    ],
    [
      'net: a wait ends before failed connections are closed',
      deadline('a connection that failed while the process stood still is closed before the wait ends'),
      'setTimeout(() => setImmediate(() => setImmediate(act)), ms)',
      'setTimeout(() => setImmediate(act), ms)',
    ],
    [
      'net: a wait that was ended in time ends once more',
      deadline('bytes that arrived in time may still end the wait'),
      'if (!this.#cleared) over();',
      'over();',
    ],
  ]),
  ...inFile('net/control-client.ts', [
    [
      'net: an answer that waits to be read is late',
      ends('an answer and a welcome are taken though the process stood still until the time for them was over'),
      'const deadline = new Deadline(timeoutMs, () => {\n        this.#waiting',
      'const late = (f) => { const timer = setTimeout(f, timeoutMs); return { clear: () => clearTimeout(timer) }; };\n      const deadline = late(() => {\n        this.#waiting',
    ],
  ]),
  ...inFile('net/incoming.ts', [
    [
      'net: a hello that waits to be read is late',
      ends('a hello that came while the process stood still until the time for it was over is taken'),
      'this.#deadline = new Deadline(handshakeMs, () => this.connection',
      'this.#deadline = { clear: () => clearTimeout(timer) };\n    const timer = setTimeout(() => this.connection',
    ],
    [
      'net: a stranger sends frames as large as a peer',
      ends('before the hello is accepted a frame is small, and the first frame is a hello'),
      'this.connection.setLimits(HELLO_FRAME_LIMITS,',
      'this.connection.setLimits(CLIENT_FRAME_LIMITS,',
    ],
  ]),
  ...inFile('net/heartbeat.ts', [
    [
      'net: an end that sends nothing is kept',
      heartbeat('an end that sends nothing is given up'),
      'if (left > 0) {',
      'if (left !== 0) {',
    ],
  ]),
  ...inFile('net/connection.ts', [
    [
      'net: an end is silent whatever it sends',
      heartbeat('an end that answers pings is kept, for longer than it may be silent'),
      'this.#heardAt = performance.now();\n      this.#read(chunk);',
      'this.#read(chunk);',
    ],
    [
      'net: an end that reads nothing costs any number of bytes',
      connection('an end that reads nothing costs a bounded number of bytes, then its connection'),
      'this.#socket.writableLength + bytes.length > this.#backlogMax',
      'this.#socket.writableLength + bytes.length > Infinity',
    ],
    [
      'net: frames come after the connection was closed',
      connection('a connection that is closed by a handler gets no more frames, and ends once'),
      'if (this.#isStopped()) return false;',
      'if (this.#held) return false;',
    ],
    [
      'net: a connection that is held goes on',
      connection('a connection that is held handles no frame until it is released'),
      'if (this.#isStopped()) return false;',
      'if (this.#closed) return false;',
    ],
    [
      'net: a connection takes as much of a turn as it likes',
      connection('a connection handles its frames of one turn, reads nothing until the next, and loses none'),
      'if (turns?.allows(this.#spent) !== false) return true;',
      'if (!this.#closed) return true;',
    ],
    [
      'net: what all connections have not sent is not counted',
      connection('of all connections that send more than is taken, the one with the most ends'),
      'outbox.added(this, bytes.length);',
      '',
    ],
  ]),
  ...inFile('net/turns.ts', [
    [
      'net: all connections together take as much of a turn as they like',
      turns(
        'all together get no more than the turn has, and each of those that wait is served before one is served again',
      ),
      'if (this.#frames >= all.frames || this.#bytes >= all.bytes) return false;',
      '',
    ],
    ['net: bytes of a turn do not count', turns('bytes count as frames do'), 'spent.bytes += bytes;', ''],
  ]),
  ...inFile('net/outbox.ts', [
    [
      'net: the connection with the least loses it',
      outbox('when the sum is too large, the connection with the most loses it'),
      'one.unsent > most.unsent',
      'one.unsent < most.unsent',
    ],
  ]),
  ...inFile('net/tls.ts', [
    [
      'net: any certificate is trusted',
      ends('the token is shown to nobody whose certificate is not trusted, and that is a refusal for a user'),
      '    ...TLS_ONLY,',
      '    ...TLS_ONLY, rejectUnauthorized: false,',
    ],
  ]),
];
