/** GETs over tcp with TLS: against the same in the clear, and against Redis and memcached with TLS. */
import { chmodSync, readFileSync } from 'node:fs';
import { connect } from '../../client/index.js';
import { DemoCluster, ONE_COPY } from '../demo-cluster.js';
import { inRepository } from '../repository.js';
import type { Lab } from './lab.js';
import { drawing, medianNs, rate } from './loops.js';
import type { Certificate } from './peers.js';
import { atLeast, atMost, interleave, nanoseconds, part, perSecond, type Part, type Side } from './row.js';
import { median, ratios } from './statistics.js';
import { inParts, keyOf, loadMemcached, loadRedis, memoryFor, openMemcached, openRedis } from './stores.js';

const SEQUENTIAL = 30_000;
const GETS = 200_000;
const OUTSTANDING = 100;
/** Records at once: memcached 1.6.18 leaves what of a TLS record is beyond its 16 KiB until more comes. */
const MEMCACHED_LOAD = 8;

const file = (name: string): string => inRepository('test/fixtures/tls', name);
const TLS: Certificate = { cert: file('server.pem'), key: file('server-key.pem'), ca: file('ca.pem') };

type Get = (key: string) => Promise<unknown>;

export async function encryptedGets(lab: Lab): Promise<Part[]> {
  const s = await lab.stores(1000);
  const clear = await s.tcp();
  chmodSync(TLS.key, 0o600); // A key that others may read is refused, and git keeps no such mode.
  const { servers, signal, keys: count } = lab;
  const stops: (() => Promise<unknown>)[] = [];
  lab.note('starting farkv, redis-server and memcached with TLS');
  try {
    const cluster = await DemoCluster.start(servers, `${Math.ceil(memoryFor(count, 1000) / servers)}b`, signal, [
      ...ONE_COPY,
      ...['--tls-cert', TLS.cert, '--tls-key', TLS.key, '--tls-ca', TLS.ca],
    ]);
    stops.push(() => cluster.stop());
    const farkv = await connect({
      servers: cluster.addresses,
      transport: 'tcp',
      strict: true,
      tls: { ca: readFileSync(TLS.ca) },
    });
    stops.push(() => farkv.close());
    const redis = await openRedis({ tls: TLS });
    stops.push(() => {
      redis.client.disconnect();
      return redis.peer.stop();
    });
    const memcached = await openMemcached(count, 1000, TLS);
    stops.push(() => {
      memcached.client.shutdown();
      return memcached.peer.stop();
    });
    await inParts(count, signal, async (numbers) => {
      await farkv.putMany(numbers.map((i) => ({ key: keyOf(i), value: s.value })));
      await loadRedis(redis.client, numbers, s.value);
      for (let at = 0; at < numbers.length; at += MEMCACHED_LOAD)
        await loadMemcached(memcached.client, numbers.slice(at, at + MEMCACHED_LOAD), s.value);
    });
    const gets: readonly (readonly [string, Get])[] = [
      ['TLS', (key) => farkv.get(key)],
      ['clear', (key) => clear.get(key)],
      ['ioredis', (key) => redis.client.getBuffer(key)],
      ['memcached', (key) => memcached.client.get(key)],
    ];
    const sides = (measure: (keys: string[], get: Get) => Promise<number>, calls: number): Side[] =>
      gets.map(([name, get]) => {
        const draw = drawing(s.keys);
        return { name, run: () => measure(draw(calls), get) };
      });
    const times = await interleave(lab, sides(medianNs, SEQUENTIAL));
    const rates = await interleave(
      lab,
      sides((keys, get) => rate(keys, OUTSTANDING, get), GETS),
    );
    return [...timeParts(times), ...rateParts(rates)];
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

function timeParts([tls = [], clear = [], redis = [], memcached = []]: readonly number[][]): Part[] {
  const beside = (name: string, other: readonly number[]): string =>
    `farkv ${nanoseconds(median(tls))}, ${name} ${nanoseconds(median(other))}`;
  const how = 'tcp with TLS, await get, p50';
  return [
    part(`${how}, against clear text`, atMost(1.25, 'times the time'), ratios(tls, clear), beside('clear', clear)),
    part(`${how}, against ioredis with TLS`, atLeast(1, 'times lower'), ratios(redis, tls), beside('ioredis', redis)),
    part(
      `${how}, against memcached with TLS`,
      atLeast(1, 'times lower'),
      ratios(memcached, tls),
      beside('memcached', memcached),
    ),
  ];
}

function rateParts([tls = [], clear = [], redis = [], memcached = []]: readonly number[][]): Part[] {
  const beside = (name: string, other: readonly number[]): string =>
    `farkv ${perSecond(median(tls))}, ${name} ${perSecond(median(other))}`;
  const how = 'tcp with TLS, get, 100 outstanding';
  const unit = 'times the throughput';
  return [
    part(`${how}, against clear text`, atLeast(0.75, unit), ratios(tls, clear), beside('clear', clear)),
    part(`${how}, against ioredis with TLS`, atLeast(1, unit), ratios(tls, redis), beside('ioredis', redis)),
    part(
      `${how}, against memcached with TLS`,
      atLeast(1, unit),
      ratios(tls, memcached),
      beside('memcached', memcached),
    ),
  ];
}
