import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { Member, Shard } from '../core/metadata/state.js';
import type { ClientMap } from '../core/protocol/messages.js';
import { Routes } from './routes.js';
import { localCapabilities, plan, TransportState, type LocalCapabilities, type Wish } from './transport.js';

const ANY: Wish = { choice: 'auto', strict: false, secure: false };
const here: LocalCapabilities = { host: 'boot-1/mnt:[1]', providers: ['shm', 'tcp'], socketProblem: () => undefined };

function member(id: string, incarnation = '00000000000000aa', host = here.host): Member {
  return {
    id,
    raftId: 1,
    incarnation,
    control: [`${id}:7400`],
    memoryBytes: 1,
    fabric: [
      { provider: 'tcp', address: `${id}:1`, worker: 0 },
      { provider: 'shm', address: `unix:/run/${id}.sock`, worker: 0, host },
      { provider: 'tcp', address: `${id}:2`, worker: 1 },
    ],
  };
}

function shard(number: number, owner?: string, worker = 0, layoutEpoch = 1): Shard {
  const region = {
    provider: 'shm',
    kind: 'index',
    segment: 0,
    tag: 5,
    bytes: 4096,
    remoteAddress: '0',
    rkey: '18446744073709551615',
  } as const;
  return {
    shard: number,
    worker,
    epoch: 3,
    layoutEpoch,
    buckets: 8,
    regions: [region],
    ...(owner === undefined ? {} : { owner, incarnation: 'ffffffffffffffff' }),
  };
}

const map = (members: Member[], shards: Shard[], more: Partial<ClientMap> = {}): ClientMap => ({
  clusterId: 'c1',
  mapEpoch: 1,
  hashSeed: '00',
  members,
  shards,
  ...more,
});

test('owners are data-plane threads; addresses come in the order of preference', (t) => {
  const routes = new Routes(ANY, here);
  const { owners, routes: table } = routes.update(map([member('s1')], [shard(0, 's1'), shard(1, 's1', 1), shard(2)]));
  t.deepEqual(owners, [
    {
      owner: 1,
      serverIncarnation: 0xaan,
      addresses: [
        { provider: 'shm', address: 'unix:/run/s1.sock' },
        { provider: 'tcp', address: 's1:1' },
      ],
    },
    { owner: 2, serverIncarnation: 0xaan, addresses: [{ provider: 'tcp', address: 's1:2' }] },
  ]);
  t.deepEqual(
    table.map((route) => route.owner),
    [1, 2, -1],
  );
  t.is(table[0]?.incarnation, 0xffffffffffffffffn);
  t.is(table[0]?.regions[0]?.rkey, 0xffffffffffffffffn);
});

test('addresses of several devices come in the order of the server, and regions say for which they are', (t) => {
  const routes = new Routes({ ...ANY, choice: 'verbs' }, { ...here, providers: ['verbs', 'tcp'] });
  const s1: Member = {
    ...member('s1'),
    fabric: [
      { provider: 'verbs', address: '10.9.0.1:1', worker: 0 },
      { provider: 'verbs', address: '10.7.0.1:1', worker: 0, device: 1 },
      { provider: 'tcp', address: 's1:1', worker: 0 },
    ],
  };
  const own = shard(0, 's1');
  const regions = own.regions.flatMap((r) => [r, { ...r, device: 1 }]);
  const { owners, routes: table } = routes.update(map([s1], [{ ...own, regions }]));
  t.deepEqual(owners[0]?.addresses, [
    { provider: 'verbs', address: '10.9.0.1:1' },
    { provider: 'verbs', address: '10.7.0.1:1', device: 1 },
    { provider: 'tcp', address: 's1:1' },
  ]);
  t.deepEqual(
    table[0]?.regions.map((r) => r.device),
    [undefined, 1],
  );
});

test('an owner keeps its number, a restarted server gets a new one, and none is used twice', (t) => {
  const routes = new Routes(ANY, here);
  const owner = (members: Member[]) => routes.update(map(members, [shard(0, 's1')])).owners[0]?.owner;
  t.is(owner([member('s1')]), 1);
  t.is(owner([member('s1'), member('s2')]), 1);
  t.is(owner([member('s1', '00000000000000bb')]), 2);
  t.is(owner([member('s1')]), 3);
});

