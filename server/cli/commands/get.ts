/** `farkv get KEY`: one value to standard output. */
import { jsonKey, jsonValue, keyOf, printable, textOf } from '../../../tools/transfer/key-text.js';
import type { CliCommand } from '../command.js';
import { clientOptions, withClient, type ClientArguments } from '../client-options.js';
import { EXIT, exitCodesHelp } from '../exit-codes.js';
import { Output, printError } from '../output.js';
import { visibleJson, visibleLines } from '../../../core/visible-text.js';

interface GetArguments extends ClientArguments {
  readonly key: string;
  readonly hex: boolean;
  readonly raw: boolean;
  readonly json: boolean;
}

const get: CliCommand<GetArguments> = {
  command: 'get <key>',
  describe: 'Print the value of a key',
  builder: (y) =>
    clientOptions(y.positional('key', { type: 'string', demandOption: true, describe: 'The key, 1 to 1024 bytes' }))
      .option('hex', { type: 'boolean', default: false, describe: 'KEY is in hexadecimal' })
      .option('raw', {
        type: 'boolean',
        default: false,
        describe:
          "Print the value's bytes and nothing else; without it a line feed follows, and a terminal gets escapes for what it would obey",
      })
      .option('json', {
        type: 'boolean',
        default: false,
        describe:
          'Print one JSON object: key, value (valueBase64 where it is no text), version, flags, expiresAtMs where it expires',
      })
      .example('$0 get greeting', 'print it')
      .example('$0 get picture --raw > picture.png', 'bytes as they are')
      .epilogue(exitCodesHelp({ notFound: 'there is no such key' })),
  handler: async (args) => {
    const key = keyOf(args.key, args.hex);
    const entry = await withClient(args, (client) => client.getEntry(key));
    if (entry === undefined) {
      printError('farkv get: no such key\n');
      process.exitCode = EXIT.notFound;
      return;
    }
    const output = new Output();
    if (args.json) {
      const { value, version, flags, expiresAtMs } = entry;
      await output.write(
        `${visibleJson({ ...jsonKey(Buffer.from(key)), ...jsonValue(value), version: String(version), flags, expiresAtMs })}\n`,
      );
      return;
    }
    const plain = args.raw || !process.stdout.isTTY;
    await output.write(plain ? entry.value : visibleLines(textOf(entry.value) ?? printable(entry.value)));
    if (!args.raw) await output.write('\n');
  },
};

export default get;
