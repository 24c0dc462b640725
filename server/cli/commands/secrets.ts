/** `farkv secrets init DIR`: a directory of tokens, one file for each role, for `farkv server --secrets DIR`. */
import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Argv } from 'yargs';
import { FarkvError } from '../../../core/errors.js';
import { TOKEN_NAMES } from '../../config/options.js';
import type { CliCommand } from '../command.js';
import { exitCodesHelp } from '../exit-codes.js';

interface SecretsArguments {
  readonly directory: string;
}

const TOKEN_BYTES = 32;

/** Nothing that is there is written over: whoever uses it would be locked out. */
function makeToken(path: string): void {
  let file: number;
  try {
    file = openSync(path, 'wx', 0o600);
  } catch (cause) {
    const there = (cause as NodeJS.ErrnoException).code === 'EEXIST';
    throw new FarkvError(
      'ERR_CONFIG',
      there
        ? `${path} exists: a token is exchanged by adding a line to it, and taking the old one out later`
        : `${path} cannot be written: ${(cause as Error).message}`,
      { cause },
    );
  }
  writeSync(file, `${randomBytes(TOKEN_BYTES).toString('base64url')}\n`);
  closeSync(file);
}

function init(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    chmodSync(directory, 0o700);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `${directory} cannot be made: ${(cause as Error).message}`, { cause });
  }
  for (const name of TOKEN_NAMES) makeToken(join(directory, name));
  process.stdout.write(
    TOKEN_NAMES.map((name) => `${join(directory, name)}\n`).join('') +
      `Copy ${directory} to every server (farkv server --secrets ${directory}), and to each program the file of its role.\n`,
  );
}

const ACTIONS = { init: 'init <directory>' } as const;

const command: CliCommand<object> = {
  command: 'secrets <action>',
  describe: 'Make a directory of tokens, one file for each role',
  actions: ACTIONS,
  builder: (y) =>
    y
      .command({
        command: ACTIONS.init,
        describe: 'Make the directory, and a token for each role',
        builder: (z: Argv) =>
          z.positional('directory', {
            type: 'string',
            demandOption: true,
            describe: 'Made if needed, for its owner alone',
          }) as Argv<SecretsArguments>,
        handler: ({ directory }: SecretsArguments) => init(directory),
      })
      .demandCommand(1, 'Choose an action: init')
      .example('$0 secrets init /etc/farkv/secrets', 'then: farkv server --secrets /etc/farkv/secrets')
      .epilogue(
        `token: clients. reader-token: clients that only read. operator-token: farkv status, drain, member, shard.\nmonitor-token: the status. peer-token: servers, and nobody else.\n\n${exitCodesHelp({ done: 'made' })}`,
      ),
  handler: () => undefined,
};
export default command;
