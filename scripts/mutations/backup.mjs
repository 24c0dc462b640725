/** What must not be missing from backups, exports and imports, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const chunks = (title) => ({ test: 'server/cli/backup/chunk-files.test.ts', title });
const backup = (title) => ({ test: 'server/cli/backup/backup.test.ts', title });
const moved = chunks(
  'chunks that are left out, doubled, in another order, of another file or another backup are damage',
);

export const mutations = [
  // ---------------------------------------------------------------- files
  ...inFile('server/cli/backup/chunk-reader.ts', [
    [
      'backup: entries are handed out whatever their CRC is',
      chunks('any flipped bit is damage, and nothing is handed out that was not written'),
      'crc === chunk.crc && chunk.number === chunks',
      'chunk.number === chunks',
    ],
    [
      'backup: the foot is not compared with what was read',
      moved,
      'whole && (foot.chunks !== chunks',
      'false && (foot.chunks !== chunks',
    ],
  ]),
  ...inFile('server/cli/backup/manifest.ts', [
    [
      'backup: a damaged manifest is believed',
      backup('any flipped bit of the manifest that changes what it says is noticed'),
      'if (sum !== sumOf(rest))',
      'if (sum === null)',
    ],
    [
      'backup: the directory is for everybody',
      backup('a backup has everything that is stored, in private files, and gives it back'),
      'await chmod(directory, 0o700);',
      'await chmod(directory, 0o755);',
    ],
  ]),
  ...inFile('server/cli/backup/chunk-writer.ts', [
    [
      'backup: the files are for everybody',
      backup('a backup has everything that is stored, in private files, and gives it back'),
      "open(path, 'wx', 0o600)",
      "open(path, 'wx', 0o644)",
    ],
  ]),
  ...inFile('server/cli/backup/restore.ts', [
    [
      'backup: a damaged backup is restored as far as it goes',
      backup('of a damaged backup nothing is written, and each damage is named'),
      'if (damages > 0)\n',
      'if (damages < 0)\n',
    ],
    [
      'backup: a tenant goes to the client of another',
      backup('tenants go to the clients of their tenants; without one nothing is written'),
      'client.origin().tenant === name);',
      'client.origin().tenant !== name);',
    ],
  ]),
  ...inFile('server/cli/transfer/entry-writer.ts', [
    [
      'backup: --keep-newer replaces what is there',
      backup('present keys are replaced, or kept with --keep-newer; a restore can be run again'),
      'if (!this.#keep) await view.put',
      'if (this.#keep || !this.#keep) await view.put',
    ],
  ]),
  // ---------------------------------------------------------------- Redis
  ...inFile('server/cli/redis/import-redis.ts', [
    [
      'backup: a key that Redis refuses is left out in silence',
      {
        test: 'server/cli/redis/import-redis.test.ts',
        title: 'keys that Redis refuses are named with its reason, and all others are imported',
      },
      'else leftOut.refuse(reason, key, `refused by Redis: ${error.error}`);',
      'else return;',
    ],
  ]),
];
