import test from 'ava';
import { SHARDS_MAX } from '../metadata/check-state.js';
import type { MetadataState, Region, Shard } from '../metadata/state.js';
import { DEFAULT_TENANT } from '../metadata/tenants.js';
import { mapFrames, MapAssembler, clientMap } from './client-map.js';
import { FrameReader } from './frame.js';
import { SERVER_FRAME_LIMITS } from './limits.js';
import type { ClientMap, MapPush } from './messages.js';

const region = (segment: number): Region => ({
  provider: 'shm',
  kind: 'heap',
  segment,
  tag: 1,
  bytes: 4096,
  remoteAddress: '18446744073709551615',
  rkey: '18446744073709551615',
});
const shard = (n: number, regions: number, layoutEpoch = 1): Shard => ({
  shard: n,
  owner: 's1',
  worker: 0,
  epoch: 1,
  incarnation: '0123456789abcdef',
  layoutEpoch,
  buckets: 64,
  regions: Array.from({ length: regions }, (_, i) => region(i)),
});
function state(mapEpoch: number, shards: readonly Shard[], clusterId = 'ab'.repeat(16)): MetadataState {
  return {
    formatVersion: 1,
    clusterId,
    mapEpoch,
    hashSeed: '00'.repeat(16),
    ticketSecret: '5ec12e75'.repeat(4),
    voters: ['s1'],
    shards,
    firstServers: ['s1'],
    servers: [],
    votersMax: 0,
    ownerLease: { leaseMs: 0, driftPpm: 0 },
    moves: [],
    tenants: [],
    copySets: [],
    policies: [],
    members: new Map([
      [
        's1',
        {
          id: 's1',
          raftId: 1,
          incarnation: '00'.repeat(8),
          control: ['127.0.0.1:7400'],
          fabric: [],
          memoryBytes: 1,
          instance: 'cc'.repeat(8),
        },
      ],
    ]),
  };
}
function receive(
  assembler: MapAssembler,
  frames: Uint8Array[],
): { readonly map: ClientMap | undefined; readonly pushes: MapPush[] } {
  const reader = new FrameReader(SERVER_FRAME_LIMITS);
  const pushes: MapPush[] = [];
  for (const f of frames) reader.push(f, (frame) => frame.t === 'map' && pushes.push(frame) > 0);
  return { map: pushes.map((p) => assembler.push(p)).at(-1), pushes };
}

test('a map of many regions travels in several frames and takes effect once', (t) => {
  const all = state(
    5,
    Array.from({ length: 40 }, (_, i) => shard(i, 200)),
  );
  const frames = mapFrames(all, undefined, DEFAULT_TENANT, new Uint8Array(40));
  t.true(frames.length > 1);
  const { map, pushes } = receive(new MapAssembler(), frames);
  t.deepEqual(map, clientMap(all));
  t.deepEqual(
    pushes.map((p) => [p.more ?? false, p.ticket !== undefined]),
    frames.map((_, i) => [i < frames.length - 1, i === 0]),
  );
});

test('only changed shards are sent to a client that knows the others', (t) => {
  const shards = [shard(0, 2), shard(1, 2), shard(2, 2)];
  const before = state(1, shards);
  const after = state(2, [shard(0, 3, 2), ...shards.slice(1)]);
  const assembler = new MapAssembler();
  receive(assembler, mapFrames(before, undefined));
  const { map, pushes } = receive(assembler, mapFrames(after, before));
  t.deepEqual(
    pushes[0]?.map.shards.map((s) => s.shard),
    [0],
  );
  t.deepEqual(map, clientMap(after));
});

test('the map of another cluster is sent whole', (t) => {
  const shards = [shard(0, 1)];
  const { pushes } = receive(new MapAssembler(), mapFrames(state(1, shards, 'cd'.repeat(16)), state(9, shards)));
  t.is(pushes[0]?.partial, undefined);
  t.is(pushes[0]?.map.shards.length, 1);
});

