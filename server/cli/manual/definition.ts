/**
 * What a command declares to yargs, as data: its builder is run with a recorder in place of yargs. Man pages and
 * completions are made from it, so they name what the command line takes. Not for: reading a command line.
 */
import type { Argv, CommandModule, Options, PositionalOptions } from 'yargs';
import type { CliCommand } from '../command.js';

export interface OptionDefinition {
  readonly name: string;
  /** Of one letter. */
  readonly alias?: string;
  readonly isFlag: boolean;
  readonly choices: readonly string[];
  readonly describe: string;
  readonly default?: string;
  readonly group?: string;
}
export type PositionalDefinition = Pick<OptionDefinition, 'name' | 'choices' | 'describe'>;

export interface Example {
  readonly command: string;
  readonly describe: string;
}

/** A command, or an action of one. */
export interface Definition {
  /** `get`; `move` of `shard move <shard> <server>`. */
  readonly name: string;
  /** Behind `farkv`, with its arguments. */
  readonly usage: string;
  readonly describe: string;
  readonly positionals: readonly PositionalDefinition[];
  readonly options: readonly OptionDefinition[];
  /** Each with the command's options too. */
  readonly actions: readonly Definition[];
  readonly examples: readonly Example[];
  readonly epilogue: string;
}

const PROGRAM = '$0';
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const withProgram = (line: string): string => line.replaceAll(PROGRAM, 'farkv');

function defaultOf({ default: value, defaultDescription, type }: Options): string | undefined {
  if (defaultDescription !== undefined) return defaultDescription;
  if (value === undefined || (type === 'boolean' && value === false)) return undefined;
  return String(value);
}

/** The part of yargs that builders of commands call; another call of theirs is a TypeError. */
class Recorder {
  readonly positionals: PositionalDefinition[] = [];
  readonly declared: OptionDefinition[] = [];
  readonly modules: CommandModule[] = [];
  readonly examples: Example[] = [];
  synopsis: string | undefined;
  epilog: string[] = [];

  usage(words: string): this {
    const [synopsis = '', ...described] = words.split('\n\n');
    this.synopsis = synopsis.replace(`${PROGRAM} `, '');
    this.epilog.unshift(...described);
    return this;
  }

  option(name: string, options: Options): this {
    const shown = defaultOf(options);
    this.declared.push({
      name,
      ...(typeof options.alias === 'string' ? { alias: options.alias } : {}),
      isFlag: options.type === 'boolean',
      choices: (options.choices ?? []).map(String),
      describe: text(options.describe),
      ...(shown === undefined ? {} : { default: shown }),
      ...(options.group === undefined ? {} : { group: options.group }),
    });
    return this;
  }

  options(all: Readonly<Record<string, Options>>): this {
    for (const [name, options] of Object.entries(all)) this.option(name, options);
    return this;
  }

  positional(name: string, { choices = [], describe }: PositionalOptions): this {
    this.positionals.push({ name, choices: choices.map(String), describe: text(describe) });
    return this;
  }

  command(module: CommandModule): this {
    this.modules.push(module);
    return this;
  }

  example(command: string, describe: string): this {
    this.examples.push({ command: withProgram(command), describe });
    return this;
  }

  hide(name: string): this {
    const at = this.declared.findIndex((option) => option.name === name);
    if (at >= 0) this.declared.splice(at, 1);
    return this;
  }

  epilogue(words: string): this {
    this.epilog.push(words);
    return this;
  }

  demandCommand(): this {
    return this;
  }
}

function define(module: CommandModule, parent: string, inherited: readonly OptionDefinition[]): Definition {
  const usage = `${parent}${text(module.command)}`;
  const [name = ''] = text(module.command).split(' ');
  const recorder = new Recorder();
  if (typeof module.builder === 'function') void module.builder(recorder as unknown as Argv);
  const options = [...recorder.declared, ...inherited];
  return {
    name,
    usage: recorder.synopsis ?? usage,
    describe: text(module.describe),
    positionals: recorder.positionals,
    options,
    actions: recorder.modules.map((action) => define(action, `${name} `, options)),
    examples: recorder.examples,
    epilogue: recorder.epilog.join('\n\n'),
  };
}

export function definitionOf(command: CliCommand<object>): Definition {
  return define(command, '', []);
}
