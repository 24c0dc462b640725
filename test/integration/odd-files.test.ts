/**
 * Whatever file a command or a server is told to read: a pipe that nobody writes, a device without an end, and a file of
 * which nearly nothing was ever written are refused at once, each with one line that names it.
 */
import test from 'ava';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inRepository } from '../../bench/repository.js';
import { addon } from '../../native/addon.js';
import { DataDirectory } from '../../server/data-directory.js';
import { FileDisk } from '../../server/raft-storage/file-disk.js';
import { printed } from '../support/run-here.js';

const directory = mkdtempSync(join(tmpdir(), 'farkv-odd-'));
test.after.always(() => rmSync(directory, { recursive: true }));
const at = (...names: string[]): string => join(directory, ...names);
const PIPE = at('pipe');
const SPARSE = at('sparse');
execFileSync('mkfifo', ['-m', '600', PIPE]);
writeFileSync(SPARSE, '', { mode: 0o600 });
truncateSync(SPARSE, 2 ** 40);
/** With what is said of them. Of a device that all may read, that is what is said where a secret is wanted. */
const ODD = [
  [PIPE, /is a pipe, not a regular file/],
  ['/dev/zero', /is a device, not a regular file|can be read or changed by others/],
  [SPARSE, /has 1,?099,?511,?627,?776 bytes/],
] as const;

const pem = (name: string): string => inRepository('test/fixtures/tls', name);
// git keeps no such mode, and a key that others may read is refused.
chmodSync(pem('server-key.pem'), 0o600);

/** Where a file's name goes. */
const COMMANDS: readonly (readonly string[])[] = [
  ['server', '--config', 'FILE'],
  ['server', '--token-file', 'FILE'],
  ['server', '--tls-cert', 'FILE', '--tls-key', pem('server-key.pem')],
  ['server', '--tls-cert', pem('server.pem'), '--tls-key', 'FILE'],
  ['server', '--tls-cert', pem('server.pem'), '--tls-key', pem('server-key.pem'), '--tls-ca', 'FILE'],
  ['server', '--tenants', 'a,shards=1,token-file=FILE', '--token', 't', '--peer-token', 'p'],
  ['get', 'key', '--token-file', 'FILE'],
  ['get', 'key', '--tls-ca', 'FILE'],
  ['get', 'key', '--tls-cert', 'FILE', '--tls-key', pem('server-key.pem')],
  ['get', 'key', '--tls-cert', pem('server.pem'), '--tls-key', 'FILE'],
  ['status', '--token-file', 'FILE'],
  ['status', '--tls-ca', 'FILE'],
  ['put', 'key', '--file', 'FILE'],
  ['bench', 'run', 'basic', '-P', 'FILE'],
  [
    'bench',
    'load',
    'basic',
    '-p',
    'recordcount=10',
    '-p',
    'fieldlengthdistribution=histogram',
    '-p',
    'fieldlengthhistogram=FILE',
  ],
];

test.serial('a file that an option names', async (t) => {
  for (const words of COMMANDS)
    for (const [file, reason] of ODD) {
      const args = words.map((word) => word.replace('FILE', file));
      const { text, code } = await printed(args);
      t.is(code, 2, `${args.join(' ')}: ${text}`);
      const [line = '', ...more] = text.split('\n');
      t.true(line.includes(file) && reason.test(line), text);
      t.true(
        more.every((one) => one === '' || one.startsWith('Try: ')),
        text,
      );
    }
});

test.serial('lines of JSON, which may be any number, come from a file or from standard input', async (t) => {
  for (const [file, reason] of ODD.slice(0, 2)) {
    const { text, code } = await printed(['import', file, '--timeout', '1s']);
    t.is(code, 2);
    t.regex(text, reason);
    t.regex(text, /; - reads standard input$/m);
  }
});

test.serial('a manifest, and the files of a backup', async (t) => {
  for (const [i, [file, reason]] of ODD.entries()) {
    const backup = at(`backup ${i}`);
    mkdirSync(backup);
    symlinkSync(file, join(backup, 'manifest.json'));
    for (const words of [
      ['restore', backup, '--timeout', '1s'],
      ['values', 'check', backup],
    ]) {
      const { text, code } = await printed(words);
      t.is(code, 2, text);
      t.regex(text, reason);
      t.regex(text, /manifest\.json cannot be read/);
    }
  }
});

test.serial('a certificate in a directory of secrets', async (t) => {
  for (const [i, [file, reason]] of ODD.entries()) {
    const secrets = at(`secrets ${i}`);
    mkdirSync(secrets);
    symlinkSync(file, join(secrets, 'a.crt'));
    const { text, code } = await printed(['secrets', 'list', secrets]);
    t.is(code, 2, text);
    t.regex(text, reason);
  }
});

test.serial('a file of a data directory', (t) => {
  const open = (path: string): DataDirectory =>
    DataDirectory.open({
      ...{ path, id: 's1', peers: [{ id: 's1', addresses: ['127.0.0.1:1'] }], newInstance: '0123456789abcdef' },
      tryLock: (fd) => addon.tryLock(fd),
    });
  for (const name of ['lock', 'identity.json', 'identity.json.new', 'serving.json']) {
    const path = at(`data ${name}`);
    open(path).close();
    if (name === 'identity.json.new') rmSync(join(path, 'identity.json'));
    rmSync(join(path, name), { force: true });
    execFileSync('mkfifo', ['-m', '600', join(path, name)]);
    const error = t.throws(() => open(path), { code: 'ERR_DATA_DIR' }, name);
    t.true(error.message.includes(join(path, name)), error.message);
  }
});

test.serial("a file of Raft's log", (t) => {
  const path = at('raft');
  const disk = new FileDisk(path, { tryLock: () => true, dropCleanPages: () => undefined });
  t.teardown(() => disk.close());
  execFileSync('mkfifo', ['-m', '600', join(path, 'pipe')]);
  symlinkSync(SPARSE, join(path, 'sparse'));
  t.throws(() => disk.read('pipe'), {
    code: 'ERR_DATA_DIR',
    message: `${join(path, 'pipe')} cannot be used: it is a pipe, not a regular file`,
  });
  t.throws(() => disk.open('pipe'), {
    code: 'ERR_DATA_DIR',
    message: `${join(path, 'pipe')} cannot be used: it is a pipe, not a regular file`,
  });
  t.throws(() => disk.create('pipe'), {
    code: 'ERR_DATA_DIR',
    message: `${join(path, 'pipe')} cannot be used: it is a pipe, not a regular file`,
  });
  t.throws(() => disk.lock('pipe'), {
    code: 'ERR_DATA_DIR',
    message: `${join(path, 'pipe')} cannot be used: it is a pipe, not a regular file`,
  });
  t.throws(() => disk.read('sparse'), {
    code: 'ERR_DATA_DIR',
    message: /sparse cannot be used: it has 1,099,511,627,776 bytes/,
  });
});
