/** Completion for fish (completion.ts). A function reads what stands before the cursor, and each line below asks it. */
import type { Definition, OptionDefinition } from './definition.js';
import { brief, HELP, ofFiles, spellings } from './completion-words.js';

const quoted = (text: string): string => `'${text.replaceAll(/[\\']/g, (sign) => `\\${sign}`)}'`;
const list = (words: readonly string[]): string => words.map(quoted).join(' ');

/** Where a line counts: behind these words, and where `at` is given, with so many arguments behind them. */
const where = (path: string, at?: number): string =>
  `complete -c farkv -n ${quoted(`__farkv_at ${quoted(path)}${at === undefined ? '' : ` ${at}`}`)}`;

function optionLines(path: string, option: OptionDefinition): string[] {
  const { choices, describe, isFlag } = option;
  const value = isFlag
    ? ''
    : choices.length > 0
      ? ` -x -a ${quoted(choices.join(' '))}`
      : ofFiles(option)
        ? ' -r'
        : ' -x';
  return spellings(option).map((one) => {
    const name = one.startsWith('--') ? `-l ${one.slice(2)}` : `-s ${one.slice(1)}`;
    return `${where(path)} ${name}${value} -d ${quoted(brief(describe))}`;
  });
}

/** Lines for a command with its actions, or for an action. */
function lines(definition: Definition, path: string): string[] {
  const { actions, options, positionals } = definition;
  return [
    ...[...options, HELP].flatMap((option) => optionLines(path, option)),
    ...actions.map((action) => `${where(path, 0)} -f -a ${action.name} -d ${quoted(brief(action.describe))}`),
    ...positionals.flatMap(({ choices }, at) =>
      choices.length === 0 ? [] : [`${where(path, at)} -f -a ${quoted(choices.join(' '))}`],
    ),
    ...actions.flatMap((action) => lines(action, `${path} ${action.name}`)),
  ];
}

export function fish(commands: readonly Definition[]): string {
  const all = commands.flatMap((command) => [command, ...command.actions]);
  const valued = all.flatMap(({ options }) => options.filter(({ isFlag }) => !isFlag).flatMap(spellings));
  const paths = commands.flatMap(({ name, actions }) => actions.map((action) => `${name} ${action.name}`));
  return `# fish completion of farkv, made from what its commands declare
set -g __farkv_valued ${list([...new Set(valued)])}
set -g __farkv_actions ${list(paths)}

function __farkv_at --description 'Whether a command, an action, and so many arguments stand before the cursor'
    set -l words (commandline -opc)
    set -l path ''
    set -l arguments 0
    set -l is_value 0
    for word in $words[2..-1]
        if test $is_value = 1
            set is_value 0
        else if string match -q -- '-*' $word
            contains -- $word $__farkv_valued; and set is_value 1
        else if test -z "$path"
            set path $word
        else if contains -- "$path $word" $__farkv_actions
            set path "$path $word"
        else
            set arguments (math $arguments + 1)
        end
    end
    test "$path" = "$argv[1]"; or return 1
    not set -q argv[2]; or test $arguments = $argv[2]
end

${where('')} -l version -d 'Show version number'
${where('')} -l help -d 'Show help'
${commands.map(({ name, describe }) => `${where('', 0)} -f -a ${name} -d ${quoted(brief(describe))}`).join('\n')}
${commands.flatMap((command) => lines(command, command.name)).join('\n')}
`;
}
