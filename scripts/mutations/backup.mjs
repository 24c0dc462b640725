/** What must not be missing from backups, exports and imports, each with the test that notices. */
import { drop, instead, never, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const backup = (title) => ({ test: 'tools/backup/backup.test.ts', title });
const chunks = (title) => ({ test: 'tools/backup/chunk-files.test.ts', title });

export const mutations = rows('backup', {
  'chunk-crc': [without('crc'), chunks('any flipped bit is damage, and nothing is handed out that was not written')],
  manifest: [never(), backup('any flipped bit of the manifest that changes what it says is noticed')],
  'directory-mode': [
    instead('0o700', '0o755'),
    backup('a backup has everything that is stored, in private files, and gives it back'),
  ],
  'file-mode': [
    instead('0o600', '0o644'),
    backup('a backup has everything that is stored, in private files, and gives it back'),
  ],
  'damaged-restored': [never(), backup('of a damaged backup nothing is written, and each damage is named')],
  'tenant-of-another': [
    instead('tenant === name', 'tenant !== name'),
    backup('tenants go to the clients of their tenants; without one nothing is written'),
  ],
  'refused-by-redis': [
    drop('leftOut.refuse'),
    {
      test: 'tools/redis/import-redis.test.ts',
      title: 'keys that Redis refuses are named with its reason, and all others are imported',
    },
  ],
});
