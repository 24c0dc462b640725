/** `farkv put KEY [VALUE]`: the value from the command line, a file, or standard input. */
import { FarkvError } from '../../../core/errors.js';
import { fileReason, readRegular, NotRegular } from '../../../net/regular-file.js';
import { keyOf } from '../../../tools/transfer/key-text.js';
import type { CliCommand } from '../command.js';
import { clientOptions, ttlOf, integerOf, integerOption, withClient, type ClientArguments } from '../client-options.js';
import { exitCodesHelp } from '../exit-codes.js';
import { isStandardInput, printError } from '../output.js';

interface PutArguments extends ClientArguments {
  readonly key: string;
  readonly value: string | undefined;
  readonly file: string | undefined;
  readonly hex: boolean;
  readonly ttl: string | undefined;
  readonly flags: string;
}

/** Of a value, as native/table/layout.h has it: what is longer is not read to its end. */
const VALUE_MAX = 64 << 20;

async function standardInput(): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of process.stdin as AsyncIterable<Buffer>) {
    parts.push(part);
    bytes += part.length;
    if (bytes > VALUE_MAX)
      throw new FarkvError(
        'ERR_VALUE_TOO_LARGE',
        `standard input has more than ${VALUE_MAX} bytes, the most of a value`,
      );
  }
  return Buffer.concat(parts);
}

async function valueOf(args: PutArguments): Promise<Buffer> {
  if (args.value !== undefined && args.file !== undefined)
    throw new FarkvError('ERR_CONFIG', 'a value and --file exclude each other');
  if (args.value !== undefined) return Buffer.from(args.value);
  if (args.file === undefined || isStandardInput(args.file)) {
    if (process.stdin.isTTY) printError('the value is read from standard input; Ctrl-D ends it\n');
    return await standardInput();
  }
  try {
    return readRegular(args.file, VALUE_MAX);
  } catch (cause) {
    const piped = cause instanceof NotRegular ? '; --file - reads standard input' : '';
    throw new FarkvError('ERR_CONFIG', `the file ${args.file} cannot be read: ${fileReason(cause)}${piped}`, { cause });
  }
}

const put: CliCommand<PutArguments> = {
  command: 'put <key> [value]',
  describe: 'Write a key',
  builder: (y) =>
    clientOptions(
      y
        .positional('key', { type: 'string', demandOption: true, describe: 'The key, 1 to 1024 bytes' })
        .positional('value', {
          type: 'string',
          describe: 'The value, at most 64 MiB; without it and without --file it is read from standard input',
        }),
    )
      .option('file', {
        alias: 'f',
        type: 'string',
        requiresArg: true,
        describe: 'Read the value from this regular file; - is standard input',
      })
      .option('hex', { type: 'boolean', default: false, describe: 'KEY is in hexadecimal' })
      .option('ttl', {
        type: 'string',
        requiresArg: true,
        describe: 'The entry expires after this: 500ms, 60s, 10m, 24h',
      })
      .option('flags', { ...integerOption(0), describe: '32 bits stored with the value' })
      .example('$0 put greeting hello', 'a value on the command line')
      .example('$0 put picture --file picture.png --ttl 24h', 'a file, for a day')
      .example('date | $0 put now', 'standard input, with its line feed')
      .epilogue(exitCodesHelp({ done: 'the owner has it' })),
  handler: async (args) => {
    const key = keyOf(args.key, args.hex);
    const ttlMs = ttlOf(args.ttl);
    const flags = integerOf('flags', args.flags, 0, 2 ** 32 - 1);
    const value = await valueOf(args);
    await withClient(args, (client) =>
      client.put(key, value, { ...(ttlMs === undefined ? {} : { ttlMs }), ...(flags === 0 ? {} : { flags }) }),
    );
  },
};

export default put;