test('a client never gets the ticket secret or the identity of a data directory', (t) => {
  const text = Buffer.concat(mapFrames(state(1, [shard(0, 1)]), undefined)).toString('latin1');
  t.false(text.includes('5ec12e75'));
  t.false(text.includes('ticketSecret'));
  t.false(text.includes('instance'));
});

test('a shard with the most regions fits a frame', (t) => {
  const frames = mapFrames(state(1, [shard(0, 8192)]), undefined);
  t.is(receive(new MapAssembler(), frames).map?.shards[0]?.regions.length, 8192);
});

test('a client of a tenant is told of its shards, their regions and their owners, and of nothing else', (t) => {
  const shards = [shard(0, 2), { ...shard(1, 2), owner: 's2' }, { ...shard(2, 2), owner: 's2' }].map((s) => ({
    ...s,
    regions: s.regions.map((r) => ({ ...r, rkey: `77${s.shard}` })),
  }));
  const one = state(1, shards);
  const [s1] = one.members.values();
  const all: MetadataState = {
    ...one,
    tenants: [
      { name: 'a', shards: 1 },
      { name: 'b', shards: 1 },
    ],
    members: new Map([
      ['s1', s1!],
      ['s2', { ...s1!, id: 's2' }],
    ]),
  };
  const mapOf = (tenant: number, known?: MetadataState, now = all) =>
    receive(new MapAssembler(), mapFrames(now, known, tenant)).map!;
  for (const [tenant, owner] of ['s1', 's2', 's2'].entries()) {
    const map = mapOf(tenant);
    t.deepEqual(map.shards, [shards[tenant]]);
    t.deepEqual(
      map.members.map((m) => m.id),
      [owner],
    );
    t.deepEqual(map, clientMap(all, tenant));
    const told = JSON.stringify(map);
    for (const other of [0, 1, 2]) t.is(told.includes(`"77${other}"`), other === tenant);
  }
  t.deepEqual(mapOf(3).shards, [], 'of a domain that there is not');
  const changed = { ...all, mapEpoch: 2, shards: [shards[0]!, { ...shards[1]!, layoutEpoch: 2 }, shards[2]!] };
  t.deepEqual(mapOf(1, all, changed).shards, [changed.shards[1]]);
  t.deepEqual(mapOf(2, all, changed).shards, [], 'nothing of it has changed');
});

test('clients of a replicated tenant are told so, and no others', (t) => {
  const kept = { level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' } as const;
  const base = { ...state(1, [shard(0, 1), shard(1, 1)]), tenants: [{ name: 'other', shards: 1 }] };
  const policies = [{ ...kept, level: 'cache' } as const, kept];
  t.is(clientMap({ ...base, policies }, DEFAULT_TENANT).replicated, undefined);
  t.is(clientMap({ ...base, policies }, 1).replicated, true);
  t.is(clientMap(base, 1).replicated, undefined);
  const [frame] = mapFrames({ ...base, policies }, undefined, 1);
  const frames: unknown[] = [];
  new FrameReader(SERVER_FRAME_LIMITS).push(Buffer.from(frame!), (f) => frames.push(f) > 0);
  t.is((frames[0] as MapPush).map.replicated, true);
});

test('parts without an end, and more shards than any map has, are refused', (t) => {
  const part = (shards: readonly Shard[]): MapPush => ({ t: 'map', map: clientMap(state(1, shards)), more: true });
  const shards = Array.from({ length: SHARDS_MAX }, (_, n) => shard(n, 0));
  const full = new MapAssembler();
  full.push(part(shards));
  t.throws(() => full.push(part([shard(0, 0)])), { code: 'ERR_PROTOCOL' });
  const endless = new MapAssembler();
  const empty = part([]);
  for (let i = 0; i < SHARDS_MAX; i++) endless.push(empty);
  t.throws(() => endless.push(empty), { code: 'ERR_PROTOCOL' });
  const several = new MapAssembler();
  for (let i = 0; i < 3; i++) {
    several.push(part(shards.slice(1)));
    t.is(several.push({ t: 'map', map: clientMap(state(1, [shard(0, 0)])) })?.shards.length, SHARDS_MAX);
  }
});
