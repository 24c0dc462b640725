/**
 * `farkv`: finds the command, lets yargs read the rest, and turns what went wrong into one line and an exit code. What
 * the commands do stands in commands/.
 */
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import yargs, { type Argv } from 'yargs';
import { FarkvError } from '../../core/errors.js';
import { visible } from '../../core/visible-text.js';
import { PACKAGE_VERSION } from '../../native/version.js';
import { WriteFailure } from '../../tools/transfer/write-failure.js';
import { checkEnvironment } from '../config/environment.js';
import { camelName } from '../config/options.js';
import { unknownName } from '../../core/nearest.js';
import type { CliCommand } from './command.js';
import { allCommands, commandNamed, COMMANDS } from './command-list.js';
import { EXIT, EXIT_CODES_HELP, exitCodeOf, hintFor } from './exit-codes.js';
import { definitionOf } from './manual/definition.js';
import { printError, Told, watchOutput } from './output.js';
import { prepareWords, type PreparedWords } from './words.js';

/** The words that a wrong option may have been meant for: what the chosen command declares. */
interface ParserOptions {
  readonly key: Readonly<Record<string, unknown>>;
  readonly alias: Readonly<Record<string, readonly string[]>>;
  readonly array: readonly string[];
}

function checkNames(argv: Readonly<Record<string, unknown>>, options: ParserOptions): true {
  const known = [
    ...Object.keys(options.key),
    ...Object.entries(options.alias).flatMap(([name, more]) => [name, ...more]),
  ];
  const spelled = new Set([...known, ...known.map(camelName), '_', '$0']);
  for (const [name, value] of Object.entries(argv)) {
    if (name.length > 1 && Object.hasOwn(options.key, name) && Array.isArray(value) && !options.array.includes(name))
      throw new FarkvError('ERR_CONFIG', `--${name} is given ${value.length} times: give it once`);
    if (spelled.has(name)) continue;
    const unknown = unknownName(
      'option',
      name,
      known.filter((n) => n.length > 1),
      name.length === 1 ? '-' : '--',
    );
    throw new FarkvError('ERR_CONFIG', `${unknown}${BY_ADDRESS.test(name) ? BY_ADDRESS_TEXT : ''}`);
  }
  return true;
}

/** What yargs says of a wrong command line, in the words of this program, on one line. */
function usageMessage(
  message: string,
  command: CliCommand<object> | undefined,
  action: string | undefined,
  word: string | undefined,
): string {
  const usage = typeof command?.command === 'string' ? `; usage: farkv ${usageOf(command, action)}` : '';
  if (command?.actions !== undefined && action === undefined && word !== undefined)
    return `${unknownName('action', word, Object.keys(command.actions))}${usage}`;
  if (message.startsWith('Not enough non-option arguments')) return `an argument is missing${usage}`;
  const extra = /^Unknown commands?: (.*)$/.exec(message)?.[1];
  // Behind an unknown command come its arguments, which yargs counts as commands, too.
  if (extra !== undefined && command === undefined)
    return unknownName('command', extra.split(', ')[0] ?? extra, Object.keys(COMMANDS));
  if (extra !== undefined) return `there is an argument too many: ${extra}${usage}`;
  // Of several wrong ones the first.
  const choice = /^Invalid values:\s*Argument: ([\w-]+), Given: (.*?), Choices: ([^\n]*)/s.exec(message);
  if (choice !== null) {
    const name =
      typeof command?.command === 'string' && command.command.includes(`<${choice[1] ?? ''}>`)
        ? `<${choice[1] ?? ''}>`
        : `--${choice[1] ?? ''}`;
    return `${name}: ${choice[2] ?? ''} is none of ${(choice[3] ?? '').replaceAll('"', '').trim()}`;
  }
  return message.replace(/\s*\n\s*/g, ' ');
}

function usageOf(command: CliCommand<object>, action: string | undefined): string {
  const [name = ''] = String(command.command).split(' ');
  if (command.actions === undefined) return String(command.command);
  return `${name} ${action === undefined ? Object.keys(command.actions).join('|') : (command.actions[action] ?? '')}`;
}

/** What other programs that use RDMA have options for. */
const BY_ADDRESS = /^rdma-?(gid|pkey|partition|mtu|port|vlan|retr)/i;
const BY_ADDRESS_TEXT =
  '. Over RDMA the IP address says which port, GID, partition and MTU; docs/rdma.md has where each thing is decided';

/** Options stand behind a command; --help and --version are all that can stand alone. */
function checkAlone(args: readonly string[]): void {
  const known = ['help', 'version', 'h'];
  for (const word of args) {
    const name = /^--?([^=]+)/.exec(word)?.[1];
    if (name !== undefined && !known.includes(name))
      throw new FarkvError(
        'ERR_CONFIG',
        `${unknownName('option', name, known, '--')} (options of a command stand behind it)`,
      );
  }
}

/**
 * Bytes that are no UTF-8 come as U+FFFD, whatever they were: two keys would become one. What was typed is looked at
 * again only where there is such a character.
 */