test('a shard that did not change is not converted again', (t) => {
  const routes = new Routes(ANY, here);
  const same = shard(0, 's1');
  const first = routes.update(map([member('s1')], [same, shard(1, 's1')]));
  const second = routes.update(map([member('s1')], [same, shard(1, 's1', 0, 2)]));
  t.is(second.routes[0], first.routes[0]);
  t.not(second.routes[1], first.routes[1]);
});

test('a shard whose owner is not in the map has no route', (t) => {
  const routes = new Routes(ANY, here);
  t.deepEqual(
    routes.update(map([], [shard(0, 'gone')])).routes.map((route) => route.owner),
    [-1],
  );
});

test('the map of another cluster, of other shards, or with holes is refused', (t) => {
  const routes = new Routes(ANY, here);
  routes.update(map([member('s1')], [shard(0, 's1')]));
  t.throws(() => routes.update(map([], [shard(0)], { clusterId: 'c2' })), {
    code: 'ERR_CONFIG',
    message: /cluster c2/,
  });
  t.throws(() => routes.update(map([], [shard(0), shard(1)])), { code: 'ERR_PROTOCOL' });
  t.throws(() => routes.update(map([], [shard(0)], { hashSeed: '01' })), { code: 'ERR_PROTOCOL' });
  t.throws(() => routes.update(map([], [shard(1)])), { code: 'ERR_PROTOCOL' });
  t.throws(() => new Routes(ANY, here).update(map([], [shard(1), shard(3)])), { code: 'ERR_PROTOCOL' });
});

const tried = (
  choice: 'auto' | 'shm' | 'verbs' | 'tcp',
  strict: boolean,
  around: LocalCapabilities = here,
  of = member('s1'),
) => plan(of, 0, { choice, strict, secure: false }, around);

test('what is tried, in which order, and why not the rest', (t) => {
  const verbs: LocalCapabilities = { ...here, providers: ['verbs', 'shm', 'tcp'] };
  const all: Member = {
    ...member('s1'),
    fabric: [...member('s1').fabric, { provider: 'verbs', address: 's1:9', worker: 0 }],
  };
  const providers = (p: { readonly addresses: readonly { readonly provider: string }[] }) =>
    p.addresses.map(({ provider }) => provider);
  t.deepEqual(providers(tried('auto', false, verbs, all)), ['shm', 'verbs', 'tcp']);
  t.deepEqual(providers(tried('auto', true, verbs, all)), ['shm']);
  t.deepEqual(providers(tried('tcp', false, verbs, all)), ['tcp', 'shm', 'verbs']);
  t.deepEqual(providers(tried('tcp', true, verbs, all)), ['tcp']);
  t.deepEqual(tried('verbs', true), {
    order: ['verbs'],
    addresses: [],
    refused: new Map([['verbs', 'the server does not offer it']]),
  });
  t.deepEqual([...tried('verbs', true, here, all).refused], [['verbs', 'not supported by this build']]);
  const elsewhere = tried('auto', false, here, member('s1', 'aa', 'boot-2/mnt:[1]'));
  t.deepEqual(elsewhere.addresses, [{ provider: 'tcp', address: 's1:1' }]);
  t.regex(elsewhere.refused.get('shm') ?? '', /another host/);
  t.regex(
    tried('shm', true, { ...here, socketProblem: () => 'the server runs as user 5' }).refused.get('shm') ?? '',
    /user 5/,
  );
  // With strict, auto takes the best that is possible, and then only that.
  t.deepEqual(providers(tried('auto', true, here, member('s1', 'aa', 'boot-2/mnt:[1]'))), ['tcp']);
});

test('a client that came by TLS takes data in the clear only where the server says so; "tls:" is never taken off', (t) => {
  const at = (address: string, secure: boolean) =>
    plan(
      { ...member('s1'), fabric: [{ provider: 'tcp', address, worker: 0 }] },
      0,
      { choice: 'tcp', strict: true, secure },
      here,
    );
  const addresses = (address: string, secure: boolean) => at(address, secure).addresses.map((a) => a.address);
  for (const secure of [false, true]) {
    t.deepEqual(addresses('tls:10.0.0.1:7', secure), ['tls:10.0.0.1:7']);
    t.deepEqual(addresses('clear:10.0.0.1:7', secure), ['10.0.0.1:7']);
  }
  t.deepEqual(addresses('10.0.0.1:7', false), ['10.0.0.1:7']);
  t.deepEqual(addresses('10.0.0.1:7', true), []);
  t.regex(at('10.0.0.1:7', true).refused.get('tcp') ?? '', /--insecure-data/);
});

