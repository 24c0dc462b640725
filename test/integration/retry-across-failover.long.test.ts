/**
 * A change that its owner made and could not answer, and whose retry reaches the copy that was promoted when the owner
 * had been killed: real servers, with the way between one client and their data planes in the test's hands. It has the
 * answer of the first time, and is made once.
 */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { Cluster } from '../support/cluster.js';
import { ADVERTISED, Middle } from '../support/middle.js';
import { patientClient } from '../support/patient-client.js';
import { statusWhen } from '../support/status.js';
import { TLS_OPTIONS, tlsFile, tlsTrust } from '../support/tls-files.js';

for (const tls of [false, true])
  test.serial(`a retry after a failover is answered as the change was${tls ? ', also with TLS' : ''}`, async (t) => {
    const cluster = await Cluster.start(t, {
      servers: 3,
      shards: 3,
      args: [
        ...['--lease-ms', '300', '--owner-lease-ms', '1000', '--transport', 'shm,tcp'],
        ...ADVERTISED,
        ...(tls ? TLS_OPTIONS : []),
      ],
    });
    const access = tls ? { ca: readFileSync(tlsFile('ca.pem')) } : {};
    const middles = await Promise.all(cluster.servers.map((server) => Middle.before(t, server)));
    const trust = tls ? { tls: tlsTrust() } : {};
    // One that is cut off, and one that sees and changes the same by another way.
    const cut = await patientClient(t, cluster, 'tcp', trust);
    const direct = await patientClient(t, cluster, 'shm', trust);
    const shard = cut.shardOf('counter');
    const key = (name: string): string => {
      for (let i = 0; ; i++) if (cut.shardOf(`${name}-${i}`) === shard) return `${name}-${i}`;
    };
    const [swap, list, gone] = [key('swap'), key('list'), key('gone')];
    await direct.putMany([swap, list, gone].map((k) => ({ key: k, value: 'a' })));
    await direct.increment('counter', 5);
    const { version } = (await cut.getEntry(swap))!;
    const { shards } = await statusWhen(
      cluster.server(0).address,
      (s) => s.shards.every(({ state, copies }) => state === 'serving' && copies?.inSync === 2),
      access,
    );
    const owner = cluster.servers.findIndex(({ id }) => id === shards[shard]?.owner);

    middles[owner]!.passage = 'unanswered';
    const changes = Promise.all([
      cut.increment('counter', 2),
      cut.compareAndSwap(swap, version, 'b'),
      cut.append(list, 'b'),
      cut.delete(gone),
    ]);
    while (String(await direct.get('counter')) !== '7');
    while (String(await direct.get(swap)) !== 'b');
    while (String(await direct.get(list)) !== 'ab');
    while ((await direct.get(gone)) !== undefined);
    const swapped = (await direct.getEntry(swap))!.version;

    for (const middle of middles) middle.passage = 'closed';
    await cluster.server(owner).kill();
    // By whoever owns it now; so it was promoted, and what was changed since is to stay.
    t.is(await direct.increment('counter', 10), 17n);
    await direct.append(list, 'c');
    await direct.put(gone, 'again');
    for (const middle of middles) middle.passage = 'open';

    t.deepEqual(await changes, [7n, { swapped: true, version: swapped }, 2, true]);
    t.deepEqual((await direct.getMany(['counter', swap, list, gone])).map(String), ['17', 'b', 'abc', 'again']);
  });
