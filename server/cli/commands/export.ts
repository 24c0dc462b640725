/** `farkv export FILE.jsonl`: entries as lines of JSON. */
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { FarkvError } from '../../../core/errors.js';
import type { CliCommand } from '../command.js';
import { clientOptions, withClient, type ClientArguments } from '../client-options.js';
import { exitCodesHelp } from '../exit-codes.js';
import { namedFile, Output, STANDARD, print, writing } from '../output.js';
import { transferClient } from '../transfer/tenant-clients.js';
import { countsOf, Progress } from '../transfer/progress.js';

interface ExportArguments extends Omit<ClientArguments, 'namespace'> {
  readonly file: string;
  readonly namespace: number | undefined;
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

/** Has the name only once it is whole and on the disk. */
async function intoFile(path: string, work: (sink: Sink) => Promise<void>): Promise<void> {
  const temporary = `${path}.part`;
  if (existsSync(path)) throw new FarkvError('ERR_CONFIG', `${path} exists already: name a new file`);
  await rm(temporary, { force: true });
  let file: FileHandle;
  try {
    file = await open(temporary, 'wx', 0o600);
  } catch (cause) {
    const { code = 'error' } = cause as NodeJS.ErrnoException;
    throw new FarkvError('ERR_CONFIG', `${temporary} cannot be written: ${code}`, { cause });
  }
  try {
    await work(new FileSink(file, temporary));
    await writing(temporary, () => file.sync());
  } finally {
    await file.close();
  }
  await writing(path, () => rename(temporary, path));
}

const command: CliCommand<ExportArguments> = {
  command: 'export <file>',
  describe: 'Write all entries as lines of JSON',
  builder: (y) =>
    clientOptions(
      y.positional('file', { type: 'string', demandOption: true, describe: 'A new file; - is standard output' }),
    )
      .option('namespace', {
        alias: 'n',
        type: 'number',
        requiresArg: true,
        default: undefined,
        describe: 'Only this namespace, 0 to 65535. Default: all',
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
    const { checkNamespace } = await import('../../../client/arguments.js');
    const { Room } = await import('../transfer/room.js');
    const { shardEntries } = await import('../transfer/shard-entries.js');
    const { lineOf } = await import('../transfer/json-lines.js');
    const space = namespace === undefined ? EVERY_NAMESPACE : checkNamespace(namespace);
    const progress = new Progress('export');
    let entries = 0;
    let bytes = 0;
    const write = async (sink: Sink): Promise<void> => {
      await withClient({ ...args, namespace: 0 }, async (connected) => {
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
      else await intoFile(file, write);
    } finally {
      progress.end();
    }
    if (file !== STANDARD) print(`${file}: ${countsOf(entries, bytes)}\n`);
  },
};

export default command;
