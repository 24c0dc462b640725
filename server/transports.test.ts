import { createServer, type AddressInfo } from 'node:net';
import test from 'ava';
import { FarkvError } from '../core/errors.js';
import type { RdmaAddress } from '../native/addon.js';
import { loadSettings } from './config/load.js';
import type { ServerSettings } from './config/settings.js';
import { advertised } from './control/advertise.js';
import { listenAt } from './control/listener.js';
import { Log } from './log.js';
import {
  attempts,
  availableTransports,
  fabricAddresses,
  listenList,
  rdmaDevices,
  rdmaListen,
  tryListening,
} from './transports.js';

const settings = (given: Record<string, string | boolean>, hasVerbs = false) =>
  loadSettings(given, { env: {}, dashes: true, hasVerbs });
const lines: string[] = [];
const log = new Log('warn', (_level, text) => lines.push(text));
const listens = (s: ServerSettings, found: readonly RdmaAddress[]) => rdmaListen(s, rdmaDevices(s, found, log), found);

test('auto offers what is there and says what is not; a named or strict transport must be there', (t) => {
  t.deepEqual(availableTransports(settings({}), ['shm', 'tcp'], log), ['shm', 'tcp']);
  t.deepEqual(availableTransports(settings({}, true), ['verbs', 'shm', 'tcp'], log), ['shm', 'verbs', 'tcp']);
  t.deepEqual(availableTransports(settings({}, true), ['shm', 'tcp'], log), ['shm', 'tcp']);
  t.regex(lines.at(-1) ?? '', /verbs is not available/);
  const refused = { instanceOf: FarkvError, code: 'ERR_UNSUPPORTED' };
  t.throws(() => availableTransports(settings({ transport: 'verbs,tcp' }), ['shm', 'tcp'], log), refused);
  t.throws(() => availableTransports(settings({ strict: true }, true), ['shm', 'tcp'], log), refused);
});

test('each data-plane thread listens at its own address of every transport', (t) => {
  const s = settings({ 'fabric-listen': '127.0.0.1:7500,[::1]:0', insecure: true });
  const found = [{ device: 'mlx5_0', networkInterface: 'eth0', address: '10.1.1.1', iwarp: false }];
  t.deepEqual(
    listenList(s, ['verbs'], 2, [], ['mlx5_0'], found).map((l) => l.address),
    ['10.1.1.1:7600', '10.1.1.1:7601'],
  );
  t.deepEqual(listenList(s, ['shm', 'tcp'], 2, ['/run/a', '/run/b']), [
    { provider: 'shm', address: 'unix:/run/a', worker: 0 },
    { provider: 'tcp', address: '127.0.0.1:7500', worker: 0 },
    { provider: 'tcp', address: '[::1]:0', worker: 0 },
    { provider: 'shm', address: 'unix:/run/b', worker: 1 },
    { provider: 'tcp', address: '127.0.0.1:7501', worker: 1 },
    { provider: 'tcp', address: '[::1]:0', worker: 1 },
  ]);
});

test('shm addresses carry the host, others the hosts that are advertised', (t) => {
  const bound = [
    { provider: 'shm', address: 'unix:/run/a', worker: 0 },
    { provider: 'tcp', address: '0.0.0.0:7500', worker: 0 },
  ] as const;
  t.deepEqual(fabricAddresses(bound, settings({ advertise: 'db1,fd00::1', insecure: true }), 'this host'), [
    { provider: 'shm', address: 'unix:/run/a', worker: 0, host: 'this host' },
    { provider: 'tcp', address: 'db1:7500', worker: 0 },
    { provider: 'tcp', address: '[fd00::1]:7500', worker: 0 },
  ]);
});

test('tcp is encrypted when the control port is, but for --insecure-data, and its address says how it talks', (t) => {
  const bound = (address: string) => [{ provider: 'tcp', address, worker: 0 }] as const;
  const plain = settings({ 'fabric-listen': '127.0.0.1:7500' });
  const tls = { ...plain, tls: { cert: 'c', key: 'k' } };
  const off = { ...tls, insecureData: true };
  const found = [{ device: 'rxe0', networkInterface: 'eth0', address: '127.0.0.1', iwarp: false }];
  const said = (s: typeof plain) =>
    listenList({ ...s, insecure: true }, ['tcp', 'verbs'], 1, [], ['rxe0'], found).map((l) => l.address);
  t.deepEqual(said(plain), ['127.0.0.1:7500', '127.0.0.1:7600']);
  t.deepEqual(said(tls), ['tls:127.0.0.1:7500', '127.0.0.1:7600']);
  t.deepEqual(said(off), ['127.0.0.1:7500', '127.0.0.1:7600']);
  const told = (address: string, s: typeof plain) => fabricAddresses(bound(address), s, 'host').map((a) => a.address);
  t.deepEqual(told('127.0.0.1:7500', plain), ['127.0.0.1:7500']);
  t.deepEqual(told('tls:127.0.0.1:7500', tls), ['tls:127.0.0.1:7500']);
  t.deepEqual(told('tls:127.0.0.1:7500', { ...tls, advertise: ['10.1.1.1'] }), ['tls:10.1.1.1:7500']);
  t.deepEqual(told('127.0.0.1:7500', off), ['clear:127.0.0.1:7500']);
});

