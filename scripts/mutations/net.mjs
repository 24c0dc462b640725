/** What both ends of a control connection must not miss, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const test = (file) => (title) => ({ test: file, title });
const connection = test('net/connection.test.ts');
const ends = test('net/control-client.test.ts');

export const mutations = [
  ...inFile('net/incoming.ts', [
    [
      'net: a stranger sends frames as large as a peer',
      ends('before the hello is accepted a frame is small, and the first frame is a hello'),
      'this.connection.setLimits(HELLO_FRAME_LIMITS,',
      'this.connection.setLimits(CLIENT_FRAME_LIMITS,',
    ],
  ]),
  ...inFile('net/connection.ts', [
    [
      'net: frames come after the connection was closed',
      connection('a connection that is closed by a handler gets no more frames, and ends once'),
      'if (this.#isStopped()) return false;',
      'if (this.#held) return false;',
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
