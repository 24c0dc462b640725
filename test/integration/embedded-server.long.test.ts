import test from 'ava';
import { startServer } from '../../server/index.js';
import { Cluster } from '../support/cluster.js';
import { statusOf } from '../support/status.js';

test.serial('a stalled event loop of the program delays no heartbeat', async (t) => {
  const cluster = await Cluster.start(t, {
    servers: 3,
    shards: 3,
    memory: '32mb',
    args: ['--election-ms', '2000', '--lease-ms', '200'],
  });
  // The first server is taken over by this process.
  const address = cluster.server(0).address;
  const peers = Object.fromEntries(cluster.servers.map((s) => [s.id, s.peer]));
  await cluster.server(0).stop();
  const server = await startServer(
    {
      id: 's1',
      listen: address,
      peers,
      dataDir: cluster.server(0).dataDir,
      memory: '32mb',
      leaseMs: 200,
      electionMs: 2000,
    },
    { env: {} },
  );
  t.teardown(() => server.close());
  // Make it the leader: the others are restarted until it is.
  for (let status = await server.status(); status.leader !== 's1'; status = await server.status()) {
    const leading = cluster.servers.find((s) => s.id === status.leader);
    if (leading === undefined) continue;
    await leading.stop();
    await leading.start();
  }
  const before = await server.status();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6000);
  const after = await statusOf(cluster.server(1).address);
  t.is(after.leader, 's1');
  t.is(after.term, before.term);
});
