/** What must not be missing from server/raft-storage, and below its directory, each with the test that notices. */
import { drop, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const storage = (title) => ({ test: 'test/raft-storage/storage.test.ts', title });
const faults = (title) => ({ test: 'test/raft-storage/faults.test.ts', title });
const CRASH = faults(
  'whatever operation of the disk a crash comes before or in, what was acknowledged comes back, and the rest whole or not at all',
);

export const mutations = rows('storage', {
  'vote-unsynced': [drop(), CRASH],
  'entries-unsynced': [drop(), CRASH],
  'page-cache-believed': [
    drop(),
    storage('a start reads what is on the disk, and not what a failed sync has left in the page cache'),
  ],
  'segment-name-unsynced': [drop(), CRASH],
  'snapshot-unsynced': [drop(), CRASH],
  'directory-unsynced': [
    drop(),
    {
      test: 'net/private-directory.test.ts',
      title: 'the name of each directory that is made is on the disk when it has been made',
    },
  ],
  'torn-record': [
    drop(),
    storage('a last write that a crash cut short is cut off, with a notice, at every length that it can have'),
  ],
  'damage-as-torn-end': [
    without('acknowledged'),
    storage('the last record is not taken for torn when it was acknowledged'),
  ],
});
