/**
 * What a file in commands/ exports by default. A command is loaded when it is used, or when help about all of them is
 * asked for, so `farkv get` does not pay for the benchmark, and `--help` works where the native addon does not load: a
 * command imports the addon, the SDK and the server inside its handler.
 *
 * The handler throws to fail: a FarkvError's code becomes the exit code (exit-codes.ts) and its message the last line
 * on standard error. To end otherwise it sets process.exitCode.
 */
import type { CommandModule } from 'yargs';

export interface CliCommand<Options> extends CommandModule<object, Options> {
  /**
   * Rewrites the words after the command's name before yargs sees them, for spellings that it cannot read (`-threads
   * 4`).
   */
  readonly prepareArgs?: (args: readonly string[]) => string[];
  /** Where a word behind the command says what is to be done: each such word, and how it is used. */
  readonly actions?: Readonly<Record<string, string>>;
  /** The handler checks option names itself. */
  readonly ownOptions?: boolean;
}