test('a wildcard becomes addresses that can be dialed, anything else stays', (t) => {
  t.deepEqual(
    advertised(
      [
        { host: '127.0.0.1', port: 1 },
        { host: '::1', port: 2 },
      ],
      [],
    ),
    ['127.0.0.1:1', '[::1]:2'],
  );
  const any = advertised(
    [
      { host: '0.0.0.0', port: 7 },
      { host: '::', port: 8 },
    ],
    [],
  );
  t.true(any.length >= 2);
  t.false(any.some((a) => a.startsWith('0.0.0.0') || a.startsWith('[::]')));
});

test('verbs listens where RDMA devices are: the named ones, else those of --fabric-listen, else the first', (t) => {
  const found = [
    { device: 'mlx5_0', networkInterface: 'ib0', address: '10.9.0.1', iwarp: false },
    { device: 'mlx5_0', networkInterface: 'ib0', address: 'fd00:9::1', iwarp: false },
    { device: 'siw0', networkInterface: 'eth1', address: '10.8.0.1', iwarp: true },
  ];
  const at = (given: Record<string, string | boolean>) =>
    listens(settings({ token: 'secret', transport: 'verbs', ...given }), found);
  t.deepEqual(at({}), [{ host: '10.9.0.1', port: 8400, device: 0 }]);
  t.deepEqual(at({ 'fabric-listen': '10.8.0.1:7500,10.1.1.1:7500' }), [{ host: '10.8.0.1', port: 7500, device: 0 }]);
  t.deepEqual(at({ 'fabric-listen': '0.0.0.0:7500', 'rdma-device': 'siw0' }), [
    { host: '10.8.0.1', port: 7500, device: 0 },
  ]);
  t.deepEqual(at({ 'fabric-listen': '[fd00:9::1]:0' }), [{ host: 'fd00:9::1', port: 0, device: 0 }]);
  t.deepEqual(at({ 'fabric-listen': '10.8.0.1:7500,[fd00:9::1]:7501' }), [
    { host: '10.8.0.1', port: 7500, device: 0 },
    { host: 'fd00:9::1', port: 7501, device: 1 },
  ]);
  t.deepEqual(at({ 'fabric-listen': '[fd00:9::1]:7501,10.9.0.1:7500', 'rdma-device': 'siw0,mlx5_0' }), [
    { host: '10.8.0.1', port: 7501, device: 0 },
    { host: '10.9.0.1', port: 7500, device: 1 },
    { host: 'fd00:9::1', port: 7501, device: 1 },
  ]);
  t.throws(() => at({ 'rdma-device': 'mlx5_7' }), { code: 'ERR_CONFIG', message: /mlx5_7.*mlx5_0 \(10\.9\.0\.1\)/ });
  t.throws(() => listens(settings({ token: 'secret', transport: 'verbs' }), []), {
    code: 'ERR_CONFIG',
    message: /no address/,
  });
  t.throws(() => listens(settings({ transport: 'verbs' }), found), {
    code: 'ERR_CONFIG',
    message: /without a token: give/,
  });
});

test('of several RDMA devices a missing one is left out, unless --strict; more than a server may have are refused', (t) => {
  const found = [0, 1, 2, 3, 4].map((i) => {
    return { device: `mlx5_${i}`, networkInterface: `eth${i}`, address: `10.9.${i}.1`, iwarp: false };
  });
  const at = (given: Record<string, string | boolean>) =>
    listens(settings({ token: 'secret', transport: 'verbs', ...given }), found);
  t.deepEqual(
    at({ 'rdma-device': 'mlx5_7,mlx5_1' }).map((a) => [a.host, a.device]),
    [['10.9.1.1', 0]],
  );
  t.regex(lines.at(-1) ?? '', /no address leads to mlx5_7; this server listens on mlx5_1/);
  t.throws(() => at({ 'rdma-device': 'mlx5_7,mlx5_1', strict: true }), { message: /no address leads to mlx5_7/ });
  t.throws(() => at({ 'rdma-device': 'a,b,c,d,e' }), { code: 'ERR_CONFIG', message: /at most 2 devices/ });
  const all = found.map((a) => `${a.address}:7500`).join();
  t.deepEqual(
    at({ 'fabric-listen': all }).map((a) => [a.host, a.device]),
    [
      ['10.9.0.1', 0],
      ['10.9.1.1', 1],
    ],
  );
  t.regex(lines.at(-1) ?? '', /more than 2 RDMA devices, and this server does not listen on mlx5_2, mlx5_3, mlx5_4/);
  t.throws(() => at({ 'fabric-listen': all, strict: true }), {
    code: 'ERR_CONFIG',
    message: /more than 2 RDMA devices/,
  });
});

