/** `farkv import FILE.jsonl|redis://...`: entries from elsewhere. */
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import type { Argv } from 'yargs';
import { FarkvError } from '../../../core/errors.js';
import { fileReason, openRegularFile, NotRegular } from '../../../net/regular-file.js';
import { countsOf, Progress } from '../../../tools/transfer/progress.js';
import type { CliCommand } from '../command.js';
import { clientOptions, namespaceOf, withClient, type ClientArguments } from '../client-options.js';
import { EXIT, exitCodeOf, exitCodesHelp } from '../exit-codes.js';
import { namedFile, STANDARD, print, printError } from '../output.js';
import { KEEP_NEWER } from './restore.js';

interface ImportArguments extends ClientArguments {
  readonly source: string;
  /** undefined: stop for lines, skip for keys of Redis. */
  readonly onError: 'stop' | 'skip' | undefined;
  readonly keepNewer: boolean;
  readonly redisCa: string | undefined;
}

async function streamOf(source: string): Promise<{ readonly stream: Readable; readonly bytes: number }> {
  if (source === STANDARD) return { stream: process.stdin, bytes: 0 };
  try {
    const file = await openRegularFile(source);
    const { size } = await file.stat();
    return { stream: createReadStream('', { fd: file, highWaterMark: 1 << 20 }), bytes: size };
  } catch (cause) {
    const piped = cause instanceof NotRegular ? '; - reads standard input' : '';
    throw new FarkvError('ERR_CONFIG', `the file ${source} cannot be read: ${fileReason(cause)}${piped}`, { cause });
  }
}

async function importLines(args: ImportArguments): Promise<void> {
  const { importJsonLines } = await import('../../../tools/transfer/import-lines.js');
  const { stream, bytes } = await streamOf(args.source);
  const progress = new Progress('import');
  const name = args.source === STANDARD ? 'standard input' : args.source;
  const namespace = namespaceOf(args.namespace);
  const done = await withClient(args, async (client) => {
    try {
      return await importJsonLines(client, stream, {
        namespace,
        keep: args.keepNewer,
        skip: args.onError === 'skip',
        onBad: (line, why) => {
          progress.end();
          printError(`${name}: line ${line}: ${why}\n`);
        },
        onRead: (lines, read) => progress.at(bytes === 0 ? 0 : read / bytes, () => countsOf(lines, read)),
      });
    } finally {
      progress.end();
    }
  });
  print(`${doneText(done)}${done.bad > 0 ? `, ${done.bad.toLocaleString('en')} bad` : ''}\n`);
  if (done.bad === 0) return;
  process.exitCode = EXIT.failed;
  if (args.onError !== 'skip')
    printError(
      `farkv import: stopped after line ${done.lines}; the other lines up to there are imported. --on-error skip goes on\n`,
    );
}

function doneText(done: { readonly written: number; readonly kept: number; readonly expired: number }): string {
  const count = (n: number, text: string): string[] => (n === 0 ? [] : [`${n.toLocaleString('en')} ${text}`]);
  return [
    `${done.written.toLocaleString('en')} entries written`,
    ...count(done.kept, 'were there already'),
    ...count(done.expired, 'have expired'),
  ].join(', ');
}

/** What the command line says to do about a farkv server does not help with another store. */
async function fromRedis(args: ImportArguments): Promise<void> {
  const { RedisFailure } = await import('../../../tools/redis/replies.js');
  try {
    await importRedis(args);
  } catch (error) {
    if (!(error instanceof RedisFailure)) throw error;
    printError(`farkv import: ${error.message}\n`);
    process.exitCode = exitCodeOf(error);
  }
}

async function importRedis(args: ImportArguments): Promise<void> {
  const { importFromRedis } = await import('../../../tools/redis/import-redis.js');
  const { leftOutLines } = await import('../../../tools/redis/left-out.js');
  const progress = new Progress('import');
  const namespace = namespaceOf(args.namespace);
  const done = await withClient(args, async (client) => {
    try {
      return await importFromRedis(client, args.source, {
        namespace,
        keep: args.keepNewer,
        skip: args.onError !== 'stop',
        ...(args.redisCa === undefined ? {} : { caFile: args.redisCa }),
        onRead: (share, entries, bytes) => progress.at(share, () => countsOf(entries, bytes)),
      });
    } finally {
      progress.end();
    }
  });
  print(`${doneText(done)}\n`);
  for (const line of leftOutLines(done.leftOut)) printError(`${line}\n`);
  if (done.leftOut.size > 0) process.exitCode = EXIT.failed;
  if (done.stopped)
    printError(
      'farkv import: stopped at a key that was refused; some keys were not looked at. --on-error skip goes on\n',
    );
}

const command: CliCommand<ImportArguments> = {
  command: 'import <source>',
  describe: 'Put entries from lines of JSON, or from a Redis server',
  builder: (y) =>
    clientOptions(
      y.positional('source', {
        type: 'string',
        demandOption: true,
        describe:
          'A file as farkv export writes it; - is standard input; or redis://[user:pass@]host[:port][/db], rediss:// with TLS',
      }),
    )
      .option('on-error', {
        choices: ['stop', 'skip'] as const,
        defaultDescription: 'stop for lines, skip for Redis',
        describe: 'At a line that is no entry, or a line or key that is refused: stop, or name it and go on',
      })
      .option('keep-newer', KEEP_NEWER)
      .option('redis-ca', {
        type: 'string',
        requiresArg: true,
        describe: 'PEM certificates of authorities to trust for rediss://. Default: those of the system',
      })
      .example('$0 import all.jsonl', 'what farkv export wrote')
      .example('zcat more.jsonl.gz | $0 import - --on-error skip', 'name bad lines and go on')
      .example('$0 import redis://127.0.0.1:6379/0', 'the strings of a Redis database, with their times to live')
      .epilogue(
        '--namespace is that of lines which have none, and of everything from Redis. ' +
          'A password for Redis is better in FARKV_REDIS_PASSWORD than in the address, which other users of this machine see. ' +
          'Redis keys of other types than strings are counted and named, and stay where they are. ' +
          'A user of an ACL of Redis needs the commands ping, select, dbsize, scan, type, strlen, get, pttl, multi and exec, and the keys.\n\n' +
          exitCodesHelp({ failed: 'some lines or keys were not imported' }),
      ) as unknown as Argv<ImportArguments>,
  handler: async (args) => {
    if (/^rediss?:\/\//.test(args.source)) await fromRedis(args);
    else if (args.redisCa !== undefined)
      throw new FarkvError('ERR_CONFIG', '--redis-ca: it is for a Redis server, rediss://, and not for lines of JSON');
    else await importLines({ ...args, source: namedFile(args.source) });
  },
};

export default command;
