import test from 'ava';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FarkvError } from '../../core/errors.js';
import { DEVICELESS } from '../../test/support/deviceless.js';
import { loadSettings, type GivenOptions } from './load.js';
import { othersMay } from './secret-file.js';
import { envName, OPTION_NAMES, SERVER_OPTIONS } from './options.js';

const directory = mkdtempSync(join(tmpdir(), 'farkv-load-'));
test.after.always(() => rmSync(directory, { recursive: true, force: true }));
let files = 0;
function file(content: string): string {
  const path = join(directory, `f${++files}`);
  writeFileSync(path, content, { mode: 0o600 });
  return path;
}
const load = (given: GivenOptions = {}, env: NodeJS.ProcessEnv = {}) => loadSettings(given, { env, dashes: true });
const refused = (message: RegExp) => ({ instanceOf: FarkvError, code: 'ERR_CONFIG', message });

test('without anything given, one server on loopback with the documented defaults', (t) => {
  t.like(load(), {
    id: 's1',
    listen: [{ host: '127.0.0.1', port: 7400 }],
    peerListen: [{ host: '127.0.0.1', port: 9400 }],
    fabricListen: [{ host: '127.0.0.1', port: 8400 }],
    peers: [{ id: 's1', addresses: ['127.0.0.1:9400'] }],
    transports: DEVICELESS,
    memoryBytes: 2 ** 30,
    shards: 4,
    dataDir: undefined,
    access: { tenants: [] },
    leaseMs: 2000,
  });
});

test('every default is a value that its own option takes, and every option says its default or limits', (t) => {
  for (const name of OPTION_NAMES) {
    const spec = SERVER_OPTIONS[name];
    if ('default' in spec) t.notThrows(() => spec.parse(spec.default), name);
    t.false(spec.describe.endsWith('.'), name);
  }
});

test('flags go before the environment, the environment before the file', (t) => {
  const config = file('memory: 8mb\nleaseMs: 300\nmax-clients: 5\n');
  t.like(load({ config }), { memoryBytes: 8 << 20, leaseMs: 300, maxClients: 5 });
  t.like(load({ config }, { FARKV_MEMORY: '16mb', FARKV_LEASE_MS: '400ms' }), {
    memoryBytes: 16 << 20,
    leaseMs: 400,
    maxClients: 5,
  });
  t.like(load({ config, memory: '32mb' }, { FARKV_MEMORY: '16mb' }), { memoryBytes: 32 << 20 });
  t.like(load({}, { FARKV_CONFIG: config }), { memoryBytes: 8 << 20 });
  t.like(load({}, { FARKV_CONFIG: '' }), { shards: 4 }, 'as any variable that is empty');
});

test('numbers of the file are the texts that they are where a text is meant', (t) => {
  const zones = ['1.10', '1e3', '0x1F', '007'];
  for (const zone of zones) t.is(load({ config: file(`zone: ${zone}`) }).zone, zone);
  const digits = '0123456789012345678901';
  t.deepEqual(load({ config: file(`token: ${digits}`) }).access.writer, { text: digits });
  const tenants = `tenants: { shop: { shards: 1, token: 00123 } }\ntoken: t`;
  t.deepEqual(load({ config: file(tenants) }).tenants[0]?.writer, { text: '00123' });
  t.like(load({ config: file('memory: 67108864\nshards: 2\nlease-ms: 300') }), { memoryBytes: 64 << 20, shards: 2 });
});

test('an option that stands in the file in two spellings is refused', (t) => {
  const config = file('data-dir: /tmp/a\ndataDir: /tmp/b');
  t.throws(() => load({ config }), refused(/data-dir stands there twice, also as dataDir$/));
  const fields = 'shards: 1, token-file: /tmp/a, tokenFile: /tmp/b';
  t.throws(
    () => load({ config: file(`tenants: { shop: { ${fields} } }`) }),
    refused(/shop: tokenFile is given twice$/),
  );
});

