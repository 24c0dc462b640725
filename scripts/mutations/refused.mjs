/** What users must be told instead of being let go on, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const stored = {
  test: 'client/codec-and-scan.test.ts',
  title: 'msgpack values come back as they were; another codec refuses them; buffer reads their bytes',
};

export const mutations = [
  ...inFile('client/codec.ts', [
    [
      'refused: a value is decoded by another codec than it was encoded with',
      stored,
      'if (written !== codec.id && codec.id !== bufferCodec.id)',
      'if (written > 255)',
    ],
  ]),
];
