import test from 'ava';
import type { RdmaAddress } from '../../native/addon.js';
import { rankGids, type GidEntry, type PortFacts } from './gids.js';

const V1 = 'IB/RoCE v1';
const V2 = 'RoCE v2';
const LINK_LOCAL = 'fe80:0000:0000:0000:0000:00ff:fe00:0001';
const mapped = (hex: string): string => `0000:0000:0000:0000:0000:ffff:${hex}`;

/** As a NIC shows them: each address twice. */
const ENTRIES: readonly GidEntry[] = [
  [LINK_LOCAL, V1],
  [LINK_LOCAL, V2],
  [mapped('0a09:0001'), V1],
  [mapped('0a09:0001'), V2],
  [mapped('0a09:0002'), V2],
  ['fd00:0009:0000:0000:0000:0000:0000:0001', V2],
].map(([gid = '', type], index) => ({ index, gid, type, networkInterface: 'eth2' }));

const at = (address: string, device = 'mlx5_0', networkInterface = 'eth2'): RdmaAddress => ({
  device,
  networkInterface,
  address,
  iwarp: false,
});

const ROCE: PortFacts = { device: 'mlx5_0', isRnic: false, roceMode: V2, ipoib: undefined, addresses: [] };

/** Each GID's index, with the address that it is for or the reason that it is for none. */
const uses = (port: Partial<PortFacts>, entries = ENTRIES): string[] =>
  rankGids(entries, { ...ROCE, ...port }).map(
    ({ index, connectionsOf, unusedReason }) => `${index} ${connectionsOf ?? unusedReason ?? '?'}`,
  );

const OTHERS = [
  '0 RoCE v1: connections are RoCE v2',
  '1 link-local: farkv listens at no such address',
  '2 RoCE v1: connections are RoCE v2',
];

test('the GIDs of addresses come first, in their order, and each other one has a reason', (t) => {
  t.deepEqual(uses({ addresses: [at('fd00:9::1'), at('10.9.0.2'), at('10.9.0.1')] }), [
    '5 fd00:9::1',
    '4 10.9.0.2',
    '3 10.9.0.1',
    ...OTHERS,
  ]);
});

test('an address that this host does not have, or that leads to another device, has no connections', (t) => {
  t.deepEqual(uses({ addresses: [at('10.9.0.1'), at('10.9.0.2', 'rxe0')] }), [
    '3 10.9.0.1',
    ...OTHERS,
    '4 10.9.0.2 leads to rxe0',
    '5 no address of this host leads to it',
  ]);
});

test('where the connection manager gives no addresses, or perhaps not all, GIDs alone decide', (t) => {
  const all = ['3 10.9.0.1', '4 10.9.0.2', '5 fd00:9::1', ...OTHERS];
  t.deepEqual(uses({}), all);
  const many = Array.from({ length: 64 }, (_, i) => at(`10.10.0.${i + 1}`));
  t.deepEqual(uses({ addresses: many }), all);
});

test('where connections are RoCE v1, those of v2 are not used', (t) => {
  const [first, ...rest] = uses({ roceMode: V1, addresses: [at('10.9.0.1')] });
  t.is(first, '2 10.9.0.1');
  t.deepEqual(rest, [
    '0 link-local: farkv listens at no such address',
    ...[1, 3, 4, 5].map((index) => `${index} RoCE v2: connections are IB/RoCE v1`),
  ]);
});

test('over InfiniBand the GID is that of the interface, though it is link-local', (t) => {
  const port = { roceMode: undefined, ipoib: [{ name: 'ib0', gid: LINK_LOCAL }] };
  const entries = [...ENTRIES.slice(3, 4), ...ENTRIES.slice(0, 1)].map((e, index) => ({ ...e, type: V1, index }));
  const own = [at('10.1.0.1', 'mlx5_0', 'ib0'), at('10.1.0.2', 'mlx5_0', 'ib0:1'), at('10.1.0.3', 'mlx5_1', 'ib1')];
  t.deepEqual(uses({ ...port, addresses: own }, entries), [
    '1 10.1.0.1, 10.1.0.2',
    '0 no IPoIB interface of this host has it',
  ]);
  t.deepEqual(uses({ ...port, addresses: own.slice(2) }, entries), [
    '0 no IPoIB interface of this host has it',
    '1 no address of ib0 leads to it',
  ]);
  t.deepEqual(uses(port, entries), ['1 ?', '0 no IPoIB interface of this host has it']);
});

test('over iWARP no GID is used', (t) => {
  const reason = 'iWARP: connections have IP addresses and no GID';
  t.deepEqual(uses({ isRnic: true, roceMode: undefined, addresses: [at('10.9.0.1')] }, ENTRIES.slice(3, 4)), [
    `3 ${reason}`,
  ]);
});