test('a report says what was picked and why', (t) => {
  const state = new TransportState('s1', 0, tried('auto', false));
  t.deepEqual(state.report(), {
    server: 's1',
    worker: 0,
    provider: undefined,
    connected: false,
    reason: 'not connected (verbs: the server does not offer it)',
  });
  t.false(state.tried);
  state.failed('shm', 'ERR_DISCONNECTED');
  state.connectedBy('tcp');
  t.like(state.report(), {
    provider: 'tcp',
    connected: true,
    reason: 'shm: failed with ERR_DISCONNECTED at unix:/run/s1.sock; verbs: the server does not offer it',
  });
  state.connectedBy('shm');
  t.like(state.report(), { provider: 'shm', reason: 'same host' });
  state.failed('shm', 'ERR_DISCONNECTED');
  t.like(state.report(), { provider: 'shm', connected: false });
  t.true(new TransportState('s1', 0, tried('verbs', true)).unreachable);
  // What was asked for by name is the best there is; what is not it says why.
  const tcp = new TransportState('s1', 0, tried('tcp', false));
  tcp.connectedBy('tcp');
  t.is(tcp.report().reason, 'as asked for');
  const other = new TransportState('s1', 0, tried('verbs', false));
  other.connectedBy('shm');
  t.is(other.report().reason, 'verbs: the server does not offer it');
});

test('why nobody answers for a shard', (t) => {
  const routes = new Routes(ANY, here);
  routes.update(map([member('s1')], [shard(0), shard(1, 's1'), { ...shard(2), owner: 's1' }]));
  t.is(routes.explain(0), 'shard 0 has no owner yet');
  t.is(routes.explain(2), 'the owner of shard 2, s1, has not opened it yet');
  t.regex(routes.explain(1), /^the owner of shard 1, s1, is not connected \(/);
  routes.state(1)?.failed('shm', 'ERR_DISCONNECTED');
  t.regex(routes.explain(1), /shm: failed with ERR_DISCONNECTED/);
  routes.state(1)?.connectedBy('tcp');
  t.is(routes.explain(1), 'the owner of shard 1, s1, does not serve it yet');
});

test('the shards of a tenant begin where those of others end', (t) => {
  const routes = new Routes(ANY, here);
  t.deepEqual(
    routes.update(map([member('s1')], [shard(5, 's1'), shard(6)])).routes.map((route) => [route.shard, route.owner]),
    [
      [5, 1],
      [6, -1],
    ],
  );
  t.regex(routes.explain(6), /shard 6 has no owner/);
  t.regex(routes.explain(5), /the owner of shard 5, s1/);
});

test('a socket that is not there is tried where its directory is: its server starts', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-routes-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const { socketProblem } = localCapabilities();
  t.is(socketProblem(join(directory, 'g0.sock')), undefined);
  t.regex(socketProblem(join(directory, 'elsewhere', 'g0.sock')) ?? '', /cannot be seen from here \(ENOENT\)/);
  writeFileSync(join(directory, 'file'), '');
  t.regex(socketProblem(join(directory, 'file')) ?? '', /is not a socket/);
  t.regex(socketProblem(join(directory, 'file', 'g0.sock')) ?? '', /\(ENOTDIR\)/);
});

test('why a server ended a connection is told of its shards, until one comes without a reason', (t) => {
  const routes = new Routes(ANY, here);
  const { owners } = routes.update(map([member('s1')], [shard(0, 's1'), shard(1, 's1', 1)]));
  const state = routes.state(owners[0]?.owner ?? -1);
  state?.connectedBy('tcp');
  t.is(routes.ended(0), undefined);
  state?.failed('tcp', 'ERR_DISCONNECTED');
  state?.connectedBy('tcp', 'quota');
  t.regex(routes.ended(0) ?? '', /^s1 had ended the connection to worker 0: .*--client-quota/u);
  t.is(routes.ended(1), undefined);
  t.regex(state?.report().reason ?? '', /--client-quota/u);
  state?.failed('tcp', 'ERR_DISCONNECTED');
  t.regex(routes.explain(0), /--client-quota/u);
  state?.connectedBy('tcp');
  t.is(routes.ended(0), undefined);
});
