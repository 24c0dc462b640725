/** `farkv increment KEY [BY]`: adds to a number, and prints the sum. */
import { FarkvError } from '../../../core/errors.js';
import { keyOf } from '../../../tools/transfer/key-text.js';
import type { CliCommand } from '../command.js';
import { clientOptions, ttlOf, withClient, type ClientArguments } from '../client-options.js';
import { exitCodesHelp } from '../exit-codes.js';
import { Output } from '../output.js';

interface IncrementArguments extends ClientArguments {
  readonly key: string;
  readonly by: string;
  readonly hex: boolean;
  readonly ttl: string | undefined;
}

const increment: CliCommand<IncrementArguments> = {
  command: 'increment <key> [by]',
  describe: 'Add to a number and print the sum',
  builder: (y) =>
    clientOptions(
      y
        .positional('key', { type: 'string', demandOption: true, describe: 'The key, 1 to 1024 bytes; absent is 0' })
        .positional('by', { type: 'string', default: '1', describe: 'What is added: an integer of 64 bits' }),
    )
      .option('hex', { type: 'boolean', default: false, describe: 'KEY is in hexadecimal' })
      .option('ttl', {
        type: 'string',
        requiresArg: true,
        describe: 'A new entry expires after this: 500ms, 60s, 10m, 24h',
      })
      .example('$0 increment visits', 'add 1')
      .example('$0 increment stock -5', 'take 5 away')
      .epilogue(exitCodesHelp({ failed: 'the value, or the sum, is no integer of 64 bits' })),
  handler: async (args) => {
    const key = keyOf(args.key, args.hex);
    if (!/^[+-]?\d{1,19}$/u.test(args.by)) throw new FarkvError('ERR_CONFIG', 'BY: must be an integer of 64 bits');
    const ttlMs = ttlOf(args.ttl);
    const by = BigInt(args.by.replace('+', ''));
    const sum = await withClient(args, (client) =>
      client.increment(key, by, { ...(ttlMs === undefined ? {} : { ttlMs }) }),
    );
    await new Output().write(`${sum}\n`);
  },
};

export default increment;
