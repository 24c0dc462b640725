/** `farkv export FILE.jsonl`: entries as lines of JSON. */
import type { FileHandle } from 'node:fs/promises';
import { newFile } from '../../../tools/transfer/new-file.js';
import { countsOf, Progress } from '../../../tools/transfer/progress.js';
import { transferClient } from '../../../tools/transfer/transfer-client.js';
import { writing } from '../../../tools/transfer/write-failure.js';
import type { CliCommand } from '../command.js';
import { clientOptions, INTEGER_OPTION, namespaceOf, withClient, type ClientArguments } from '../client-options.js';
import { exitCodesHelp } from '../exit-codes.js';
import { namedFile, Output, STANDARD, print } from '../output.js';

interface ExportArguments extends Omit<ClientArguments, 'namespace'> {
  readonly file: string;
  readonly namespace: string | undefined;
}

interface Sink {
  write(text: string): Promise<void>;
  /** Nobody reads any more. */
  readonly gone: boolean;
}

/** A line is written whole before the next one. */
class FileSink implements Sink {
  readonly gone = false;
  readonly #file: FileHandle;
  readonly #path: string;

  constructor(file: FileHandle, path: string) {
    this.#file = file;
    this.#path = path;
  }

  async write(text: string): Promise<void> {
    await writing(this.#path, () => this.#file.appendFile(text));
  }
}

const command: CliCommand<ExportArguments> = {
  command: 'export <file>',
  describe: 'Write all entries as lines of JSON',
  builder: (y) =>
    clientOptions(
      y.positional('file', { type: 'string', demandOption: true, describe: 'A new file; - is standard output' }),
    )
      .option('namespace', {
        ...INTEGER_OPTION,
        alias: 'n',
        default: undefined,
        defaultDescription: 'all',
        describe: 'Only this namespace, 0 to 65535',
      })
      .example('$0 export all.jsonl', 'every namespace of the tenant')
      .example('$0 export - -n 7 | gzip > seven.jsonl.gz', 'one namespace')
      .epilogue(
        'A line is {"key", "value"}, with namespace, codec, flags and expiresAtMs (milliseconds since the epoch) where they are not 0 or never. ' +
          'Bytes that are no UTF-8 are key64 and value64, in base64; so is a value over 1 MiB. ' +
          'A key that is there from the beginning to the end comes at least once.\n\n' +
          exitCodesHelp(),
      ),
  handler: async ({ file: given, namespace, ...args }) => {
    const file = namedFile(given);
    const { EVERY_NAMESPACE } = await import('../../../native/native-client.js');
    const { Room } = await import('../../../tools/transfer/room.js');
    const { shardEntries } = await import('../../../tools/transfer/shard-entries.js');
    const { lineOf } = await import('../../../tools/transfer/json-lines.js');
    const space = namespace === undefined ? EVERY_NAMESPACE : namespaceOf(namespace);
    const progress = new Progress('export');
    let entries = 0;
    let bytes = 0;
    const write = async (sink: Sink): Promise<void> => {
      await withClient({ ...args, namespace: '0' }, async (connected) => {
        const client = await transferClient(connected);
        const { first, count } = client.origin().shards;
        const room = new Room(0);
        for (let i = 0; i < count; i++) {
          for await (const part of shardEntries(client, first + i, space, room)) {
            for (const entry of part.entries) {
              const line = lineOf(entry);
              await sink.write(line);
              if (sink.gone) return;
              entries++;
              bytes += line.length;
            }
            progress.at((i + part.share) / count, () => countsOf(entries, bytes));
          }
        }
      });
    };
    try {
      if (file === STANDARD) await write(new Output());
      else await newFile(file, (handle, path) => write(new FileSink(handle, path)));
    } finally {
      progress.end();
    }
    if (file !== STANDARD) print(`${file}: ${countsOf(entries, bytes)}\n`);
  },
};

export default command;
