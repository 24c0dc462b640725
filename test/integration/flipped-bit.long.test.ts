/**
 * A bit that flips in the memory of a server, as real processes: a copy finds it by itself and is made anew, and a value
 * that an owner has so is not returned.
 */
import test from 'ava';
import { Cluster, farkv } from '../support/cluster.js';
import { flipBits } from '../support/process-memory.js';
import { patient } from '../support/sdk-clients.js';
import { copied, statusWhen } from '../support/status.js';

const QUICK = ['--import', import.meta.resolve('../support/quick-scrub.js')];

test.serial('a copy whose memory has changed by itself says so, and is made anew', async (t) => {
  const cluster = await Cluster.start(t, {
    servers: 3,
    shards: 1,
    level: 'replicated',
    args: ['--lease-ms', '400', '--owner-lease-ms', '1000'],
    ready: false,
    absent: [0, 1, 2],
  });
  for (const server of cluster.servers) {
    server.nodeOptions = QUICK;
    server.launch();
  }
  await Promise.all(cluster.servers.map((s) => s.ready()));
  const { address } = cluster.server(0);
  await statusWhen(address, copied);
  const client = await patient(t, cluster.addresses);
  const value = 'a value whose bits shall stay as they are';
  await client.put('key', value);
  const before = (await statusWhen(address, copied)).shards[0]!;
  const other = before.copies!.copies.find(({ member }) => member !== before.owner)!.member;
  const copy = cluster.servers.find(({ id }) => id === other)!;

  t.is(flipBits(copy.pid, value), 1);
  await copy.said(
    /error shard 0: the copy here is not what its owner has in epoch \d+, or its memory has changed by itself: it is made anew\. If this comes again, test this server's memory/,
  );
  await statusWhen(address, (s) => copied(s) && s.shards[0]!.copies!.config > before.copies!.config);
  const owner = cluster.servers.find(({ id }) => id === before.owner)!;
  const [asked] = cluster.servers.filter((s) => s !== owner);
  await owner.kill();
  await statusWhen(asked!.address, (s) => s.shards[0]!.owner !== owner.id && s.shards[0]!.state === 'serving');
  t.is((await client.get('key'))?.toString(), value);
});

test.serial('a value that its owner has in damaged memory is refused until it is written again', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 1 });
  const server = cluster.server(0);
  const client = await patient(t, cluster.addresses);
  const value = 'a value whose bits shall stay as they are';
  await client.put('key', value);
  t.is(flipBits(server.pid, value), 1);
  const refused = await farkv(['get', 'key', '--connect', server.address]);
  t.is(refused.code, 1);
  t.regex(refused.stderr, /checksum after all retries: put the value again, and test the owner's memory/);
  await t.throwsAsync(async () => await client.get('key'), { code: 'ERR_CORRUPT' });
  await client.put('key', value);
  t.is((await client.get('key'))?.toString(), value);
});
