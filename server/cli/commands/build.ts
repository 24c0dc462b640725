/** `farkv build`: makes the native addon where no prebuilt one is for this machine. */
import { FarkvError } from '../../../core/errors.js';
import type { CliCommand } from '../command.js';
import { print, printError } from '../output.js';

const build: CliCommand<object> = {
  command: 'build',
  describe: 'Compile the native addon of this package here, where it has no prebuilt one for this machine',
  builder: (y) =>
    y
      .example('npx $0 build', 'in a project that has farkv, with the node-gyp of npm')
      .epilogue(
        'Needs a C compiler, make and python3, and node-gyp: npm brings it, npm install node-gyp does elsewhere. The headers of Node.js are downloaded where they did not come with it. The headers of RDMA (libibverbs-dev, librdmacm-dev) are for --transport verbs.\n\nExit codes: 0 built, 1 failed, 2 wrong usage.',
      ),
  handler: async () => {
    const { REBUILD, sourceFolder } = await import('../../../native/package.js');
    const folder = sourceFolder();
    if (folder === undefined) throw new FarkvError('ERR_CONFIG', `farkv is one file here: ${REBUILD}`);
    const { buildFromSource } = await import('../../../native/source-build.js');
    const { file, verbsMissing } = buildFromSource(folder, process.cwd(), printError);
    print(`built ${file}${verbsMissing === undefined ? '' : `; --transport verbs: ${verbsMissing}`}\n`);
  },
};
export default build;
