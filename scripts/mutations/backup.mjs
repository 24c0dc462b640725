/** What must not be missing from backups, exports and imports, each with the test that notices. */
import { inFile } from './checks/in-file.mjs';

const chunks = (title) => ({ test: 'server/cli/backup/chunk-files.test.ts', title });
const backup = (title) => ({ test: 'server/cli/backup/backup.test.ts', title });
const lines = (title) => ({ test: 'server/cli/transfer/json-lines.test.ts', title });
const replies = (title) => ({ test: 'server/cli/redis/replies.test.ts', title });
const moved = chunks(
  'chunks that are left out, doubled, in another order, of another file or another backup are damage',
);
const badLine = lines('what is no entry is refused, with what is wrong');

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
    [
      'backup: bytes behind the foot do not matter',
      chunks('a file that is cut off anywhere is damage, and is said to be cut off'),
      'else if (this.#at !== size) yield',
      'else if (this.#at > size) yield',
    ],
    ['backup: a file of any shard will do', moved, 'if (!head.equals(wanted)) {', 'if (head.length < HEAD_BYTES) {'],
    [
      'backup: memory is taken for any length',
      chunks('a length that no chunk has is refused before memory is taken for it'),
      'chunk.bytes > CHUNK_BYTES_MAX || chunk.bytes > size',
      'chunk.bytes > size',
    ],
  ]),
  ...inFile('server/cli/backup/format.ts', [
    [
      'backup: a chunk does not say of which file it is',
      moved,
      'crc32c(head.subarray(0, 16), seed)',
      'crc32c(head.subarray(0, 16), seed * 0)',
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
      'backup: one backup is written over another',
      backup('a directory that is not empty is refused, and so is one that is no backup, or no whole one'),
      'if (found.length > 0)\n',
      'if (found.length < 0)\n',
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
  // ---------------------------------------------------------------- taking and restoring
  ...inFile('server/cli/transfer/shard-entries.ts', [
    [
      'backup: a value gets the expiry of another write',
      backup('the value of one write never gets the expiry of another'),
      'const same = versions.get(read.version);',
      'const same = versions.get(read.version) ?? entry;',
    ],
    [
      'backup: large values take whatever memory they need',
      backup('no more large values are held at once than there is room for'),
      'await room.enter(one.valueBytes);',
      'await room.enter(0 * one.valueBytes);',
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
      'backup: what has expired comes back',
      backup('what has expired is not restored'),
      'ttlMs !== undefined && ttlMs <= 0',
      'ttlMs !== undefined && ttlMs < -1e9',
    ],
    [
      'backup: --keep-newer replaces what is there',
      backup('present keys are replaced, or kept with --keep-newer; a restore can be run again'),
      'if (!this.#keep) await view.put',
      'if (this.#keep || !this.#keep) await view.put',
    ],
  ]),
  ...inFile('server/cli/transfer/room.ts', [
    [
      'backup: there is always room',
      {
        test: 'server/cli/transfer/room.test.ts',
        title: 'no more is under way than there is room for; what is larger than all of it goes alone, in its turn',
      },
      'this.#bytes + bytes <= this.#bytesMax)',
      'this.#bytes + bytes >= 0)',
    ],
  ]),
  ...inFile('server/control/control-plane.ts', [
    [
      'backup: a client is not told its tenant',
      {
        test: 'test/integration/backup.long.test.ts',
        title: 'a backup of several tenants goes to a cluster that has them, and to no other',
      },
      'const ofTenant = identity.tenant === undefined ? {} : { tenant: identity.tenant };',
      'const ofTenant = {};',
    ],
  ]),
  // ---------------------------------------------------------------- lines of JSON
  ...inFile('server/cli/transfer/json-lines.ts', [
    [
      'backup: a field that nobody reads is let through',
      badLine,
      'if (!FIELDS.includes(name)) throw',
      'if (name === name + name) throw',
    ],
    [
      'backup: half a character becomes another one',
      badLine,
      'if (textOf(bytes) !== text) throw',
      'if (textOf(bytes) === undefined) throw',
    ],
    [
      'backup: a line of any length is held',
      lines('a stream is cut into its lines wherever its pieces end; one that is too long is not held'),
      'long ||= held > most;',
      'long ||= held < 0 * most;',
    ],
  ]),
  ...inFile('server/cli/key-text.ts', [
    [
      'backup: a byte order mark is lost',
      lines('any entry is the same after a round trip, byte for byte'),
      'fatal: true, ignoreBOM: true',
      'fatal: true, ignoreBOM: false',
    ],
  ]),
  ...inFile('server/cli/transfer/import-lines.ts', [
    [
      'backup: an import goes on behind a bad line though it was not asked to',
      lines('a bad line ends the import, or is named and left out'),
      'if (bad > 0 && !skip) break;',
      'if (bad > 9 && !skip) break;',
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
  ...inFile('server/cli/redis/replies.ts', [
    [
      'backup: a value from Redis takes whatever memory it says',
      replies('replies of every kind are read, wherever the stream is cut; a value that is too large is skipped'),
      'const isKept = bytes <= bulkMax && bytes <= left;',
      'const isKept = bytes <= SKIP_MAX;',
    ],
    [
      'backup: lists from Redis are as deep as they like',
      replies('what is no reply is refused'),
      'if (depth === DEPTH_MAX) refuse',
      'if (depth < 0 * DEPTH_MAX) refuse',
    ],
  ]),
];
