/** `farkv delete KEY...`. */
import { keyOf } from '../../../tools/transfer/key-text.js';
import type { CliCommand } from '../command.js';
import { clientOptions, withClient, type ClientArguments } from '../client-options.js';
import { EXIT, exitCodesHelp } from '../exit-codes.js';
import { printError } from '../output.js';

interface DeleteArguments extends ClientArguments {
  readonly key: readonly string[];
  readonly hex: boolean;
}

const remove: CliCommand<DeleteArguments> = {
  command: 'delete <key..>',
  describe: 'Delete keys',
  builder: (y) =>
    clientOptions(y.positional('key', { type: 'string', array: true, demandOption: true, describe: 'The keys' }))
      .option('hex', { type: 'boolean', default: false, describe: 'Keys are in hexadecimal' })
      .example('$0 delete greeting', 'delete one key')
      .example('$0 delete a b c', 'several; those that are not there are no error as long as one was')
      .epilogue(exitCodesHelp({ done: 'deleted', notFound: 'none of the keys was there' })),
  handler: async (args) => {
    const keys = args.key.map((key) => keyOf(key, args.hex));
    const deleted = await withClient(args, (client) => Promise.all(keys.map((key) => client.delete(key))));
    if (deleted.some(Boolean)) return;
    printError(`farkv delete: ${keys.length === 1 ? 'no such key' : 'none of these keys was there'}\n`);
    process.exitCode = EXIT.notFound;
  },
};

export default remove;