test('the file may be JSON, and peers a map', (t) => {
  const config = file(
    '{ "id": "b", "peers": { "b": "10.0.0.2:9400", "a": ["10.0.0.1:9400", "[fd00::1]:9400"] }, "strict": true }',
  );
  t.like(load({ config }), {
    id: 'b',
    strict: true,
    shards: 8,
    peers: [
      { id: 'a', addresses: ['10.0.0.1:9400', '[fd00::1]:9400'] },
      { id: 'b', addresses: ['10.0.0.2:9400'] },
    ],
  });
});

test('servers have a port of their own: as given, as --peers says, or the control port + 2000', (t) => {
  const at = (given: GivenOptions): string[] => load(given).peerListen.map(({ host, port }) => `${host}:${port}`);
  t.deepEqual(at({ listen: '127.0.0.1:7500,[::1]:7500' }), ['127.0.0.1:9500', '::1:9500']);
  t.deepEqual(at({ listen: '127.0.0.1:0' }), ['127.0.0.1:0']);
  const peers = 'a=db1.example.net:9000,b=db2.example.net:9001';
  t.deepEqual(at({ id: 'b', listen: '127.0.0.1:7400', peers }), ['127.0.0.1:9001']);
  t.deepEqual(at({ id: 'b', listen: '127.0.0.1:7400', peers, peerListen: '127.0.0.1:1' }), ['127.0.0.1:1']);
  t.throws(() => load({ listen: '127.0.0.1:64000' }), refused(/--peer-listen is needed: 64000 \+ 2000 is not a port/));
  t.throws(
    () => load({ id: 's1', listen: '127.0.0.1:7400', peers: 's1=127.0.0.1:7400' }),
    refused(/127\.0\.0\.1:7400 is given for clients .*--listen.* and for the other servers .*--peers/),
  );
});

test('two options that listen at one address are both named, and no other program', (t) => {
  const one = '127.0.0.1:7400';
  const names = ['--listen', '--peer-listen', '--http-listen', '--fabric-listen'] as const;
  for (const [i, a] of names.entries())
    for (const b of names.slice(i + 1)) {
      const given = { listen: '127.0.0.1:7500', [a.slice(2)]: one, [b.slice(2)]: one };
      t.throws(
        () => load(given),
        refused(new RegExp(`^127\\.0\\.0\\.1:7400 is given for .*\\(${a}\\).*\\(${b}`)),
        `${a} ${b}`,
      );
    }
  const own = refused(/needs a port of its own/);
  for (const [listen, http] of [
    ['0.0.0.0:7400', one],
    [one, '0.0.0.0:7400'],
    ['[::]:7400', one],
    ['127.0.0.1:5400', one],
    ['127.0.0.1:6400', one],
  ])
    t.throws(() => load({ ...{ listen, insecure: true }, 'http-listen': http }), own, `${listen ?? ''} ${http ?? ''}`);
  for (const given of [
    { listen: '127.0.0.1:0', 'http-listen': '127.0.0.1:0', 'peer-listen': '127.0.0.1:0' },
    { listen: one, 'http-listen': '[::1]:7400' },
    { listen: '127.0.0.1:6400', 'http-listen': one, transport: 'shm' },
  ])
    t.notThrows(() => load(given), JSON.stringify(given));
});

test('an unknown option or key is named with the one that was probably meant', (t) => {
  t.throws(() => load({ memroy: '1gb' }), refused(/unknown option --memroy; did you mean --memory\?/));
  t.throws(() => load({ config: file('lease: 5\nleasems: 300') }), refused(/unknown key/));
  t.throws(() => load({ config: file('sharsd: 3') }), refused(/unknown key sharsd; did you mean shards\?/));
  t.throws(
    () => loadSettings({ dataDri: 'x' }, { env: {}, dashes: false }),
    refused(/unknown option dataDri; did you mean dataDir\?/),
  );
});

