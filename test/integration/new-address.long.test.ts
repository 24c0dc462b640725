/** A server that starts again at another address is found there, though the others know only the one before. */
import test from 'ava';
import { Cluster, freePorts, type ServerProcess } from '../support/cluster.js';
import { statusOf, statusWhen, whole } from '../support/status.js';

const peerOf = async (at: ServerProcess, id: string): Promise<readonly string[] | undefined> =>
  (await statusOf(at.address)).members.find((m) => m.id === id)?.peer;

test.serial('a server that joined with an address where nobody finds it comes with the right one', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 1 });
  const s2 = await cluster.joiner('s2', ['--advertise', '127.0.0.250']);
  s2.launch();
  await statusWhen(cluster.server(0).address, ({ members }) => members.some((m) => m.id === 's2'));
  await s2.kill();
  s2.args = s2.args.map((word) => (word === '127.0.0.250' ? '127.0.0.1' : word));
  await s2.start();
  t.deepEqual(await peerOf(cluster.server(0), 's2'), [s2.peer]);
});

test.serial(
  'a server that joined comes back at another port between servers, and so does one of the first',
  async (t) => {
    const cluster = await Cluster.start(t, { servers: 3, shards: 3 });
    const s4 = await cluster.joiner('s4');
    await s4.start();
    for (const server of [s4, cluster.server(0)]) {
      await server.kill();
      const [port = 0] = await freePorts(1);
      const moved = `127.0.0.1:${port}`;
      server.args = server.args.map((word) => word.replace(server.peer, moved));
      await server.start();
      t.deepEqual(await peerOf(cluster.server(1), server.id), [moved]);
      await statusWhen(cluster.server(1).address, whole);
    }
  },
);
