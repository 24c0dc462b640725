/**
 * Floods of hostile connections at both ports of a server, beside an honest client and an operator: no shard changes
 * hands, no value is lost, every GET and every status is answered, and memory stays bounded. How fast they were
 * answered is in the log: that depends on the machine.
 */
import test, { type ExecutionContext } from 'ava';
import { chmodSync } from 'node:fs';
import { connect } from '../../client/index.js';
import { inRepository } from '../../bench/repository.js';
import { Cluster } from '../support/cluster.js';
import { flood, type FloodReport } from '../support/flood.js';
import type { Hostility } from '../support/hostile.js';

const TOKEN = 'right';
const OPERATOR = 'of operators';
const PEERS = 'of servers';
const SECONDS = 6;
const QUIET_SECONDS = 3;
/** Handshakes are bounded by address: an operator who shares the attacker's may have to come again. */
const STRANGER = '127.0.0.2';
const KEYS = Array.from({ length: 3000 }, (_, i) => `key ${i}`);
/** A server beside its tables: what --help says of connections, and the program. */
const MEMORY_MB = 600;
/** Twice the default, for machines that are busy with more than this test. */
const LEASE = ['--owner-lease-ms', '1600'];
const pem = (name: string): string => inRepository('test/fixtures/tls', name);
// git keeps no such mode, and a key that others may read is refused.
chmodSync(pem('server-key.pem'), 0o600);
const TLS = ['--tls-cert', pem('server.pem'), '--tls-key', pem('server-key.pem'), '--tls-ca', pem('ca.pem')];

type At = Readonly<Record<'address' | 'peer', string>>;

async function holds(
  t: ExecutionContext,
  args: readonly string[],
  hostilitiesAt: (at: At) => readonly Hostility[],
): Promise<void> {
  const caFile = args.includes('--tls-ca') ? pem('ca.pem') : undefined;
  const cluster = await Cluster.start(t, {
    servers: 3,
    shards: 6,
    args: [...LEASE, '--token', TOKEN, '--operator-token', OPERATOR, '--peer-token', PEERS, ...args],
  });
  const kv = await connect({
    servers: cluster.addresses,
    transport: 'tcp',
    strict: true,
    token: TOKEN,
    timeoutMs: 60_000,
    ...(caFile === undefined ? {} : { tls: { caFile } }),
  });
  t.teardown(() => kv.close());
  await kv.putMany(KEYS.map((key) => ({ key, value: 'there' })));
  const measure = (seconds: number, hostilities: readonly Hostility[], attackerApart: boolean) =>
    flood(cluster, {
      seconds,
      hostilities,
      client: { token: TOKEN, keys: KEYS, caFile },
      operator: { token: OPERATOR, caFile },
      attackerApart,
    });
  const said = (name: string, { gets, statuses, memoryMb }: FloodReport): void =>
    t.log(
      `${name}: ${gets.count} GETs, p50 ${gets.msP50.toFixed(2)} ms, p99 ${gets.msP99.toFixed(2)} ms; ` +
        `${statuses.count} status, p99 ${statuses.msP99.toFixed(0)} ms, the slowest ${statuses.msMax.toFixed(0)} ms; ${memoryMb} MiB`,
    );
  said('quiet', await measure(QUIET_SECONDS, [], false));
  const hostilities = hostilitiesAt(cluster.server(1));
  // An attacker that has a machine of its own, as far as one machine can show it, and one that has half of this one.
  for (const apart of [true, false]) {
    const report = await measure(SECONDS, hostilities, apart);
    const { counts, before, after, gets, statuses, memoryMb } = report;
    for (const one of counts) t.log(JSON.stringify(one));
    said(apart ? 'attacker with the CPU that is left' : 'attacker with as much CPU as servers', report);
    t.deepEqual(after, before, 'no shard changed hands');
    t.is(gets.misses, 0);
    t.true(gets.count > 0 && statuses.count > 0);
    t.true(memoryMb < MEMORY_MB, `${memoryMb} MiB`);
  }
  t.deepEqual(
    (await kv.getMany(KEYS)).filter((value) => value === undefined),
    [],
  );
}

test.serial('5,000 hostile sockets at both ports', async (t) => {
  await holds(t, [], ({ address, peer }) => [
    { kind: 'silent', address, sockets: 1000 },
    { kind: 'half', address, sockets: 500 },
    { kind: 'garbage', address, sockets: 500 },
    { kind: 'hellos', address, sockets: 1000 },
    { kind: 'guesses', address, sockets: 500 },
    { kind: 'silent', address: peer, sockets: 500, role: 'peer' },
    { kind: 'hellos', address: peer, sockets: 500, role: 'peer' },
    { kind: 'guesses', address: peer, sockets: 500, role: 'peer' },
  ]);
});

test.serial('1,500 sockets at each port that begin TLS handshakes and do not end them', async (t) => {
  await holds(t, TLS, ({ address, peer }) => [
    { kind: 'tls', address, sockets: 1500, from: STRANGER },
    { kind: 'tls', address: peer, sockets: 1500, from: STRANGER },
  ]);
});

test.serial('24 operators that ask for the status and read no answer', async (t) => {
  await holds(t, [], ({ address }) => [{ kind: 'unread', address, sockets: 24, token: OPERATOR, role: 'admin' }]);
});

test.serial(
  '12 servers that ask for a place, with the credential of servers and calls as large as those of servers',
  async (t) => {
    await holds(t, [], ({ peer }) => [{ kind: 'joiners', address: peer, sockets: 12, token: PEERS, role: 'peer' }]);
  },
);
