import test from 'ava';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inRepository } from '../../bench/repository.js';
import { TRANSPORT_CHOICES } from '../../core/providers.js';
import { OPTION_NAMES } from '../../server/config/options.js';
import { farkv } from '../support/cluster.js';

const directory = mkdtempSync(join(tmpdir(), 'farkv-cli-'));
test.after.always(() => rmSync(directory, { recursive: true, force: true }));

test.serial('help is complete: every command, every option of a server with its limits, exit codes', async (t) => {
  const all = await farkv(['--help']);
  t.is(all.code, 0);
  for (const command of ['server', 'status', 'get', 'put', 'delete', 'scan', 'bench', 'doctor'])
    t.true(all.stdout.includes(`farkv ${command}`), command);
  t.regex(all.stdout, /Exit codes: 0 /);
  const server = await farkv(['server', '--help']);
  t.is(server.code, 0);
  for (const name of OPTION_NAMES) t.true(server.stdout.includes(`--${name} `), name);
  t.regex(server.stdout, /Examples:/);
  t.regex(server.stdout, /1 to 4096/);
  for (const command of ['status', 'get', 'put', 'delete', 'scan', 'bench']) {
    const { stdout } = await farkv([command, '--help']);
    t.regex(stdout, /^Examples:/m, command);
    t.regex(
      stdout.replace(/\s+/g, ' '),
      /Exit codes: 0 .*, 1 .*, 2 wrong usage or configuration,.* 69 .*, 77 not authorized/,
      command,
    );
  }
});

test.serial("the version is the package's", async (t) => {
  const { stdout, code } = await farkv(['--version']);
  t.is(code, 0);
  t.regex(stdout, /^\d+\.\d+\.\d+\n$/);
});

test.serial('wrong usage ends with 2, one line that helps, and nothing on standard output', async (t) => {
  const wrong: (readonly [string[], RegExp])[] = [
    [[], /A command is needed/],
    [['sevrer'], /unknown command sevrer; did you mean server\?/],
    [['frobnicate'], /unknown command frobnicate$/m],
    [['gte', 'k'], /unknown command gte$/m],
    [['shard'], /an argument is missing; usage: farkv shard move\|rebalance/],
    [['shard', 'mov', '0', 's1'], /unknown action mov; did you mean move\?; usage: farkv shard move\|rebalance/],
    [
      ['shard', 'move', '0'],
      /an argument is missing; usage: farkv shard move <shard> <server>\nTry: farkv shard move --help/,
    ],
    [['member', 'frobnicate'], /unknown action frobnicate; usage: farkv member list\|add\|remove/],
    [['put', 'a', 'b', '--ttl', '0'], /--ttl: must be at least 1ms/],
    [['put', 'a', 'b', '--ttl', '5'], /--ttl 5: the unit is missing: 5s, or 5ms/],
    [['put', 'a', 'b', '--flags', '-1'], /--flags: must be from 0 to 4294967295, not -1/],
    [['put', 'a', 'b', '--flags', ''], /--flags: is empty/],
    [['put', 'a', 'b', '--flags', '1e2'], /--flags: must be from 0 to 4294967295, not 1e2/],
    [['put', 'a', 'b', '-n', ''], /--namespace: is empty/],
    [['delete', 'a', '--namespace='], /--namespace: is empty/],
    [['export', '-', '-n', ''], /--namespace: is empty/],
    [['export', ''], /the name of the file is empty/],
    [['scan', '--limit', ''], /--limit: is empty/],
    [['restore', 'x', '--keep-newer=yes'], /--keep-newer: "yes" is neither true nor false/],
    [['get', 'k', '--tls=yes'], /--tls: "yes" is neither true nor false/],
    [['shard', 'rebalance', '--dry-run=yes'], /--dry-run: "yes" is neither true nor false/],
    [['server', '--listen', '127.0.0.1:0', '--', '--data-dir', 'D'], /too many: --data-dir, D; usage: farkv server/],
    [['get', 'a', '--', '-b'], /an argument too many: -b; usage: farkv get <key>/],
    [['bench', 'run', 'frob'], /<db>: "frob" is none of farkv, redis/],
    [['doctor', '--memory', 'lots'], /--memory: "lots" is not a size/],
    [['server', '--memory', '12'], /--memory: must be from 4.0 MiB to 64.0 TiB, not 12/],
    [['server', '--memroy', '1gb'], /unknown option --memroy; did you mean --memory\?/],
    [['server', '--rdma-gid-index', '3'], /unknown option --rdma-gid-index.*the IP address says which port, GID/],
    [['server', '--memory', 'lots'], /--memory: "lots" is not a size/],
    [['server', '--memory', '1gb', '--memory', '2gb'], /--memory is given 2 times: give it once/],
    [['server', '--level', 'disk'], /--level: "disk" is none of cache, replicated, durable/],
    [['get', 'a', '-n', '1', '-n', '2'], /--namespace is given 2 times: give it once/],
    [['server', '--shards', '0'], /--shards: must be from 1 to 4096/],
    [['server', '--listen', '0.0.0.0:0'], /can be reached from other machines.*--secrets.*--insecure/],
    [['server', '--fabric-listen', '0.0.0.0:0'], /can be reached from other machines/],
    [['server', '--tls-cert', inRepository('test/fixtures/tls/server.pem')], /--tls-key is needed/],
    [['server', '--config', '/nonexistent'], /--config: \/nonexistent cannot be read/],
    [['server', '--peers', 'a=127.0.0.1:1,b=127.0.0.1:2'], /--id is needed/],
    [['server', 'extra'], /an argument too many: extra; usage: farkv server/],
    [['get'], /an argument is missing; usage: farkv get <key>/],
    [['get', 'a', 'b'], /an argument too many: b; usage: farkv get <key>/],
    [['get', 'a', '--timeout', '0'], /--timeout: must be from 1ms to 1h/],
    [['get', 'a', '--tls-ca', '/nonexistent'], /--tls-ca: \/nonexistent cannot be read: ENOENT/],
    [['get', 'a', '--token-file', '/nonexistent'], /--token-file: \/nonexistent cannot be read: ENOENT/],
    [['get', 'a', '--transport', 'smh'], new RegExp(`--transport: "smh" is none of ${TRANSPORT_CHOICES.join(', ')}`)],
    [['scan', '--limit', 'x'], /--limit: must be from 0 to 9007199254740991, not x/],
    [['--versoin'], /unknown option --versoin; did you mean --version\?/],
    [['status', '--conect', 'x'], /unknown option --conect; did you mean --connect\?/],
    [['status', '--connect', 'a b'], /is not an address/],
    [['status', '--timeout', 'soon'], /--timeout/],
  ];
  for (const [args, message] of wrong) {
    const { code, stdout, stderr } = await farkv(args);
    t.is(code, 2, `${args.join(' ')}: ${stderr}`);
    t.is(stdout, '', args.join(' '));
    t.regex(stderr, message);
    t.regex(stderr, /^Try: farkv .*--help$/m);
  }
});

