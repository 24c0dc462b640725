/** Manual pages: farkv(1), and one for each command, in the language of man(7). */
import type { Definition, OptionDefinition } from './definition.js';

/** With `farkv`, at the front of a page's name. */
const PREFIX = 'farkv';

const SIGNS: Readonly<Record<string, string>> = {
  '\\': '\\e',
  '-': '\\-',
  "'": '\\(aq',
  '`': '\\(ga',
  '"': '\\(dq',
  '^': '\\(ha',
  '~': '\\(ti',
};

/** Text as it is; a line begins with no request. */
export function escaped(text: string): string {
  return text.replace(/[\\\-'`"^~]/g, (sign) => SIGNS[sign] ?? sign).replace(/^\./gm, '\\&.');
}

const bold = (text: string): string => `\\fB${escaped(text)}\\fR`;
const italic = (text: string): string => `\\fI${escaped(text)}\\fR`;
const heading = (title: string): string => `.SH ${escaped(title.toUpperCase())}\n`;
const item = (term: string, body: string): string => `.TP\n${term}\n${body}\n`;

/** `<key>` and `[address..]` as arguments, the rest as it is typed. */
function synopsis(usage: string): string {
  return `${PREFIX} ${usage}`
    .split(' ')
    .map((word) => (/^[<[]/.test(word) ? italic(word) : bold(word)))
    .join(' ');
}

function optionItem({ name, alias, isFlag, choices, describe, default: value }: OptionDefinition): string {
  const dashes = (one: string): string => (one.length === 1 ? `-${one}` : `--${one}`);
  const spelled = [...(alias === undefined ? [] : [alias]), name].map((one) => bold(dashes(one))).join(', ');
  const argument = isFlag ? '' : ` ${italic(choices.length > 0 ? choices.join('|') : 'VALUE')}`;
  const shown = value === undefined ? '' : ` Default: ${value}.`;
  return item(spelled + argument, escaped(`${describe}.${shown}`));
}

/** Those of a group stand below its name. */
function optionList(options: readonly OptionDefinition[]): string {
  const groups = [...new Set(options.map(({ group }) => group))];
  return groups
    .map(
      (group) =>
        (group === undefined ? '' : `.SS ${escaped(group)}\n`) +
        options
          .filter((option) => option.group === group)
          .map(optionItem)
          .join(''),
    )
    .join('');
}

/** Paragraphs; one with an indented line keeps its lines. */
function paragraphs(text: string): string {
  return text
    .split('\n\n')
    .map((one) => {
      const lines = escaped(one).split('\n');
      return /^ /m.test(one) ? `.PP\n.nf\n${lines.join('\n')}\n.fi\n` : `.PP\n${lines.join('\n.br\n')}\n`;
    })
    .join('');
}

function examplesOf({ examples }: Definition): string {
  if (examples.length === 0) return '';
  return heading('Examples') + examples.map(({ command, describe }) => item(bold(command), escaped(describe))).join('');
}

function argumentsOf({ positionals }: Definition): string {
  return positionals
    .map(({ name, choices, describe }) =>
      item(italic(name), escaped(choices.length === 0 ? `${describe}.` : `${describe} (${choices.join(', ')}).`)),
    )
    .join('');
}

/** An action has those options that the command has not. */
function actionSection(action: Definition, command: Definition): string {
  const own = action.options.filter((option) => !command.options.includes(option));
  return `.SS ${escaped(action.usage)}\n${escaped(action.describe)}.\n${argumentsOf(action)}${optionList(own)}`;
}

const title = (name: string, version: string): string =>
  `.\\" Made by scripts/make-manual.mjs from what the command declares.\n.TH ${escaped(name.toUpperCase())} 1 "" "farkv ${version}" "farkv"\n`;

export const pageName = (command: string): string => `${PREFIX}-${command}`;

export function commandPage(command: Definition, version: string): string {
  const name = pageName(command.name);
  const usages = command.actions.length === 0 ? [command.usage] : command.actions.map(({ usage }) => usage);
  return [
    title(name, version),
    `${heading('Name')}${escaped(name)} \\- ${escaped(command.describe)}\n`,
    heading('Synopsis'),
    usages.map(synopsis).join('\n.br\n'),
    '\n',
    paragraphsUnder('Description', command.epilogue),
    command.actions.length === 0 ? '' : heading('Actions'),
    ...command.actions.map((action) => actionSection(action, command)),
    command.positionals.length === 0 ? '' : heading('Arguments') + argumentsOf(command),
    command.options.length === 0 ? '' : heading('Options') + optionList(command.options),
    examplesOf(command),
    `${heading('See also')}${bold(PREFIX)}(1)\n`,
  ].join('');
}

function paragraphsUnder(name: string, text: string): string {
  return text === '' ? '' : heading(name) + paragraphs(text);
}

/** `about`: what farkv is; `end`: what holds for all commands. */
export function overviewPage(
  commands: readonly Definition[],
  { version, about, end }: { readonly version: string; readonly about: string; readonly end: string },
): string {
  return [
    title(PREFIX, version),
    `${heading('Name')}${PREFIX} \\- ${escaped(about)}\n`,
    `${heading('Synopsis')}${bold(PREFIX)} ${italic('COMMAND')} [${italic('OPTIONS')}]\n`,
    heading('Commands'),
    ...commands.map((command) => item(`${bold(pageName(command.name))}(1)`, `${escaped(command.describe)}.`)),
    paragraphsUnder('Description', end),
    `${heading('Files')}${item(escaped('/etc/farkv/farkv.yaml'), 'Options of the server that systemd runs, by their names.')}`,
    item(escaped('/etc/default/farkv'), 'The same as environment variables, which win over the file.'),
    item(escaped('/var/lib/farkv'), 'Its data directory.'),
  ].join('');
}
