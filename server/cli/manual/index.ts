/** The manual of farkv: its files by their paths below /usr/share. */
import { PACKAGE_VERSION } from '../../../native/version.js';
import { allCommands } from '../command-list.js';
import { EXIT_CODES_HELP } from '../exit-codes.js';
import { completionFor } from './completion.js';
import { definitionOf } from './definition.js';
import { commandPage, overviewPage, pageName } from './man-page.js';

const ABOUT = 'distributed key-value store whose GETs are one-sided READs';

const END = `Each option of ${pageName('server')}(1) is also an environment variable (FARKV_*) and a key of its --config. What commands share, such as --connect, --token-file and --secrets, is read from FARKV_CONNECT, FARKV_TOKEN_FILE and FARKV_SECRETS too.

${EXIT_CODES_HELP}`;

export async function manual(): Promise<ReadonlyMap<string, string>> {
  const commands = (await allCommands()).map(definitionOf);
  const page = (name: string): string => `man/man1/${name}.1`;
  return new Map([
    [page('farkv'), overviewPage(commands, { version: PACKAGE_VERSION, about: ABOUT, end: END })],
    ...commands.map((command) => [page(pageName(command.name)), commandPage(command, PACKAGE_VERSION)] as const),
    ['bash-completion/completions/farkv', completionFor('bash', commands)],
    ['zsh/vendor-completions/_farkv', completionFor('zsh', commands)],
    ['fish/vendor_completions.d/farkv.fish', completionFor('fish', commands)],
  ]);
}
