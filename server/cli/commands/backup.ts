/** `farkv backup DIR`: every entry of a running cluster into files. */
import { countsOf, Progress } from '../../../tools/transfer/progress.js';
import type { CliCommand } from '../command.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';
import { tenantsOptions, withTenants, type TenantsArguments } from '../tenant-clients.js';

interface BackupArguments extends TenantsArguments {
  readonly dir: string;
}

const backup: CliCommand<BackupArguments> = {
  command: 'backup <dir>',
  describe: 'Copy all entries of a running cluster into a directory',
  builder: (y) =>
    tenantsOptions(
      y.positional('dir', { type: 'string', demandOption: true, describe: 'A new directory, or an empty one' }),
    )
      .example('$0 backup /backups/monday', 'all namespaces of the default tenant')
      .example('$0 backup DIR --token-file a --tenant-token-file b', 'of two tenants')
      .epilogue(
        'A key that is there from the beginning to the end is in the backup, with a value that it had meanwhile. ' +
          'There is no one moment that the backup shows: of two keys, either may be the older one. ' +
          'The token of a reader is enough. A backup that was cut off is refused by restore.\n\n' +
          exitCodesHelp({ done: 'the backup is whole and on the disk' }),
      ),
  handler: async (args) => {
    const { takeBackup } = await import('../../../tools/backup/take.js');
    const progress = new Progress('backup');
    await withTenants(args, async (clients) => {
      try {
        const manifest = await takeBackup(clients, args.dir, ({ share, entries, bytes }) =>
          progress.at(share, () => countsOf(entries, bytes)),
        );
        progress.end();
        print(`${args.dir}: ${countsOf(manifest.entries, manifest.bytes)}\n`);
      } finally {
        progress.end();
      }
    });
  },
};

export default backup;