test('a file that is missing, malformed or no map is refused', (t) => {
  t.throws(() => load({ config: join(directory, 'nowhere') }), refused(/cannot be read/));
  t.throws(() => load({ config: file('a: [') }), refused(/cannot be read/));
  t.throws(() => load({ config: file('- 1') }), refused(/not a map/));
  t.notThrows(() => load({ config: file('') }));
});

test('a wrong value names its place and the limits', (t) => {
  t.throws(() => load({ shards: '0' }), refused(/--shards: must be from 1 to 4096, not 0/));
  t.throws(() => load({}, { [envName('lease-ms')]: '1' }), refused(/FARKV_LEASE_MS: must be from 100 to 60000 ms/));
  t.throws(() => load({ config: file('memory: lots') }), refused(/memory in .*: "lots" is not a size/));
  t.throws(() => load({ strict: 'maybe' }), refused(/--strict/));
  t.throws(() => load({ listen: 'nonsense' }), refused(/--listen: "nonsense" is not an address/));
  t.throws(() => load({ id: 'a/b' }), refused(/--id/));
  t.throws(() => load({ transport: 'smh' }), refused(/--transport: "smh" is none of/));
  t.throws(() => load({ transport: 'auto,tcp' }), refused(/auto cannot stand beside/));
});

test('hosts to advertise have no ports, and brackets or none', (t) => {
  t.deepEqual(load({ advertise: 'db1.example.net,[fd00::1],10.0.0.1' }).advertise, [
    'db1.example.net',
    'fd00::1',
    '10.0.0.1',
  ]);
  for (const advertise of ['db1:7400', '1:7400', 'a b', 'http://x', '999.1.2.3', ':::', 'höst'])
    t.throws(() => load({ advertise }), refused(/--advertise/), advertise);
});

test('data ports follow from the control port, as far as there are ports', (t) => {
  t.deepEqual(load({ listen: '127.0.0.1:7410,[::1]:7420' }).fabricListen, [
    { host: '127.0.0.1', port: 8410 },
    { host: '::1', port: 8420 },
  ]);
  t.deepEqual(load({ listen: '127.0.0.1:0' }).fabricListen, [{ host: '127.0.0.1', port: 0 }]);
  const high = { listen: '127.0.0.1:64400', 'peer-listen': '127.0.0.1:9400' };
  t.throws(() => load(high), refused(/--fabric-listen is needed: .* 64400 \+ 1000/));
  t.notThrows(() => load({ ...high, 'fabric-listen': '127.0.0.1:8400' }));
});

test('peers must be complete', (t) => {
  const peers = 's1=127.0.0.1:1,s2=127.0.0.1:2';
  t.throws(() => load({ peers }), refused(/--id is needed with several --peers/));
  t.throws(() => load({ peers, id: 's3' }), refused(/s3 is not in it/));
  t.throws(() => load({ peers: 's1', id: 's1' }), refused(/not id=host:port/));
  t.throws(() => load({ peers: 's1=127.0.0.1:0', id: 's1' }), refused(/must know the port/));
  t.throws(
    () => load({ peers: Array.from({ length: 10 }, (_, i) => `s${i}=127.0.0.1:${i + 1}`).join(','), id: 's1' }),
    refused(/at most 9/),
  );
  t.is(load({ peers: 'only=127.0.0.1:1' }).id, 'only');
});

