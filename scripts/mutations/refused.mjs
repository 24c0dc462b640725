/** What users must be told instead of being let go on, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const stored = {
  test: 'client/codec-and-scan.test.ts',
  title: 'msgpack values come back as they were; another codec refuses them; buffer reads their bytes',
};
const nothing = {
  test: 'client/codec-and-scan.test.ts',
  title: 'what MessagePack would store nothing of is refused, by every call that stores',
};
const load = (title) => ({ test: 'server/config/load.test.ts', title });
const attention = (title) => ({ test: 'server/attention.test.ts', title });

export const mutations = [
  ...inFile('client/codec.ts', [
    [
      'refused: a function is stored as nothing',
      nothing,
      'return Object.assign(packr, { writeFunction });',
      'return packr;',
    ],
    ['refused: a promise is stored as an empty object', nothing, 'types.isPromise(value)', 'value === null && false'],
    [
      'refused: a value is decoded by another codec than it was encoded with',
      stored,
      'if (written !== codec.id && codec.id !== bufferCodec.id)',
      'if (written > 255)',
    ],
  ]),
  ...inFile('client/cluster.ts', [
    [
      'refused: a client is not told that its cluster is gone',
      {
        test: 'test/integration/sdk-failures.long.test.ts',
        title: 'a client whose cluster is gone is told so by every call',
      },
      'return this.#stranger === undefined',
      'return this.#stranger !== null',
    ],
  ]),
  ...inFile('server/config/environment.ts', [
    [
      'refused: a misspelt variable is ignored',
      load('a variable that is nearly one of ours is refused, and one of somebody else is let be'),
      'if (meant !== undefined)',
      'if (meant === variable)',
    ],
  ]),
  ...inFile('server/config/load.ts', [
    [
      'refused: a named RDMA device is ignored',
      load('a named RDMA device without one that can be used is no device that is not used'),
      'if (rdmaDevice !== undefined && auto',
      "if (rdmaDevice === '' && auto",
    ],
  ]),
  ...inFile('server/attention.ts', [
    [
      'refused: a server that does not answer needs nobody',
      attention('servers that do not answer are named, with what to do, and what is lost with them'),
      "members.filter(({ state }) => state === 'unreachable')",
      "members.filter(({ state }) => state === 'absent' && leader === '')",
    ],
    [
      'refused: a full disk needs nobody',
      attention('a full disk and snapshots that fail are told with what to do'),
      'log?.diskFull === true',
      'log?.bytes === -1',
    ],
  ]),
];
