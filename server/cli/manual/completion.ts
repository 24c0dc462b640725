/**
 * Completion for bash, zsh and fish: scripts that need no farkv at run time, so that a key press starts no Node.js. They
 * complete commands, actions, options, and the values of those that have a fixed set; elsewhere names of files.
 */
import type { Definition, OptionDefinition, PositionalDefinition } from './definition.js';
import { fish } from './completion-fish.js';
import { brief, HELP, ofFiles, quoted, spellings } from './completion-words.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

// ---- bash ----

/** Of a case, with what each pattern completes. */
function arm(pattern: string, words: readonly string[]): string {
  return `    ${pattern}) words=${quoted(words.join(' '))} ;;\n`;
}

/** The paths that a word completes under: a command, or a command and its action. */
function paths(commands: readonly Definition[]): (readonly [path: string, definition: Definition])[] {
  return commands.flatMap((command) => [
    [command.name, command] as const,
    ...command.actions.map((action) => [`${command.name} ${action.name}`, action] as const),
  ]);
}

function bash(commands: readonly Definition[]): string {
  const all = paths(commands);
  const valued = [
    ...new Set(all.flatMap(([, { options }]) => options.filter(({ isFlag }) => !isFlag).flatMap(spellings))),
  ];
  const chosen = all.flatMap(([path, { options }]) =>
    options
      .filter(({ choices }) => choices.length > 0)
      .map((option) =>
        arm(
          spellings(option)
            .map((one) => quoted(`${path} ${one}`))
            .join(' | '),
          option.choices,
        ),
      ),
  );
  const placed = all.flatMap(([path, { positionals }]) =>
    positionals.flatMap(({ choices }, at) => (choices.length === 0 ? [] : [arm(quoted(`${path} ${at}`), choices)])),
  );
  return `# bash completion of farkv, made from what its commands declare
_farkv() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev= path= words= word i at=0
  local valued=${quoted(` ${valued.join(' ')} `)}
  COMPREPLY=()
  # --name=value is three words here.
  [ "$cur" != = ] || cur=
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [ "$word" = = ]; then
      continue
    elif [ -n "$prev" ]; then
      prev=
    elif [[ $word == -* ]]; then
      [[ $valued != *" $word "* ]] || prev=$word
    elif [ -z "$path" ]; then
      path=$word
    else
      case "$path $word" in
${all
  .filter(([path]) => path.includes(' '))
  .map(([path]) => quoted(path))
  .map((path) => `        ${path}) path="$path $word" ;;\n`)
  .join('')}        *) at=$((at + 1)) ;;
      esac
    fi
  done
  if [ -n "$prev" ]; then
    case "$path $prev" in
${chosen.join('')}    esac
  elif [[ $cur == -* ]]; then
    case "$path" in
${all.map(([path, { options }]) => arm(quoted(path), [...options.flatMap(spellings), '--help'])).join('')}${arm('*', ['--help', '--version'])}    esac
  else
    case "$path $at" in
${arm(
  "' 0'",
  commands.map(({ name }) => name),
)}${commands
    .filter(({ actions }) => actions.length > 0)
    .map(({ name, actions }) =>
      arm(
        quoted(`${name} 0`),
        actions.map((action) => action.name),
      ),
    )
    .join('')}${placed.join('')}    esac
  fi
  [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _farkv farkv
`;
}

// ---- zsh ----

const inBrackets = (text: string): string => text.replace(/[[\]\\:]/g, (sign) => `\\${sign}`);

function zshValue(of: PositionalDefinition): string {
  if (of.choices.length > 0) return `:${of.name}:(${of.choices.join(' ')})`;
  return ofFiles(of) ? `:${of.name}:_files` : `:${of.name}: `;
}

function zshOption(option: OptionDefinition): string[] {
  return spellings(option).map((one) => {
    const described = `[${inBrackets(brief(option.describe))}]`;
    if (option.isFlag) return quoted(`${one}${described}`);
    return quoted(`*${one}${one.startsWith('--') ? '=' : '+'}${described}${zshValue(option)}`);
  });
}

function zshArguments({ options, positionals }: Definition): string[] {
  return [
    ...[...options, HELP].flatMap(zshOption),
    ...positionals.map((one) => quoted(`:${zshValue(one)}`.replace(/^::/, ':'))),
  ];
}

const described = (definitions: readonly Definition[]): string =>
  definitions.map(({ name, describe }) => quoted(`${name}:${inBrackets(describe)}`)).join(' ');

/** A function for each command; one with actions has one for each of them. */
function zshFunction(definition: Definition, path: string): string {
  const { actions } = definition;
  if (actions.length === 0) return `${path}() {\n  _arguments -s ${zshArguments(definition).join(' ')}\n}\n`;
  return [
    ...actions.map((action) => zshFunction(action, `${path}_${action.name}`)),
    zshChoice(path, definition, 'action'),
  ].join('');
}

/** Options may stand before the action, too. */
function zshChoice(path: string, { actions, options }: Pick<Definition, 'actions' | 'options'>, what: string): string {
  return `${path}() {
  local curcontext=$curcontext context state line
  typeset -A opt_args
  local -a choices=(${described(actions)})
  _arguments -C ${[...options, HELP].flatMap(zshOption).join(' ')} ':${what}:->choice' '*:: :->arguments'
  case $state in
    choice) _describe -t ${what}s ${what} choices ;;
    arguments)
      if (( $+functions[${path}_$words[1]] )); then ${path}_$words[1]; else _files; fi ;;
  esac
}
`;
}

function zsh(commands: readonly Definition[]): string {
  return `#compdef farkv
# zsh completion of farkv, made from what its commands declare
${commands.map((command) => zshFunction(command, `_farkv_${command.name}`)).join('')}${zshChoice('_farkv', { actions: commands, options: [] }, 'command')}
if [ "$funcstack[1]" = _farkv ]; then _farkv "$@"; else compdef _farkv farkv; fi
`;
}

export function completionFor(shell: Shell, commands: readonly Definition[]): string {
  return { bash, zsh, fish }[shell](commands);
}