test('beyond loopback a server needs a token or --insecure; TLS alone lets anybody in', (t) => {
  const [cert, key] = [file('cert'), file('key')];
  t.throws(() => load({ listen: '0.0.0.0:7400' }), refused(/can be reached from other machines/));
  t.throws(() => load({ listen: '127.0.0.1:7400', 'fabric-listen': '10.0.0.1:0' }), refused(/can be reached/));
  t.throws(() => load({ 'http-listen': '0.0.0.0:7480' }), refused(/0\.0\.0\.0:7480 can be reached/));
  t.throws(() => load({ listen: '[::]:7400' }), refused(/can be reached/));
  t.throws(() => load({ listen: '0.0.0.0:7400', 'tls-cert': cert, 'tls-key': key }), refused(/lets anybody in/));
  t.throws(
    () => load({ listen: '0.0.0.0:7400', 'operator-token': 'x' }),
    refused(/none of the tokens is one of clients/),
  );
  t.notThrows(() => load({ listen: '127.0.0.1:7400', 'fabric-listen': '10.0.0.1:0', transport: 'shm' }));
  t.notThrows(() => load({ listen: '0.0.0.0:7400', insecure: true }));
  t.notThrows(() => load({ listen: '0.0.0.0:7400' }, { FARKV_TOKEN: 'x' }));
});

test('a witness keeps no values, needs others to vote with, and offers no data', (t) => {
  const peers = 's1=127.0.0.1:9400,s2=127.0.0.1:9401,s3=127.0.0.1:9402';
  t.like(load({ peers, id: 's3', witness: true }), { memoryBytes: 0, transports: [], level: 'replicated' });
  t.throws(() => load({ witness: true }), refused(/a witness needs other servers that keep values/));
  t.throws(
    () => load({ peers, id: 's3', witness: true, memory: '1gb' }),
    refused(/--memory and --witness are both given: a witness keeps no values/),
  );
  // What it does not listen on cannot be reached.
  t.notThrows(() => load({ peers, id: 's3', witness: true, 'fabric-listen': '10.0.0.1:0' }));
});

test('what --sync may be: always, or a time, of a server that keeps values', (t) => {
  t.is(load({}).syncMs, 0);
  t.is(load({ sync: 'always' }).syncMs, 0);
  t.is(load({ sync: '50ms' }).syncMs, 50);
  t.is(load({ sync: '10s' }).syncMs, 10_000);
  for (const sync of ['5ms', '11s', 'never', '0']) t.throws(() => load({ sync }), refused(/--sync/));
  const peers = 's1=127.0.0.1:9400,s2=127.0.0.1:9401';
  t.is(load({ sync: '50ms', peers, id: 's1' }).syncMs, 50);
  t.is(load({ sync: '50ms', join: '127.0.0.1:9400', id: 's2' }).syncMs, 50);
  const three = `${peers},s3=127.0.0.1:9402`;
  t.throws(() => load({ sync: '50ms', peers: three, id: 's3', witness: true }), refused(/--sync: a witness keeps no/));
});

test('each role has tokens of its own, from a text or a file, and one source must be meant', (t) => {
  const tokens = file('secret\nnext\n');
  t.like(
    load({ 'token-file': tokens, 'operator-token': 'o', 'reader-token': 'r', 'monitor-token': 'm', 'peer-token': 'p' }),
    {
      access: {
        writer: { file: tokens },
        reader: { text: 'r' },
        operator: { text: 'o' },
        monitor: { text: 'm' },
        peer: { text: 'p' },
      },
    },
  );
  t.deepEqual(load().access, { tenants: [] });
  t.throws(() => load({ 'token-file': file('\n') }), refused(/is empty/));
  t.throws(() => load({ 'token-file': join(directory, 'nowhere') }), refused(/ENOENT/));
  t.throws(() => load({ 'token-file': file('a') }, { FARKV_TOKEN: 'b' }), refused(/both given/));
  t.throws(
    () => load({ token: 'a', 'operator-token': 'a' }),
    refused(/--operator-token-file has the same token as --token-file/),
  );
  t.throws(() => load({ 'token-file': file('a\nb'), 'peer-token-file': file('c\nb') }), refused(/the same token/));
});

