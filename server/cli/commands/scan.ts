/** `farkv scan`: the keys of a namespace, one a line. */
import { visibleJson } from '../../../core/visible-text.js';
import { jsonKey, jsonValue, keyOf, printable } from '../../../tools/transfer/key-text.js';
import type { CliCommand } from '../command.js';
import { clientOptions, INTEGER_OPTION, integerOf, withClient, type ClientArguments } from '../client-options.js';
import { exitCodesHelp } from '../exit-codes.js';
import { Output } from '../output.js';

interface ScanArguments extends ClientArguments {
  readonly values: boolean;
  readonly json: boolean;
  readonly count: boolean;
  readonly limit: string | undefined;
  readonly prefix: string | undefined;
  readonly hex: boolean;
}

const scan: CliCommand<ScanArguments> = {
  command: 'scan',
  describe: 'List all keys of a namespace, in no order',
  builder: (y) =>
    clientOptions(y)
      .option('values', { type: 'boolean', default: false, describe: 'Print KEY, a tab, VALUE' })
      .option('json', {
        type: 'boolean',
        default: false,
        describe:
          'Print one JSON object a line: key (keyHex where it is no text), version, flags, expiresAtMs, and value with --values',
      })
      .option('count', { type: 'boolean', default: false, describe: 'Print only how many there are' })
      .option('prefix', { type: 'string', requiresArg: true, describe: 'Only keys that begin with this' })
      .option('hex', { type: 'boolean', default: false, describe: 'The prefix is in hexadecimal' })
      .option('limit', { ...INTEGER_OPTION, describe: 'Stop after so many, 0 or more' })
      .example('$0 scan --values --json | jq .key', 'for a script')
      .example('$0 scan --count --namespace 7', 'how many keys another namespace has')
      .epilogue(
        'A key that is there from the beginning to the end comes at least once; one that is written or deleted meanwhile may come or not. --count alone has the owners count. ' +
          'In lines of text a backslash is \\\\ and what is not printable \\xNN.\n\n' +
          exitCodesHelp(),
      ),
  handler: async (args) => {
    const output = new Output();
    const limit = args.limit === undefined ? Infinity : integerOf('limit', args.limit, 0, Number.MAX_SAFE_INTEGER);
    const wanted = args.prefix === undefined ? {} : { prefix: keyOf(args.prefix, args.hex) };
    let seen = 0;
    await withClient(args, async (client) => {
      if (limit < 1) return;
      if (args.count && args.limit === undefined && !args.json) {
        seen = await client.count(wanted);
        return;
      }
      for await (const entry of args.values ? client.scan({ ...wanted, values: true }) : client.scan(wanted)) {
        const value = 'value' in entry && Buffer.isBuffer(entry.value) ? entry.value : undefined;
        if (args.json) {
          const { key, version, flags, expiresAtMs } = entry;
          await output.write(
            `${visibleJson({ ...jsonKey(key), ...(value === undefined ? {} : jsonValue(value)), version: String(version), flags, expiresAtMs })}\n`,
          );
        } else if (!args.count) {
          await output.write(
            value === undefined ? `${printable(entry.key)}\n` : `${printable(entry.key)}\t${printable(value)}\n`,
          );
        }
        if (++seen >= limit || output.gone) break;
      }
    });
    if (args.count) await output.write(`${seen}\n`);
  },
};

export default scan;
