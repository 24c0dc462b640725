/** Two voters become one: whichever of them is removed, the other goes on alone, with real processes. */
import test from 'ava';
import { Cluster, farkv, succeeds, type ServerProcess } from '../support/cluster.js';
import { QUICK } from '../support/owners.js';
import { leaderOf, statusWhen, whole } from '../support/status.js';

const ARGS = ['--lease-ms', '300'];

for (const who of ['leader', 'follower'] as const) {
  test.serial(`a ${who} of two voters is removed, and the other leads and serves`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 2, level: 'cache', shards: 2, args: ARGS });
    const leader = await leaderOf(cluster);
    const goes = cluster.server(who === 'leader' ? leader : 1 - leader);
    const stays = cluster.server(who === 'leader' ? 1 - leader : leader);
    await succeeds(t, cluster, 'drain', goes.id);
    await succeeds(t, cluster, 'member', 'remove', goes.id);
    t.deepEqual(await goes.exit, { code: 4, signal: null });
    const after = await statusWhen(stays.address, (s) => s.leader === stays.id && whole(s));
    t.deepEqual(
      after.members.map((m) => [m.id, m.role]),
      [[stays.id, 'voter']],
    );
    t.is((await farkv(['put', 'key', 'value', '--connect', stays.address])).code, 0);
  });
}

test.serial('two of three voters are removed at the same time, and the third leads and serves', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 3, args: ARGS });
  const leader = await leaderOf(cluster);
  const stays = cluster.server(leader);
  const go = cluster.servers.filter((server) => server !== stays);
  for (const server of go) await succeeds(t, cluster, 'drain', server.id);
  const remove = ({ id }: ServerProcess) => farkv(['member', 'remove', id, '--connect', stays.address]);
  const removed = await Promise.all(go.map(remove));
  // One that found the other's removal under way for too long is asked for again.
  for (const [i, { code }] of removed.entries()) if (code !== 0) t.is((await remove(go[i]!)).code, 0);
  await statusWhen(stays.address, (s) => s.leader === stays.id && s.members.length === 1 && whole(s));
  t.is((await farkv(['put', 'key', 'value', '--connect', stays.address])).code, 0);
});

test.serial('a voter is not removed while the others would have no majority, and it says who is missing', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 3, args: QUICK });
  const leader = await leaderOf(cluster);
  const [s1, s2, dead] = [leader, (leader + 1) % 3, (leader + 2) % 3].map((n) => cluster.server(n)) as [
    ServerProcess,
    ServerProcess,
    ServerProcess,
  ];
  const ask = ['--connect', s1.address];
  t.is((await farkv(['drain', s2.id, ...ask])).code, 0);
  await dead.kill();
  await statusWhen(s1.address, (s) => s.shards.every(({ owner }) => owner === s1.id));
  const refused = await farkv(['member', 'remove', s2.id, ...ask]);
  t.not(refused.code, 0);
  t.regex(refused.stderr, new RegExp(`of the 2 voters that would be left too few .*not ${dead.id}`));
  t.is((await farkv(['member', 'remove', dead.id, ...ask])).code, 0);
  t.is((await farkv(['member', 'remove', s2.id, ...ask])).code, 0);
  await statusWhen(s1.address, (s) => s.leader === s1.id && whole(s));
});
