/** What must not be missing against text, files and stores that lie, each with the test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const texts = (title) => ({ test: 'test/integration/hostile-text.test.ts', title });
const files = (title) => ({ test: 'net/regular-file.test.ts', title });
const lies = (title) => ({ test: 'test/integration/redis-lies.test.ts', title });
const replies = {
  test: 'server/cli/redis/replies.test.ts',
  title: 'no more is taken than was allowed for what was asked',
};
const own = (title) => ({ test: 'net/private-directory.test.ts', title });
const names = (title) => ({ test: 'test/integration/secret-names.test.ts', title });

export const mutations = [
  // ---------------------------------------------------------------- text
  ...inFile('core/visible-text.ts', [
    [
      'hostile: lines of a command have control characters of others',
      texts('a false manifest'),
      'return text.replace(HIDDEN_IN_LINES, escapeOf);',
      'return text;',
    ],
    [
      'hostile: JSON has control characters that it may have',
      {
        test: 'core/visible-text.test.ts',
        title: 'JSON has escapes of its own, so that whoever parses it gets the same',
      },
      '.replace(HIDDEN_IN_LINES, units)',
      '',
    ],
  ]),
  ...inFile('server/cli/cluster.ts', [
    [
      'hostile: a server writes lines of its own',
      texts('a false server: every command of an operator'),
      'return allVisible(await this.#client.call(method, args, this.#timeoutMs));',
      'return await this.#client.call(method, args, this.#timeoutMs);',
    ],
  ]),
  ...inFile('server/cli/run.ts', [
    [
      'hostile: an error has lines of others',
      texts('a false manifest'),
      'visible(error instanceof Error ? error.message : String(error))',
      '(error instanceof Error ? error.message : String(error))',
    ],
  ]),
  ...inFile('server/cli/commands/ready.ts', [
    [
      'hostile: what a false server answers to farkv ready is read without a bound',
      texts('a false HTTP port: farkv ready reads the beginning of its answer'),
      "return start.toString('utf8', 0, ANSWER_MAX);",
      'return start.toString();',
    ],
  ]),
  ...inFile('server/cli/commands/clients.ts', [
    [
      'hostile: a list of clients has no end',
      texts('a false server whose list of clients does not end'),
      'if (page.next <= after)',
      'if (page.next < 0 * after)',
    ],
  ]),
  ...inFile('server/log.ts', [
    [
      'hostile: a line of the log has lines of others',
      { test: 'server/log.test.ts', title: 'what others have written is visible, and makes no line of its own' },
      '${visible(text)}\\n',
      '${text}\\n',
    ],
  ]),
  // ---------------------------------------------------------------- files
  ...inFile('net/regular-file.ts', [
    [
      'hostile: a device is read as a file',
      files('a pipe, a device and a directory are refused at once'),
      'if (kind !== undefined) throw',
      "if (kind === '') throw",
    ],
    [
      'hostile: a file of any size is read',
      files('a larger file is refused before it is read'),
      'if (size > bytesMax) throw',
      'if (size < 0 * bytesMax) throw',
    ],
    [
      'hostile: a file that grows is read without a bound',
      files('a file whose size the system does not say is read to its end'),
      'if (filled > bytesMax) throw',
      'if (filled < 0 * bytesMax) throw',
    ],
  ]),
  ...inFile('net/private-directory.ts', [
    [
      'hostile: a link of somebody else leads to where sockets and data of a server lie',
      own('a link is refused, wherever it leads'),
      'const s = lstatSync(path);',
      'const s = lstatSync(`${path}/.`);',
    ],
    [
      'hostile: others may read the temporary directory of a server',
      own('what others may read, or is no directory, is refused'),
      '(s.mode & 0o077) !== 0',
      's.mode === 0',
    ],
  ]),
  ...inFile('native/log/disk_os.c', [
    [
      'hostile: a device is read as a log of values',
      by('log_disk')('a_pipe_or_a_device_in_the_place_of_a_file_is_refused_at_once'),
      'S_ISREG(s.st_mode) ? 0 : -ENXIO',
      '0',
    ],
  ]),
  // ---------------------------------------------------------------- Redis
  ...inFile('server/cli/redis/replies.ts', [
    [
      'hostile: Redis answers with more than it was asked for',
      replies,
      'integer(rest, -1, this.#left.replies)',
      'integer(rest, -1, SKIP_MAX)',
    ],
    [
      'hostile: values of Redis that are larger than was said are held together',
      replies,
      'bytes <= bulkMax && bytes <= left;',
      'bytes <= bulkMax || bytes <= left;',
    ],
  ]),
  ...inFile('server/cli/redis/scan-end.ts', [
    [
      'hostile: a cursor of Redis goes round',
      {
        test: 'server/cli/redis/scan-end.test.ts',
        title: 'a cursor that comes again is seen, however long the round and whatever comes before it',
      },
      'if (cursor === this.#remembered)',
      "if (cursor === '')",
    ],
    [
      'hostile: Redis names keys without an end',
      {
        test: 'server/cli/redis/scan-end.test.ts',
        title: 'keys without an end are seen; a store of any size is read, and one that does not say its size',
      },
      'this.#keys > TIMES * now + KEYS_SPARE',
      'this.#keys < 0 * now',
    ],
  ]),
  ...inFile('server/cli/redis/left-out.ts', [
    [
      'hostile: Redis makes up types without an end',
      lies('types that are made up are counted together beyond some'),
      'this.reasons.size >= REASONS_MAX',
      'this.reasons.size >= Infinity * REASONS_MAX',
    ],
  ]),
  // ---------------------------------------------------------------- names
  ...inFile('server/cli/commands/secrets.ts', [
    [
      'hostile: the name of a certificate has a slash in it, and opens a tenant',
      names('a name that is no plain name makes no certificate, and no file'),
      'checkNames(role, name, tenant);',
      '',
    ],
  ]),
];
