/** What a subscribed client is pushed: the map, what changed of it, tickets. */
import test from 'ava';
import type { Shard } from '../../core/metadata/state.js';
import { MapAssembler, type ClientMap } from '../../core/protocol/index.js';
import { hello, opened, Raw, rig, shard, STATE } from '../../test/support/control-rig.js';
import { RENEW_MS } from './tickets.js';

test('a client gets its id, a ticket and the whole map', async (t) => {
  const { port, plane } = await rig(t);
  const [welcome, map] = await new Raw(t, port).say(hello()).got(2);
  if (welcome?.t !== 'welcome' || !welcome.ok || map?.t !== 'map') return t.fail();
  t.regex(welcome.clientId ?? '', /^[0-9a-f]{16}$/);
  t.like(opened(welcome), { client: BigInt(`0x${welcome.clientId ?? ''}`), tenant: 0, flags: 3 });
  t.is(map.map.shards.length, 2);
  t.is(map.partial, undefined);
  t.is(plane.clients, 1);
});

test('a change is pushed at once, those of the next moment together, and only what changed', async (t) => {
  const { port, setState } = await rig(t);
  const raw = new Raw(t, port).say(hello());
  await raw.got(2);
  const { shards } = STATE;
  setState({ ...STATE, mapEpoch: 2, shards: [shard(0, 2), shards[1]!] });
  setState({ ...STATE, mapEpoch: 3, shards: [shard(0, 3), shards[1]!] });
  setState({ ...STATE, mapEpoch: 4, shards: [shard(0, 4), shards[1]!] });
  await raw.got(4);
  setState({ ...STATE, mapEpoch: 5, shards: [shard(0, 5), shard(1, 2)] });
  const frames = await raw.got(5);
  const maps = new MapAssembler();
  const seen: ClientMap[] = [];
  for (const f of frames) if (f.t === 'map') seen.push(maps.push(f)!);
  t.deepEqual(
    seen.map((m) => m.mapEpoch),
    [1, 2, 4, 5],
  );
  t.deepEqual(
    frames.filter((f) => f.t === 'map').map((f) => f.map.shards.length),
    [2, 1, 1, 2],
  );
  t.deepEqual(seen.at(-1)?.shards, [shard(0, 5), shard(1, 2)]);
});

/** Shard 0 with so many segments. */
const bulk = (layoutEpoch: number, segments: number): Shard => ({
  ...shard(0, layoutEpoch),
  regions: Array.from({ length: segments }, (_, i) => ({
    provider: 'tcp',
    kind: 'heap',
    segment: i,
    tag: layoutEpoch,
    bytes: 4096,
    remoteAddress: '1',
    rkey: '18446744073709551615',
  })),
});

test('a client that reads nothing gets fewer pushes, and the newest state when it reads again', async (t) => {
  const { port, setState, plane } = await rig(t);
  const raw = new Raw(t, port).say(hello());
  await raw.got(2);
  raw.socket.pause();
  const epochs = (of: Raw): number[] => of.frames.flatMap((f) => (f.t === 'map' ? [f.map.mapEpoch] : []));
  // Another client, which reads, says when a change was pushed.
  const reads = new Raw(t, port).say(hello());
  await reads.got(2);
  const pushes = 60;
  for (let i = 2; i <= pushes; i++) {
    setState({ ...STATE, mapEpoch: i, shards: [bulk(i, 4000), shard(1)] });
    await reads.until(() => epochs(reads).at(-1) === i);
  }
  t.is(plane.clients, 2);
  raw.socket.resume();
  await raw.until(() => epochs(raw).at(-1) === pushes);
  t.true(epochs(raw).length < epochs(reads).length, `${epochs(raw).length} pushes`);
});

test('a client that takes nothing for long is dropped', async (t) => {
  const { port, setState, plane } = await rig(t, { pace: { renewMs: 60_000, stalledMs: 50 } });
  const raw = new Raw(t, port).say(hello());
  await raw.got(2);
  raw.socket.pause();
  const reads = new Raw(t, port).say(hello());
  await reads.got(2);
  for (let i = 2; plane.clients > 1; i++) {
    setState({ ...STATE, mapEpoch: i, shards: [bulk(i, 8000), shard(1)] });
    await reads.until(() => reads.frames.some((f) => f.t === 'map' && f.map.mapEpoch === i));
  }
  t.false(reads.closed);
});

test('a new ticket comes before the old one has expired, and changes nothing of the map', async (t) => {
  const { port } = await rig(t, { pace: { renewMs: 20, lookMs: 20, stalledMs: 60_000 } });
  const frames = await new Raw(t, port).say(hello()).got(5);
  const maps = new MapAssembler();
  const seen = frames.flatMap((f) => (f.t === 'map' ? [maps.push(f)] : []));
  for (const map of seen) t.deepEqual(map, seen[0]);
  const tickets = [frames[0], ...frames.slice(2)].map((f) => f && opened(f));
  t.true(tickets.every((ticket) => (ticket?.expiresMs ?? 0) > Date.now() + 2 * RENEW_MS - 60_000));
  t.is(new Set(tickets.map((ticket) => ticket?.client)).size, 1);
});

for (const [way, jumpMs] of [
  ['forward, past the end of all tickets', 2 * RENEW_MS],
  ['back', -RENEW_MS / 2],
] as const) {
  test(`when the wall clock jumps ${way}, each client gets a ticket by the new time at once, and one only`, async (t) => {
    const wall = { ms: 1_700_000_000_000 };
    const { port, setState } = await rig(t, { wallMs: () => wall.ms, pace: { lookMs: 1 } });
    const clients = [new Raw(t, port).say(hello()), new Raw(t, port).say(hello())];
    for (const one of clients) await one.got(2);
    wall.ms += jumpMs;
    for (const one of clients) {
      await one.got(3);
      t.is(one.frames[2] && opened(one.frames[2])?.issuedMs, wall.ms);
    }
    setState({ ...STATE, mapEpoch: 2 });
    for (const one of clients) {
      await one.until(() => one.frames.some((f) => f.t === 'map' && f.map.mapEpoch === 2));
      t.is(one.frames.filter((f) => f.t === 'map' && f.ticket !== undefined).length, 1);
    }
  });
}
