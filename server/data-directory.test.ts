import test from 'ava';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { FarkvError } from '../core/errors.js';
import { addon } from '../native/addon.js';
import { mayMount } from '../test/support/file-system.js';
import { DataDirectory, type OpenOptions } from './data-directory.js';
import { NoRoom } from './raft-storage/disk.js';
import { socketPaths } from './runtime-directory.js';

const parent = mkdtempSync(join(tmpdir(), 'farkv-dd-'));
test.after.always(() => rmSync(parent, { recursive: true, force: true }));
let count = 0;
const fresh = (): string => join(parent, `d${++count}`);
const peers = (...ids: string[]): OpenOptions['peers'] => ids.map((id) => ({ id, addresses: ['127.0.0.1:1'] }));
const open = (path: string | undefined, more: Partial<OpenOptions> = {}): DataDirectory =>
  DataDirectory.open({
    path,
    id: 's1',
    peers: peers('s1', 's2'),
    newInstance: '0123456789abcdef',
    tryLock: (fd) => addon.tryLock(fd),
    ...more,
  });
const refused = (message: RegExp) => ({ instanceOf: FarkvError, code: 'ERR_DATA_DIR', message });

test('a new directory is private and remembers who it belongs to', (t) => {
  const path = fresh();
  const first = open(path);
  t.true(first.fresh);
  t.is(first.clusterId, '');
  t.is(statSync(path).mode & 0o777, 0o700);
  t.is(statSync(join(path, 'identity.json')).mode & 0o777, 0o600);
  first.setClusterId('ab'.repeat(16));
  first.close();
  const second = open(path, { newInstance: 'ffffffffffffffff' });
  t.like(second, { fresh: false, clusterId: 'ab'.repeat(16), instance: '0123456789abcdef', lastRun: undefined });
  t.throws(() => second.setClusterId('cd'.repeat(16)), refused(/belongs to cluster/));
  second.close();
});

test('who the servers are is remembered, and once the cluster is made --peers may say anything', (t) => {
  const path = fresh();
  const first = open(path);
  t.false(first.joined);
  t.is(first.servers, undefined);
  first.setClusterId('ab'.repeat(16));
  const servers = [{ id: 's1', raftId: 5, addresses: ['127.0.0.1:1'], instance: '0123456789abcdef' }];
  first.setServers(servers);
  first.close();
  const again = open(path, { peers: peers('s1', 's7') });
  t.deepEqual(again.servers, servers);
  again.close();
});

test('what a full disk has no room for is not remembered, and nothing is lost by that', (t) => {
  const path = fresh();
  const first = open(path);
  first.setClusterId('ab'.repeat(16));
  const servers = [{ id: 's1', raftId: 5, addresses: ['127.0.0.1:1'], instance: '0123456789abcdef' }];
  const limit = (bytes: string): void => void execFileSync('prlimit', ['--pid', `${process.pid}`, `--fsize=${bytes}:`]);
  limit('100');
  try {
    t.throws(() => first.setServers(servers), { instanceOf: NoRoom });
  } finally {
    limit('unlimited');
  }
  first.close();
  const again = open(path);
  t.like(again, { clusterId: 'ab'.repeat(16), servers: undefined });
  again.setServers(servers);
  again.close();
  const last = open(path);
  t.deepEqual(last.servers, servers);
  last.close();
});

test('a server that comes to a cluster has a number of its directory, not of its name', (t) => {
  const [a, b, c] = [
    open(fresh(), { join: true }),
    open(fresh(), { join: true, newInstance: '00000000000000aa' }),
    open(fresh()),
  ];
  t.true(a.joined);
  t.is(new Set([a.raftId, b.raftId, c.raftId]).size, 3);
  const { path, raftId } = a;
  for (const d of [a, b, c]) d.close();
  const again = open(path);
  t.true(again.joined);
  t.is(again.raftId, raftId);
  again.close();
});

test('two servers cannot have the same directory at once', (t) => {
  const path = fresh();
  const first = open(path);
  t.throws(
    () => open(path),
    refused(/in use by another farkv server: stop that one, or give this one a --data-dir of its own$/),
  );
  first.close();
  t.notThrows(() => open(path).close());
});

test('a directory of another server, of another list of servers, or of something else is refused', (t) => {
  const path = fresh();
  open(path).close();
  t.throws(() => open(path, { id: 's2' }), refused(/belongs to server s1, not s2: .*start it with --id s1$/));
  t.throws(() => open(path, { peers: peers('s1', 's3') }), refused(/must stay the same until the cluster is made/));
  const other = fresh();
  mkdirSync(other);
  writeFileSync(join(other, 'photo.jpg'), '');
  t.throws(
    () => open(other),
    refused(/not empty and not a farkv data directory \(photo.jpg\): name an empty one, or a new one$/),
  );
  t.throws(() => open(join(other, 'photo.jpg')), refused(/cannot be (made|used)/));
});

test('a first start that was cut short is begun anew', (t) => {
  const path = fresh();
  mkdirSync(path);
  writeFileSync(join(path, 'lock'), '');
  writeFileSync(join(path, 'identity.json.new'), '{"for');
  const d = open(path);
  t.true(d.fresh);
  d.close();
});

