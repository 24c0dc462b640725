/** `farkv restore DIR`: a backup into a running cluster. */
import type { Argv } from 'yargs';
import { countsOf, Progress } from '../../../tools/transfer/progress.js';
import type { CliCommand } from '../command.js';
import { EXIT, exitCodesHelp } from '../exit-codes.js';
import { print, printError } from '../output.js';
import { tenantsOptions, withTenants, type TenantsArguments } from '../tenant-clients.js';

interface RestoreArguments extends TenantsArguments {
  readonly dir: string;
  readonly keepNewer: boolean;
}

/** Refused entries that are named. */
const NAMED_MAX = 10;

/** Of import too. */
export const KEEP_NEWER = {
  type: 'boolean',
  default: false,
  describe:
    'Leave keys that are in the cluster as they are. farkv does not store when a value was written, so each counts as newer',
} as const;

const restore: CliCommand<RestoreArguments> = {
  command: 'restore <dir>',
  describe: 'Put the entries of a backup into a cluster of any size',
  builder: (y) =>
    tenantsOptions(y.positional('dir', { type: 'string', demandOption: true, describe: 'What farkv backup made' }))
      .option('keep-newer', KEEP_NEWER)
      .example('$0 restore /backups/monday', 'values of the backup replace those of the cluster')
      .example('$0 restore /backups/monday --keep-newer', 'only keys that are absent')
      .epilogue(
        'The whole backup is checked before the first entry is written. Namespaces, flags, codecs and times of expiry are kept; ' +
          'what has expired is left out. Keys that the backup does not have stay. A restore that failed can be run again.\n\n' +
          exitCodesHelp({ failed: 'the backup is damaged or not finished, or the cluster refused an entry' }),
      ) as unknown as Argv<RestoreArguments>,
  handler: async (args) => {
    const { readManifest } = await import('../../../tools/backup/manifest.js');
    const { restoreBackup } = await import('../../../tools/backup/restore.js');
    const { printable } = await import('../../../tools/transfer/key-text.js');
    const { damageText } = await import('../../../tools/backup/chunk-reader.js');
    const manifest = await readManifest(args.dir);
    const checking = new Progress('check');
    const writing = new Progress('restore');
    let checked = 0;
    let put = 0;
    let refused = 0;
    await withTenants(args, async (clients) => {
      try {
        const { written, kept, expired } = await restoreBackup(args.dir, manifest, clients, args.keepNewer, {
          damage: (damage) => {
            checking.end();
            printError(`${damageText(damage)}\n`);
          },
          checked: (bytes) => {
            checked += bytes;
            checking.at(checked / manifest.bytes, () => countsOf(manifest.entries, manifest.bytes));
          },
          written: (bytes, entries) => {
            checking.end();
            put = entries;
            writing.at(bytes / manifest.bytes, () => countsOf(entries, bytes));
          },
          refused: (key, error) => {
            refused++;
            writing.end();
            if (refused <= NAMED_MAX) printError(`not restored: the key ${printable(key)}: ${error.message}\n`);
          },
        });
        checking.end();
        writing.end();
        const left = [
          ...(args.keepNewer ? [`${kept.toLocaleString('en')} were there already`] : []),
          ...(expired > 0 ? [`${expired.toLocaleString('en')} have expired`] : []),
        ];
        print(`${[`${written.toLocaleString('en')} entries written`, ...left].join(', ')}\n`);
        if (refused === 0) return;
        process.exitCode = EXIT.failed;
        printError(
          `farkv restore: the cluster refused ${refused.toLocaleString('en')} of ${manifest.entries.toLocaleString('en')} entries, the others are written. With --keep-newer it can be run again for those alone\n`,
        );
      } catch (error) {
        writing.end();
        if (put > 0)
          printError(
            `stopped after reading ${put.toLocaleString('en')} of ${manifest.entries.toLocaleString('en')} entries; what was written stays, and the restore can be run again\n`,
          );
        throw error;
      } finally {
        checking.end();
      }
    });
  },
};

export default restore;