test('a directory of secrets has a file for each role; what is given otherwise goes first', (t) => {
  const secrets = mkdtempSync(join(directory, 'secrets-'));
  t.throws(() => load({ secrets }), refused(/neither a token nor a certificate for s1: farkv secrets init/));
  const nowhere = join(secrets, 'nowhere');
  t.throws(() => load({ secrets: nowhere }), refused(/nowhere cannot be used: ENOENT, no such file or directory/));
  t.throws(() => load({ secrets: import.meta.filename }), refused(/load\.test\.js is no directory/));
  for (const name of ['token', 'peer-token']) writeFileSync(join(secrets, name), name, { mode: 0o600 });
  const [token, peer] = [join(secrets, 'token'), join(secrets, 'peer-token')];
  t.deepEqual(load({ secrets }).access, { writer: { file: token }, peer: { file: peer }, tenants: [] });
  t.like(load({ secrets, token: 'a' }).access, { writer: { text: 'a' }, peer: { file: peer } });
  chmodSync(peer, 0o644);
  t.throws(() => load({ secrets }), refused(/peer-token can be read or changed by others/));
});

test('a group may read a file of root, and nobody else of any other', (t) => {
  const [root, user] = [0, 1000];
  t.false(othersMay({ mode: 0o100600, uid: user }, user));
  t.true(othersMay({ mode: 0o100640, uid: user }, user));
  t.false(othersMay({ mode: 0o100440, uid: root }, user));
  t.true(othersMay({ mode: 0o100440, uid: root }, root), 'root needs no group');
  for (const mode of [0o444, 0o660, 0o450, 0o604]) t.true(othersMay({ mode, uid: root }, user), mode.toString(8));
});

test('a file of secrets that others may read is refused', (t) => {
  for (const mode of [0o666, 0o644, 0o640, 0o620]) {
    const path = file('secret');
    chmodSync(path, mode);
    const [token, tlsKey] = [{ 'token-file': path }, { 'tls-cert': path, 'tls-key': path }];
    for (const given of [token, tlsKey])
      t.throws(() => load(given), refused(/can be read or changed by others .*chmod 600/));
  }
});

test('several servers that use tokens have one for themselves', (t) => {
  const peers = { peers: 's1=127.0.0.1:1,s2=127.0.0.1:2', id: 's1' };
  t.throws(() => load({ ...peers, token: 'a' }), refused(/--peer-token-file is needed/));
  t.throws(() => load({ ...peers, 'operator-token': 'a' }), refused(/--peer-token-file is needed/));
  t.throws(() => load({ join: '127.0.0.1:1', id: 's2', token: 'a' }), refused(/--peer-token-file is needed/));
  t.notThrows(() => load({ ...peers, token: 'a', 'peer-token': 'b' }));
  t.notThrows(() => load(peers));
});

test('TLS needs certificate and key, and files that can be read', (t) => {
  const pem = file('pem');
  t.like(load({ 'tls-cert': pem, 'tls-key': pem, 'tls-ca': pem }), { tls: { cert: pem, key: pem, ca: pem } });
  t.throws(() => load({ 'tls-cert': pem }), refused(/--tls-key is needed/));
  t.throws(() => load({ 'tls-key': pem }), refused(/--tls-cert is needed/));
  t.throws(() => load({ 'tls-ca': pem }), refused(/no meaning/));
  t.throws(() => load({ 'tls-cert': pem, 'tls-key': join(directory, 'nowhere') }), refused(/--tls-key: .*ENOENT/));
});

const TRUSTED = { token: 'of all', 'peer-token': 'of servers' };

