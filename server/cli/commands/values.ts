/** `farkv values check DIR`: is a backup whole? Needs no server. */
import type { Argv } from 'yargs';
import { FarkvError } from '../../../core/errors.js';
import { countsOf, Progress } from '../../../tools/transfer/progress.js';
import type { CliCommand } from '../command.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';

interface CheckArguments {
  readonly dir: string;
}

async function check({ dir }: CheckArguments): Promise<void> {
  const { readManifest } = await import('../../../tools/backup/manifest.js');
  const { checkBackup } = await import('../../../tools/backup/check.js');
  const { damageText } = await import('../../../tools/backup/chunk-reader.js');
  const manifest = await readManifest(dir);
  const progress = new Progress('check');
  let damages = 0;
  let bytes = 0;
  await checkBackup(
    dir,
    manifest,
    (damage) => {
      progress.end();
      damages++;
      print(`${damageText(damage)}\n`);
    },
    (read) => {
      bytes += read;
      progress.at(bytes / manifest.bytes, () => countsOf(manifest.entries, manifest.bytes));
    },
  );
  progress.end();
  if (damages > 0)
    throw new FarkvError('ERR_CORRUPT', `${damages} ${damages === 1 ? 'place is' : 'places are'} damaged in ${dir}`);
  print(
    `${dir}: whole; ${countsOf(manifest.entries, manifest.bytes)} of cluster ${manifest.clusterId}, ${manifest.startedAt} to ${manifest.endedAt}\n`,
  );
}

const ACTIONS = { check: 'check <dir>' } as const;

const command: CliCommand<object> = {
  command: 'values <action>',
  describe: 'Check the files of a backup, without a server',
  actions: ACTIONS,
  builder: (y) =>
    y
      .command({
        command: ACTIONS.check,
        describe: 'Read a whole backup, and name each damaged place by file and offset',
        builder: (z: Argv) =>
          z.positional('dir', {
            type: 'string',
            demandOption: true,
            describe: 'What farkv backup made',
          }) as Argv<CheckArguments>,
        handler: check,
      })
      .demandCommand(1, 'Choose an action: check')
      .example('$0 values check /backups/monday', 'every CRC32C, count and sum')
      .epilogue(exitCodesHelp({ done: 'the backup is whole', failed: 'it is damaged, or was not finished' })),
  handler: () => undefined,
};

export default command;
