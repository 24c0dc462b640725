/**
 * The words of a command line, made ready for yargs, which misreads three kinds of them:
 *
 *  - A flag with a value: yargs takes every value but "true" for false, so `--dry-run=yes` would not be a dry run.
 *  - A flag before "true" or "false": yargs takes that word as the flag's value, though it is an argument.
 *  - Words behind `--`, a lone dash, and "help": yargs drops them, or shows help, though they are arguments.
 *
 * So each flag becomes `--name=true` or `--name=false`, and such arguments become placeholders that nobody can type. The
 * caller puts the arguments back once yargs has read the rest. Not for: options with values, which yargs reads.
 */
import { FarkvError } from '../../core/errors.js';
import { flag } from '../config/option-values.js';
import { camelName } from '../config/options.js';

/** An option that is true or false. */
export interface Flag {
  readonly name: string;
  /** Of one letter. */
  readonly alias?: string;
}

export interface PreparedWords {
  readonly words: readonly string[];
  readonly asksForHelp: boolean;
  /** What yargs made of the words, with the arguments as they were typed. */
  readonly restored: (argv: Readonly<Record<string, unknown>>) => Record<string, unknown>;
}

/** Flags of every command. */
const ALWAYS: readonly Flag[] = [{ name: 'help', alias: 'h' }, { name: 'version' }];

/** No word of a command line has this character: it would end there. */
const MARK = '\0';

/** Throws ERR_CONFIG. */
function setFlag(name: string, typed: string, value: string): string {
  try {
    return `--${name}=${String(flag(value))}`;
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `${typed}: ${(cause as Error).message}`, { cause });
  }
}

/** `-vs`, `-v=true`, `-vn7`: flags of one letter, up to an option with a value. */
function letters(word: string, nameOf: (typed: string) => string | undefined): string[] {
  const found: string[] = [];
  for (let i = 1; i < word.length; i++) {
    const letter = word.charAt(i);
    const name = nameOf(letter);
    if (name === undefined) return [...found, `-${word.slice(i)}`];
    const rest = word.slice(i + 1);
    if (/^[^A-Za-z]/.test(rest)) return [...found, setFlag(name, `-${letter}`, rest.replace(/^=/, ''))];
    found.push(setFlag(name, `-${letter}`, 'true'));
  }
  return found;
}

/**
 * `declared`: the flags of the command and its actions. `hasArguments`: "help" is one of them, and no question.
 * Throws ERR_CONFIG for a flag whose value is neither true nor false.
 */
export function prepareWords(
  typed: readonly string[],
  declared: readonly Flag[],
  hasArguments: boolean,
): PreparedWords {
  const names = new Map<string, string>();
  for (const { name, alias = name } of [...declared, ...ALWAYS])
    for (const spelled of [name, camelName(name), alias]) names.set(spelled, name);
  const nameOf = (spelled: string): string | undefined => names.get(spelled);

  const kept = new Map<string, string>();
  const keep = (word: string): string => {
    const placeholder = `${MARK}${kept.size}`;
    kept.set(placeholder, word);
    return placeholder;
  };

  const isHelp = (word: string): boolean => word === 'help' && hasArguments;
  const read = (word: string): string[] => {
    if (word === '-' || isHelp(word)) return [keep(word)];
    const [, name = '', value = 'true'] = /^--([^=]+)(?:=([\s\S]*))?$/.exec(word) ?? [];
    const known = nameOf(name);
    if (known !== undefined) return [setFlag(known, `--${name}`, value)];
    return /^-[A-Za-z]/.test(word) ? letters(word, nameOf) : [word];
  };
  const end = typed.indexOf('--');
  const words = (end < 0 ? typed : typed.slice(0, end)).flatMap(read);
  const asksForHelp = words.includes('--help=true');
  if (end >= 0) {
    // In the place of `--`, which yargs would end its arguments with, too, a flag ends a list before it.
    words.push(`--help=${String(asksForHelp)}`);
    words.push(...typed.slice(end + 1).map((word) => (word.startsWith('-') || isHelp(word) ? keep(word) : word)));
  }

  const original = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(original);
    return typeof value === 'string' ? (kept.get(value) ?? value) : value;
  };
  return {
    words,
    asksForHelp,
    restored: (argv) => Object.fromEntries(Object.entries(argv).map(([name, value]) => [name, original(value)])),
  };
}