test('where an RDMA device does not work, each is tried alone, and none where verbs was not asked for', (t) => {
  const found = [0, 1].map((i) => {
    return { device: `mlx5_${i}`, networkInterface: `eth${i}`, address: `10.9.${i}.1`, iwarp: false };
  });
  const tried = (given: Record<string, string | boolean>) => {
    const s = settings({ token: 'secret', 'rdma-device': 'mlx5_1,mlx5_0', ...given }, true);
    return attempts(s, ['shm', 'verbs', 'tcp'], found).map((a) => [a.devices.join(), a.transports.length]);
  };
  const named = [
    ['mlx5_1,mlx5_0', 3],
    ['mlx5_1', 3],
    ['mlx5_0', 3],
  ];
  t.deepEqual(tried({}), [...named, ['', 2]]);
  t.deepEqual(tried({ transport: 'shm,verbs,tcp' }), named);
  t.deepEqual(tried({ strict: true }), [['mlx5_1,mlx5_0', 3]]);
  t.deepEqual(tried({ 'rdma-device': 'mlx5_0' }), [
    ['mlx5_0', 3],
    ['', 2],
  ]);
  t.deepEqual(attempts(settings({}), ['tcp'], []), [{ transports: ['tcp'], devices: [] }]);
});

test('addresses say of which device they are, but for the first', (t) => {
  const s = settings({ token: 'secret', transport: 'verbs', 'rdma-device': 'rxe0,rxe1', 'fabric-listen': '0.0.0.0:0' });
  const found = [
    { device: 'rxe1', networkInterface: 'eth1', address: '10.7.0.1', iwarp: false },
    { device: 'rxe0', networkInterface: 'eth0', address: '10.9.0.1', iwarp: false },
  ];
  const list = listenList(s, ['verbs'], 2, [], rdmaDevices(s, found), found);
  t.deepEqual(list, [
    { provider: 'verbs', address: '10.9.0.1:0', worker: 0 },
    { provider: 'verbs', address: '10.7.0.1:0', worker: 0, device: 1 },
    { provider: 'verbs', address: '10.9.0.1:0', worker: 1 },
    { provider: 'verbs', address: '10.7.0.1:0', worker: 1, device: 1 },
  ]);
  t.deepEqual(fabricAddresses(list, s, ''), list);
});

test('verbs listens where certificates say who comes, and no token is', (t) => {
  const found = [{ device: 'mlx5_0', networkInterface: 'ib0', address: '10.9.0.1', iwarp: false }];
  const plain = settings({ transport: 'verbs' });
  t.deepEqual(listens({ ...plain, access: { ...plain.access, cluster: 'c1' } }, found), [
    { host: '10.9.0.1', port: 8400, device: 0 },
  ]);
});

test('the address of verbs is told as it is: --advertise names the machine, not its device', (t) => {
  const s = settings({ advertise: 'db1', token: 'secret', transport: 'verbs' });
  t.deepEqual(fabricAddresses([{ provider: 'verbs', address: '10.9.0.1:7500', worker: 0 }], s, ''), [
    { provider: 'verbs', address: '10.9.0.1:7500', worker: 0 },
  ]);
});

test('a start is tried before there is a cluster: all ports at once, and verbs with what it needs', async (t) => {
  const other = createServer();
  await listenAt(other, { host: '127.0.0.1', port: 0 });
  const { port } = other.address() as AddressInfo;
  const at = (given: string) =>
    tryListening(settings({ 'fabric-listen': given, insecure: true }), ['shm', 'tcp'], () => []);
  const taken = await t.throwsAsync(at(`127.0.0.1:${port}`), { instanceOf: FarkvError, code: 'ERR_ADDRESS_IN_USE' });
  t.regex(taken.message, /^data: cannot listen on 127.0.0.1:\d+: Address already in use: stop the program/);
  await new Promise((resolve) => other.close(resolve));
  await at(`127.0.0.1:${port}`);
  const twice = await t.throwsAsync(at(`127.0.0.1:${port},0.0.0.0:${port}`), { instanceOf: FarkvError });
  t.regex(twice.message, /0\.0\.0\.0/);

  const found = [{ device: 'mlx5_0', networkInterface: 'ib0', address: '10.9.0.1', iwarp: false }];
  const verbs = settings({ transport: 'verbs' });
  const open = await t.throwsAsync(
    tryListening(verbs, ['verbs'], () => found),
    { instanceOf: FarkvError, code: 'ERR_CONFIG' },
  );
  t.regex(open.message, /without a token/);
});
