/** What both ends of a control connection must not miss, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const test = (file) => (title) => ({ test: file, title });
const connection = test('net/connection.test.ts');
const deadline = test('net/deadline.test.ts');
const ends = test('net/control-client.test.ts');
const heartbeat = test('net/heartbeat.test.ts');

export const mutations = [
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
      'this.connection = new Connection(socket, CLIENT_FRAME_LIMITS,',
      'this.connection = new Connection(socket, { ...CLIENT_FRAME_LIMITS, bytes: 4 << 20 },',
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
      'if (this.#closed) return;\n    this.#heardAt = performance.now();',
      'if (this.#closed) return;',
    ],
    [
      'net: an end that reads nothing costs any number of bytes',
      connection('an end that reads nothing costs a bounded number of bytes, then its connection'),
      'this.#socket.writableLength + bytes.length > BACKLOG_MAX',
      'this.#socket.writableLength + bytes.length > Infinity',
    ],
    [
      'net: frames come after the connection was closed',
      connection('a connection that is closed by a handler gets no more frames, and ends once'),
      'return !this.#closed;',
      'return true;',
    ],
  ]),
  ...inFile('net/tls.ts', [
    [
      'net: any certificate is trusted',
      ends('the token is shown to nobody whose certificate is not trusted, and that is a refusal for a user'),
      'minVersion: TLS_MIN,',
      'minVersion: TLS_MIN, rejectUnauthorized: false,',
    ],
  ]),
];