test.serial('an unknown key of the configuration file is named with the nearest one', async (t) => {
  const config = join(directory, 'farkv.yaml');
  writeFileSync(config, 'listen: 127.0.0.1:0\nlese-ms: 500\n');
  const { code, stderr } = await farkv(['server', '--config', config]);
  t.is(code, 2);
  t.regex(stderr, /unknown key lese-ms; did you mean lease-ms\?/);
});

test.serial('no server answering is 69, and says where it was looked for', async (t) => {
  const { code, stderr } = await farkv(['status', '--connect', '127.0.0.1:1,[::1]:1']);
  t.is(code, 69);
  t.regex(stderr, /\[::1\]:1: .*ECONNREFUSED|EADDRNOTAVAIL/);
  t.regex(stderr, /^is a server running there\? farkv server starts one; --connect or FARKV_CONNECT says where/m);
  const get = await farkv(['get', 'a', '--connect', '127.0.0.1:1', '--timeout', '100ms']);
  t.is(get.code, 69);
  t.regex(get.stderr, /no server listens there \(127.0.0.1:1\): .*ECONNREFUSED.*\nis a server running there\?/);
});

test.serial('the hint of a server that is silent does not name the command that has failed', async (t) => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => silent.close());
  const at = ['--connect', `127.0.0.1:${(silent.address() as AddressInfo).port}`, '--timeout', '200ms'];
  const hintOf = async (...command: string[]): Promise<string> => {
    const { code, stderr } = await farkv([...command, ...at]);
    t.is(code, 69);
    return stderr.split('\n')[1] ?? '';
  };
  t.regex(await hintOf('status'), /give it longer with --timeout, or ask other servers too: --connect takes several$/);
  t.regex(await hintOf('member', 'list'), /give it longer with --timeout, and see farkv status$/);
});

test.serial('another store that does not answer is named, and nothing is said about farkv servers', async (t) => {
  const { code, stderr } = await farkv([
    'bench',
    'run',
    'redis',
    '-P',
    'workloadb',
    '-p',
    'recordcount=1',
    '-p',
    'operationcount=1',
    '-p',
    'redis.port=1',
  ]);
  t.is(code, 69);
  t.regex(stderr, /redis at 127.0.0.1:1 cannot be reached/);
  t.notRegex(stderr, /is a server running there/);
});

test.serial('a data directory that cannot be made ends the start', async (t) => {
  // mkdir below /proc fails as if the parent were missing.
  for (const dir of ['/proc/farkv', '/proc/farkv/deeper', '/dev/null/x']) {
    const { code, stderr } = await farkv(['server', '--listen', '127.0.0.1:0', '--data-dir', dir]);
    t.is(code, 1, dir);
    t.regex(stderr, /farkv server: .* cannot be made: E/, dir);
  }
});
