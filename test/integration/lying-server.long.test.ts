/** One server of three, or somebody with its credential and its directory's number, says to the others what cannot be. */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { raftIdOf } from '../../core/metadata/placement.js';
import { ControlClient } from '../../net/control-client.js';
import { Cluster, succeeds, type ServerProcess } from '../support/cluster.js';
import { leaderOf, statusOf, statusWhen, whole } from '../support/status.js';

const HIGHEST = 2 ** 53 - 1;

interface Identity {
  readonly instance: string;
  readonly clusterId: string;
}

/** Says these to `victim` as `liar`, one connection each; `isRefused`: and waits until the victim has ended it. */
async function says(victim: ServerProcess, liar: ServerProcess, messages: readonly object[], isRefused: boolean) {
  const identity = JSON.parse(readFileSync(join(liar.dataDir, 'identity.json'), 'utf8')) as Identity;
  const { instance, clusterId } = identity;
  for (const message of messages) {
    let ended: (() => void) | undefined;
    const closed = new Promise<void>((resolve) => (ended = resolve));
    const client = await ControlClient.open({
      address: victim.peer,
      trust: undefined,
      timeoutMs: 60_000,
      hello: { role: 'peer', from: liar.id, instance, clusterId },
      closed: () => ended?.(),
    });
    const envelope = { from: raftIdOf(liar.id), to: raftIdOf(victim.id) };
    client.connection.send({ t: 'raft', message: { ...envelope, ...message } });
    if (isRefused) await closed;
    else await client.call('leads', {}, 60_000).catch(() => undefined);
    client.close();
  }
}

test.serial('what no server can know ends no process, and leaves none without a leader', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 3, memory: '32mb', level: 'cache' });
  const leader = cluster.server(await leaderOf(cluster));
  const [liar, third] = cluster.servers.filter((s) => s !== leader) as [ServerProcess, ServerProcess];
  await succeeds(t, cluster, 'put', 'k', 'v');
  const { term = 0 } = (await statusOf(leader.address)).members.find((m) => m.id === leader.id)?.node ?? {};
  const append = { type: 'append', prevIndex: 0, prevTerm: 0, commit: HIGHEST, entries: [] };
  await says(
    leader,
    liar,
    [
      { ...append, term },
      { type: 'append-accept', term, index: HIGHEST },
    ],
    true,
  );
  await says(
    third,
    liar,
    [
      { ...append, term },
      { type: 'heartbeat', term, commit: HIGHEST, round: 0 },
    ],
    true,
  );
  t.true(leader.stderr.includes('a Raft message that cannot be true'));
  // Of a later term it may be the leader: then what it says is looked at by itself.
  const garbage = { index: 1, term: 1, type: 0, data: Uint8Array.of(1) };
  const config = { voters: [1], outgoing: [], learners: [] };
  const snapshot = { snapshot: { index: HIGHEST, term, config }, bytes: 1, offset: 0, chunk: Uint8Array.of(1) };
  await says(
    third,
    liar,
    [
      { type: 'heartbeat', term: term + 1, commit: HIGHEST, round: 0 },
      { ...append, term: term + 1, entries: [garbage] },
      { type: 'snapshot-chunk', term: term + 1, ...snapshot },
      { type: 'snapshot-chunk', term: term + 1, ...snapshot, snapshot: { ...snapshot.snapshot, index: 1_000_000 } },
    ],
    true,
  );
  for (const victim of [leader, third])
    await says(
      victim,
      liar,
      [
        { ...append, term: HIGHEST },
        { type: 'stale', term: term + 2 ** 24 },
      ],
      false,
    );
  await succeeds(t, cluster, 'put', 'k', 'w');
  const after = await statusWhen(leader.address, whole);
  for (const { node } of after.members) t.true((node?.term ?? Infinity) < term + 2 ** 22, `term ${node?.term}`);
  for (const server of cluster.servers) t.true(server.running, server.stderr);

  await Promise.all(cluster.servers.map((s) => s.stop()));
  for (const server of cluster.servers) server.launch();
  await Promise.all(cluster.servers.map((s) => s.ready()));
  await succeeds(t, cluster, 'put', 'k', 'x');
});