function checkWords(args: readonly string[]): void {
  if (!args.some((word) => word.includes('\ufffd'))) return;
  if (isUtf8(readFileSync('/proc/self/cmdline'))) return;
  throw new FarkvError(
    'ERR_CONFIG',
    'a word of the command line is not UTF-8: write a key of such bytes with --hex, and put such a value with --file or from standard input',
  );
}

/** What was typed, by the first word that is no option. */
interface Typed {
  readonly args: readonly string[];
  /** Of the command's name in `args`; -1: there is none. */
  readonly at: number;
  readonly name: string | undefined;
  /** undefined: no command has this name. */
  readonly command: CliCommand<object> | undefined;
  readonly action: string | undefined;
}

/** Throws ERR_CONFIG. */
function prepared({ args, at, command, action }: Typed): PreparedWords {
  if (command === undefined) return prepareWords(args, [], false);
  const behind = args.slice(at + 1);
  const words = [...args.slice(0, at + 1), ...(command.prepareArgs?.(behind) ?? behind)];
  const definition = definitionOf(command);
  const all = [definition, ...definition.actions];
  const flags = all.flatMap(({ options }) => options).filter(({ isFlag }) => isFlag);
  const chosen = all.find(({ name }) => name === action) ?? definition;
  return prepareWords(words, flags, chosen.positionals.length > 0);
}

function parserOf(
  { words, asksForHelp, restored }: PreparedWords,
  { args, at, command, action }: Typed,
  commands: readonly CliCommand<object>[],
): Argv {
  const parser = yargs([...words])
    .scriptName('farkv')
    // Its errors are read, and put into other words, below.
    .locale('en')
    .usage('$0 COMMAND [OPTIONS]\n\nA distributed key-value store whose GETs are one-sided READs.')
    .version(PACKAGE_VERSION)
    .parserConfiguration({ 'parse-positional-numbers': false, 'populate--': false })
    .option('help', {
      alias: 'h',
      type: 'boolean',
      describe: 'Show help; after a command, all of its options and limits',
    })
    .demandCommand(1, 'A command is needed.')
    .strictCommands()
    .middleware((argv) => void Object.assign(argv, restored(argv)), true)
    .example('$0 server --data-dir /var/lib/farkv', 'one server on 127.0.0.1:7400')
    .example('$0 put greeting hello && $0 get greeting', 'write and read a key')
    .example('$0 status', 'members, leader, shards, memory')
    .epilogue(EXIT_CODES_HELP)
    // Of each command that runs yargs makes the help, too, for nobody: unwrapped that takes a tenth of the time.
    .wrap(
      command !== undefined && !asksForHelp ? null : process.stdout.isTTY ? Math.min(process.stdout.columns, 140) : 120,
    )
    .exitProcess(false)
    // A message alone is yargs' own: what was typed is wrong.
    .fail((message, error: Error | undefined) => {
      const word = args.slice(at + 1).find((one) => !one.startsWith('-'));
      throw error ?? new FarkvError('ERR_CONFIG', usageMessage(message, command, action, word));
    });
  for (const one of commands) parser.command(one);
  if (command?.ownOptions !== true)
    parser.check((argv, options) => checkNames(argv, options as unknown as ParserOptions), true);
  return parser;
}

/** Runs one command line; the exit code is in process.exitCode when the promise is settled. */
export async function main(args: readonly string[]): Promise<void> {
  const at = args.findIndex((word) => !word.startsWith('-'));
  const name = at < 0 ? undefined : args[at];
  const command = await (name === undefined ? undefined : commandNamed(name)?.());
  const commands = command === undefined ? await allCommands() : [command];
  const action = args
    .slice(at + 1)
    .find((word) => command?.actions !== undefined && Object.hasOwn(command.actions, word));
  const typed: Typed = { args, at, name, command, action };
  const program = command === undefined ? 'farkv' : `farkv ${name ?? ''}`;
  watchOutput(program, false);
  try {
    const ready = prepared(typed);
    if ((name === 'server' || name === 'gateway') && !ready.asksForHelp) watchOutput(program, true);
    checkWords(args);
    checkEnvironment(process.env);
    if (name === undefined) checkAlone(args);
    await parserOf(ready, typed, commands).parseAsync();
  } catch (error) {
    if (error instanceof Told) {
      process.exitCode = exitCodeOf(error.cause);
      return;
    }
    const code = error instanceof WriteFailure ? EXIT.output : exitCodeOf(error);
    printError(`${program}: ${visible(error instanceof Error ? error.message : String(error))}\n`);
    if (error instanceof Error && process.env.FARKV_STACK !== undefined) printError(`${error.stack ?? ''}\n`);
    const hint = hintFor(error, name);
    if (hint !== undefined) printError(`${hint}\n`);
    if (code === 2)
      printError(
        `Try: farkv ${command === undefined ? '' : `${[name, action].filter((word) => word !== undefined).join(' ')} `}--help\n`,
      );
    process.exitCode = code;
  }
}
