/** `farkv completion bash|zsh|fish`: what completes `farkv` on a shell's command line. */
import type { CliCommand } from '../command.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';
import { completionFor, SHELLS, type Shell } from '../manual/completion.js';
import { definitionOf } from '../manual/definition.js';

interface CompletionArguments {
  readonly shell: Shell;
}

const completion: CliCommand<CompletionArguments> = {
  command: 'completion <shell>',
  describe: 'Print what completes farkv on the command line of a shell',
  builder: (y) =>
    y
      .positional('shell', { choices: SHELLS, demandOption: true, describe: 'For which shell' })
      .example('source <($0 completion bash)', 'in ~/.bashrc')
      .example('$0 completion zsh > ~/.zfunc/_farkv', 'in a directory of $fpath')
      .example('$0 completion fish > ~/.config/fish/completions/farkv.fish', 'read when farkv is first completed')
      .epilogue(exitCodesHelp({ done: 'printed' })),
  handler: async ({ shell }) => {
    const { allCommands } = await import('../command-list.js');
    print(completionFor(shell, (await allCommands()).map(definitionOf)));
  },
};
export default completion;
