/** What must not be missing where the addon is looked for and unpacked, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const unpack = (title) => ({ test: 'native/one-file/unpack.test.ts', title });

const ofUnpack = inFile('native/one-file/unpack.ts', [
  [
    'one file: the addon keeps a name, under which another could be put',
    unpack('the file that is loaded has no name any more, and nobody but its user could have opened it'),
    '    rmSync(directory, { recursive: true, force: true });',
    '    void rmSync;',
  ],
]);

const ofFile = inFile('native/addon-file.ts', [
  [
    'addon file: the addon for glibc is loaded with musl',
    { test: 'native/addon-file.test.ts', title: 'the C library is told by the loader that a program names' },
    "return loader === 'musl' ? 'musl' : 'glibc';",
    "return 'glibc';",
  ],
  [
    'addon file: a prebuilt addon comes before the one that was built here',
    {
      test: 'native/addon-file.test.ts',
      title: 'an addon that was built here comes before the prebuilt one for this machine, and no other counts',
    },
    'if (existsSync(built)) return built;',
    '',
  ],
]);

export const mutations = [...ofUnpack, ...ofFile];