test('a damaged file is refused and named, with what makes the server anew', (t) => {
  for (const [name, content] of [
    ['identity.json', '{"format":1,'],
    ['identity.json', '{"format":1}'],
    ['serving.json', '{"leaseMs":-5}'],
  ] as const) {
    const path = fresh();
    open(path).close();
    writeFileSync(join(path, name), content);
    t.throws(
      () => open(path),
      refused(
        new RegExp(
          `${name} is damaged: put back a copy .* last ran\\. Else, .*, farkv member remove s1, .*--join .*; where there are none, restore a farkv backup into a new cluster$`,
        ),
      ),
    );
  }
});

test('what a later version wrote is refused as such', (t) => {
  const path = fresh();
  open(path).close();
  writeFileSync(join(path, 'identity.json'), '{"format":2,"id":"s1"}');
  t.throws(
    () => open(path),
    refused(/identity.json has format 2, of a later version of farkv: start that one; this one reads up to 1$/),
  );
});

test('the mark of served shards outlives the process until it is cleared', (t) => {
  const path = fresh();
  const first = open(path);
  first.markServing({ leaseMs: 2000, driftPpm: 100 });
  first.close();
  const second = open(path);
  t.deepEqual(second.lastRun, { leaseMs: 2000, driftPpm: 100 });
  second.clearServing();
  second.close();
  const third = open(path);
  t.is(third.lastRun, undefined);
  third.close();
});

test('a mark that cannot be written is an error of the directory that names the file', (t) => {
  const path = fresh();
  const directory = open(path);
  mkdirSync(join(path, 'serving.json'));
  t.throws(
    () => directory.markServing({ leaseMs: 2000, driftPpm: 100 }),
    refused(/serving\.json cannot be written: .*EISDIR/),
  );
  directory.close();
});

test('a temporary directory is removed at the end, and so is that of a server that was killed', (t) => {
  const first = open(undefined);
  const { path } = first;
  t.true(existsSync(join(path, 'identity.json')));
  t.is(statSync(dirname(path)).mode & 0o777, 0o700);
  const dead = join(dirname(path), `run-dead${process.pid}`);
  mkdirSync(dead);
  writeFileSync(join(dead, 'lock'), '');
  const second = open(undefined);
  t.false(existsSync(dead));
  t.true(existsSync(path), 'the directory of a living one stays');
  first.close();
  second.close();
  t.false(existsSync(path));
});

test('a temporary directory that another start removes before it is locked is left to it, and another made', (t) => {
  const taken: string[] = [];
  const directory = open(undefined, {
    tryLock: (fd) => {
      if (taken.length < 2) taken.push(dirname(readlinkSync(`/proc/self/fd/${fd}`)));
      else return addon.tryLock(fd);
      // The other start holds the lock of the first still, and has removed the second.
      if (taken.length === 1) return false;
      rmSync(taken[1]!, { recursive: true });
      return addon.tryLock(fd);
    },
  });
  t.is(taken.length, 2);
  t.false(taken.includes(directory.path));
  t.true(existsSync(join(directory.path, 'identity.json')));
  directory.close();
});

test('sockets lie in the data directory where their path fits, else under a name of its own', (t) => {
  t.deepEqual(socketPaths('/var/lib/farkv', 2), ['/var/lib/farkv/g0.sock', '/var/lib/farkv/g1.sock']);
  const long = `/var/lib/${'x'.repeat(100)}`;
  const paths = socketPaths(long, 2);
  t.true(paths.every((p) => p.length <= 107));
  t.deepEqual(paths, socketPaths(long, 2));
  t.notDeepEqual(paths, socketPaths(`${long}y`, 2));
});

test('a place where nothing can be made is an error that names it', (t) => {
  t.throws(
    () => open('/dev/null/farkv'),
    refused(/--data-dir \/dev\/null\/farkv cannot be made: ENOTDIR, not a directory$/),
  );
});

test('where no temporary directory can be made, the options that help are named', (t) => {
  const { TMPDIR: before } = process.env;
  t.teardown(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  process.env.TMPDIR = '/dev/null';
  t.throws(
    () => open(undefined),
    refused(/^no directory can be made in \/dev\/null: .*; name one with --data-dir, or .* TMPDIR$/),
  );
});

test('nothing but the identity is written before the cluster is known', (t) => {
  const path = fresh();
  const d = open(path);
  t.deepEqual(JSON.parse(readFileSync(join(path, 'identity.json'), 'utf8')), {
    format: 1,
    id: 's1',
    instance: '0123456789abcdef',
    voters: ['s1', 's2'],
  });
  t.false(d.hasLog);
  d.logMade();
  d.close();
  const again = open(path);
  t.true(again.hasLog);
  again.close();
});

(mayMount ? test : test.skip)('a directory that systemd has mounted read-only needs ReadWritePaths=', (t) => {
  const mounted = fresh();
  mkdirSync(mounted);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'tmpfs', mounted]);
  const { INVOCATION_ID: before } = process.env;
  t.teardown(() => {
    execFileSync('umount', [mounted]);
    if (before === undefined) delete process.env.INVOCATION_ID;
    else process.env.INVOCATION_ID = before;
  });
  process.env.INVOCATION_ID = '0123456789abcdef0123456789abcdef';
  const made =
    /d\d+\/data cannot be made: EROFS, read-only file system: .*ReadWritePaths= names the directory.*systemctl edit farkv/;
  t.throws(() => open(join(mounted, 'data')), refused(made));
  t.throws(() => open(mounted), refused(/cannot be used: EROFS: .*ReadWritePaths=/));
  delete process.env.INVOCATION_ID;
  t.throws(() => open(join(mounted, 'data')), refused(/cannot be made: EROFS, read-only file system$/));
});
