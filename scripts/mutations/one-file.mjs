/** What must not be missing from the one-file executable, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const unpack = (title) => ({ test: 'native/one-file/unpack.test.ts', title });

export const mutations = inFile('native/one-file/unpack.ts', [
  [
    'one file: the addon keeps a name, under which another could be put',
    unpack('the file that is loaded has no name any more, and nobody but its user could have opened it'),
    '    rmSync(directory, { recursive: true, force: true });',
    '    void rmSync;',
  ],
]);
