/** Servers of two versions of the metadata's format: the cluster goes from one to the other, a server at a time, while it is used; there is no way back. */
import test from 'ava';
import { connect } from '../../client/index.js';
import { Cluster, farkv, ServerProcess } from '../support/cluster.js';
import { raised } from '../support/owners.js';
import { statusOf } from '../support/status.js';

const FIRST = ['--metadata-format', '1'];

/** The same server, as a later version of farkv. */
function later(s: ServerProcess): ServerProcess {
  return new ServerProcess(s.id, s.address, s.dataDir, s.args.filter((arg, i) => arg !== FIRST[0] && s.args[i - 1] !== FIRST[0]), {});
}

test.serial('three servers are upgraded one after the other, and the format is raised when all of them know it', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 3, args: ['--lease-ms', '300', ...FIRST] });
  const kv = await connect({ servers: cluster.addresses, unavailableAfterMs: 120_000, timeoutMs: 120_000 });
  t.teardown(() => kv.close());
  const early = [...cluster.servers];
  const addresses = cluster.addresses.join(',');
  for (const [i, old] of early.entries()) {
    t.is((await statusOf(old.address)).formatVersion, 1);
    const refused = await farkv(['drain', 's1', '--connect', addresses]);
    t.regex(refused.stderr, /the metadata is at format 1 until every server/);
    await old.stop();
    const upgraded = later(old);
    cluster.servers[i] = upgraded;
    await upgraded.start();
    for (let k = 0; k < 20; k++) {
      await kv.put(`k${k}`, `${i}`);
      t.is(String(await kv.get(`k${k}`)), `${i}`);
    }
  }
  await raised(cluster);
  t.is(String(await kv.get('k1')), '2');
  t.is((await farkv(['drain', 's1', '--connect', addresses])).code, 0);

  // The earlier version no longer understands what is written.
  await cluster.server(2).stop();
  early[2]!.launch();
  t.is((await early[2]!.exit).code, 1);
  t.regex(early[2]!.stderr, /the metadata has (an entry|a snapshot) of a later version of farkv \(format 2.*this version knows format 1: upgrade this server/);
  await cluster.server(2).start();
  t.true((await statusOf(cluster.server(2).address)).members.every((m) => m.state === 'up'));
});