test('tenants come from flags, the environment, a file or a program', (t) => {
  const [secret, readers] = [file('of b\n'), file('readers of b\n')];
  const expected = [
    { name: 'a', shards: 3, writer: { text: 'of a' } },
    { name: 'b', shards: 2, writer: { file: secret }, reader: { file: readers }, maxClients: 7 },
  ];
  const lines = [
    `b,shards=2,token-file=${secret},reader-token-file=${readers},max-clients=7`,
    'a, shards=3, token=of a',
  ];
  t.deepEqual(load({ ...TRUSTED, tenants: lines }).tenants, expected);
  t.deepEqual(load(TRUSTED, { FARKV_TENANTS: lines.join(';') }).tenants, expected);
  const map = {
    b: { shards: 2, tokenFile: secret, readerTokenFile: readers, 'max-clients': 7 },
    a: { shards: '3', token: 'of a' },
  };
  t.deepEqual(load({ ...TRUSTED, config: file(JSON.stringify({ tenants: map })) }).tenants, expected);
  t.deepEqual(loadSettings({ token: 'of all', tenants: map }, { env: {}, dashes: false }).tenants, expected);
  t.deepEqual(load().tenants, []);
});

test('tenants that cannot be are refused, by name and without a word of a token', (t) => {
  const wrong: readonly (readonly [given: unknown, message: RegExp])[] = [
    ['a,token=x', /a needs shards=N/],
    ['a,shards=2', /a needs either token-file or token/],
    ['a,shards=2,token=x,token-file=y', /either/],
    ['a,shards=0,token=x', /a: shards must be from 1 to 4095/],
    ['a,shards=2,token=x,max-clients=0', /a: max-clients must be from 1 to 65536/],
    ['a,shards=2,token=x,shadrs=1', /unknown field shadrs; did you mean shards\?/],
    ['a b,shards=1,token=x', /"a b" is not a name/],
    ['a,2', /expected name,shards=N/],
    ['default,shards=1,token=x', /choose another name/],
    ['a,shards=1,token=x;a,shards=1,token=y', /a is given twice/],
    [Array.from({ length: 16 }, (_, i) => `d${i},shards=1,token=x${i}`), /at most 15/],
    [{ a: 3 }, /not a map of shards/],
    ['a,shards=4095,token=x', /4099 shards with those of --shards; at most 4096/],
    ['a,shards=1,token-file=/nowhere', /ENOENT/],
    ['a,shards=1,token=secret-1;b,shards=1,token=secret-1', /b has the same token as .*a/],
    ['a,shards=1,token=of all', /a has the same token as --token-file/],
    ['a,shards=1,token=of servers', /same token as --peer-token-file/],
  ];
  for (const [given, message] of wrong) {
    const error = t.throws(() => load({ ...TRUSTED, tenants: given }), refused(message));
    t.false(/secret-1|of all|of servers/.test(error.message));
  }
  t.throws(() => load({ tenants: 'a,shards=1,token=x' }), refused(/--tenants: needs --token-file too/));
});

test('a variable that is nearly one of ours is refused, and one of somebody else is let be', (t) => {
  t.throws(() => load({}, { FARKV_MEMROY: '8gb' }), refused(/FARKV_MEMROY; did you mean FARKV_MEMORY\?/));
  t.throws(() => load({}, { FARKV_CONECT: 'a' }), refused(/did you mean FARKV_CONNECT\?/));
  const others = ['FARKV_SERVICE_HOST', 'FARKV_PORT', 'FARKV_PORT_7400_TCP_ADDR', 'FARKV_DEMO_RECORDS', 'FARKV_SEED'];
  t.notThrows(() => load({}, Object.fromEntries(others.map((name) => [name, 'x']))));
});

test('a named RDMA device without one that can be used is no device that is not used', (t) => {
  t.throws(
    () => load({ 'rdma-device': 'mlx5_0' }),
    refused(/--rdma-device: this machine has no RDMA device .* farkv doctor/),
  );
  t.throws(
    () => load({ 'rdma-traffic-class': '256' }),
    refused(/--rdma-traffic-class: must be from 0 to 255, not 256/),
  );
  t.notThrows(() => loadSettings({ 'rdma-device': 'mlx5_0' }, { env: {}, dashes: true, hasVerbs: true }));
});
