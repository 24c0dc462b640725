/**
 * `/readyz` and `/role` of real servers, with each answer that they have while a cluster is made, loses its majority, gets
 * it back, and grows. Not for: how the answers are made (server/own-readiness.test.ts, server/http/readiness.test.ts).
 */
import test from 'ava';
import { Cluster, freePorts, type ServerProcess } from '../support/cluster.js';
import { ask } from '../support/http.js';
import { copied, leaderOf, statusWhen } from '../support/status.js';

const HTTP = ['--http-listen', '127.0.0.1:0'];
const READY = '200 ready';
const NO_LEADER = '503 the metadata group has no leader';
const NO_LEASE = '503 this server has no lease from the metadata group, and answers nothing';

const httpOf = (server: ServerProcess): string => server.readyLine?.http[0] ?? '';
/** Status and body. */
async function probe(at: string, path: '/readyz' | '/role'): Promise<string> {
  const { status, text } = await ask(at, path);
  return `${status} ${text.trimEnd()}`;
}
const roleOf = async (server: ServerProcess): Promise<string> => await probe(httpOf(server), '/role');

/** What it answers until it answers this, each once, in order. */
async function answersUntil(at: string, path: '/readyz' | '/role', last: string): Promise<string[]> {
  const seen = new Set<string>();
  while (!seen.has(last)) seen.add(await probe(at, path).catch((error: unknown) => (error as Error).message));
  return [...seen];
}

test('a server that a majority has left is not ready, for want of a lease, then of a leader, until one is back', async (t) => {
  // A leader is missed long after the lease of who owns shards is over.
  const args = [...HTTP, '--owner-lease-ms', '1000', '--election-ms', '6000'];
  const cluster = await Cluster.start(t, { servers: 3, shards: 6, level: 'replicated', args });
  const leader = await leaderOf(cluster);
  await statusWhen(cluster.server(leader).address, copied);
  const [left, one] = cluster.servers.filter((_, i) => i !== leader);
  for (const server of cluster.servers) {
    await answersUntil(httpOf(server), '/readyz', READY);
    t.is(await roleOf(server), server === cluster.server(leader) ? '200 leader' : '200 follower', server.id);
  }
  const at = httpOf(left!);
  // One dies, and of the leader nothing comes that says that it is gone.
  cluster.server(leader).signal('SIGSTOP');
  await one!.kill();
  const answers = await answersUntil(at, '/readyz', NO_LEADER);
  t.deepEqual(
    answers.filter((answer) => answer !== READY),
    [NO_LEASE, NO_LEADER],
  );
  await cluster.server(leader).kill();
  t.is(await roleOf(left!), '200 candidate');
  t.is((await ask(at, '/healthz')).status, 200, 'nobody shall start it again');

  await one!.start();
  const back = await answersUntil(at, '/readyz', READY);
  t.true(
    back.every((answer) => answer.startsWith('503 ') || answer === READY),
    back.join('\n'),
  );
  const roles = await Promise.all([left!, one!].map(roleOf));
  t.deepEqual(roles.sort(), ['200 follower', '200 leader']);
});

test('a server that was killed names its shards until the leases of its clients are over', async (t) => {
  const [port = 0] = await freePorts(1);
  const at = `127.0.0.1:${port}`;
  const cluster = await Cluster.start(t, { shards: 2, args: ['--http-listen', at, '--lease-ms', '3000'] });
  t.is(await probe(at, '/readyz'), READY);
  await cluster.server(0).kill();
  cluster.server(0).launch();
  const answers = await answersUntil(at, '/readyz', READY);
  t.true(answers.includes('503 shards 0, 1 of this server are not served'), answers.join('\n'));
  t.is(await probe(at, '/role'), '200 leader');
});

test('a server is starting until it is one of the cluster, and a learner until it has a vote', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 3, absent: [0, 1, 2], ready: false, args: HTTP });
  const [port = 0] = await freePorts(1);
  const at = `127.0.0.1:${port}`;
  const first = cluster.server(0);
  first.args = first.args.map((word, i, all) => (all[i - 1] === '--http-listen' ? at : word));
  first.launch();
  await first.said('waiting for');
  t.is(await probe(at, '/role'), '200 starting');
  t.is(await probe(at, '/readyz'), '503 this server is starting, and knows no leader of the metadata group yet');
  for (const server of cluster.servers.slice(1)) server.launch();
  await Promise.all(cluster.servers.map((server) => server.ready()));
  const roles = await Promise.all(cluster.servers.map(roleOf));
  t.deepEqual(roles.sort(), ['200 follower', '200 follower', '200 leader']);
  const fourth = await cluster.joiner('s4', HTTP);
  await fourth.start();
  t.is(await roleOf(fourth), '200 learner');
  await answersUntil(httpOf(fourth), '/readyz', READY);
});

test('a witness has a vote as others have, and is ready', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 4, absent: [0, 1, 2], ready: false, args: HTTP });
  const witness = cluster.server(2);
  const memory = witness.args.indexOf('--memory');
  witness.args = [...witness.args.slice(0, memory), ...witness.args.slice(memory + 2), '--witness'];
  for (const server of cluster.servers) server.launch();
  await Promise.all(cluster.servers.map((server) => server.ready()));
  await answersUntil(httpOf(witness), '/readyz', READY);
  const leader = await leaderOf(cluster);
  t.is(await roleOf(witness), witness === cluster.server(leader) ? '200 leader' : '200 follower');
});
