/** A server joins a cluster that has tokens: with a token of its own for that, once. */
import test, { type ExecutionContext } from 'ava';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster, farkv, type ServerProcess } from '../support/cluster.js';
import { statusWhen } from '../support/status.js';

const OPERATOR = 'of operators';
const ACCESS = ['--token', 'of clients', '--operator-token', OPERATOR, '--peer-token', 'of servers'];

interface Ways {
  /** A new token, in a file; asked of this server. */
  readonly token: (address: string, ...more: string[]) => Promise<string>;
  readonly file: (name: string, text: string) => string;
}

function ways(t: ExecutionContext): Ways {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-join-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  let made = 0;
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  return {
    file,
    token: async (address, ...more) => {
      const { code, stdout, stderr } = await farkv([
        ...['join-token', 'create', '--connect', address, '--token', OPERATOR, '--timeout', '1m', ...more],
      ]);
      t.is(code, 0, stderr);
      t.regex(stdout, /^[\w-]{43}\n$/);
      return file(`token-${(made += 1)}`, stdout);
    },
  };
}

async function refused(t: ExecutionContext, server: ServerProcess, why: RegExp): Promise<void> {
  server.launch();
  await Promise.race([server.exit, server.ready().catch(() => undefined)]);
  t.is(server.readyLine, undefined, 'it was taken in');
  t.is((await server.exit).code, 77, server.stderr);
  t.regex(server.stderr, why);
}

test.serial('a join token is good for one server, and not needed afterwards', async (t) => {
  const { file, token } = ways(t);
  const cluster = await Cluster.start(t, { memory: '32mb', args: ACCESS });
  const { address } = cluster.server(0);
  const comes = (id: string, path?: string) =>
    cluster.joiner(id, [...ACCESS, ...(path === undefined ? [] : ['--join-token-file', path])]);
  await refused(t, await comes('s2'), /a server that joins shows a join token/);
  await refused(t, await comes('s2', file('guess', 'guessed')), /the join token is wrong/);
  const good = await token(address);
  const s2 = await comes('s2', good);
  await s2.start();
  await refused(t, await comes('s3', good), /another server has used it/);
  // Nobody else may make one.
  const other = await farkv(['join-token', 'create', '--connect', address, '--token', 'of clients']);
  t.is(other.code, 77);
  rmSync(good);
  await s2.kill();
  await s2.start();
  for (const server of cluster.servers) t.false(server.stderr.includes('guessed'), 'a token is in the log');
});

test.serial(
  'a server joins that shows the next token of servers first, while the others know the old one',
  async (t) => {
    const { file, token } = ways(t);
    const cluster = await Cluster.start(t, { memory: '32mb', args: ACCESS });
    const peers = ['--peer-token-file', file('peers', 'of servers to come\nof servers\n')];
    const join = ['--join-token-file', await token(cluster.server(0).address)];
    const s2 = await cluster.joiner('s2', [...ACCESS.slice(0, 4), ...peers, ...join]);
    await s2.start();
    await statusWhen(s2.address, ({ members }) => members.length === 2, { token: OPERATOR });
  },
);

test.serial('a token that was made under one leader is good for one join under the next', async (t) => {
  const { token } = ways(t);
  const access = { token: OPERATOR };
  const cluster = await Cluster.start(t, { servers: 3, shards: 3, memory: '32mb', args: ACCESS });
  const { leader } = await statusWhen(cluster.server(0).address, (s) => s.leader !== undefined, access);
  const first = cluster.servers.findIndex((s) => s.id === leader);
  const [a, b] = [await token(cluster.server(first).address), await token(cluster.server(first).address)];
  await cluster.server(first).kill();
  const left = cluster.servers.filter((_, i) => i !== first);
  await statusWhen(left[0]!.address, (s) => s.leader !== undefined && s.leader !== leader, access);
  const comes = async (id: string, path: string): Promise<ServerProcess> => {
    const server = await cluster.joiner(id, [...ACCESS, '--join-token-file', path]);
    server.args = server.args.map((arg, i) =>
      server.args[i - 1] === '--join' ? left.map((one) => one.peer).join(',') : arg,
    );
    return server;
  };
  await (await comes('s4', a)).start();
  // The next leader, or the first one again: all have the entry that took the token away.
  await cluster.server(first).start();
  await statusWhen(left[0]!.address, (s) => s.members.every((m) => m.state === 'up'), access);
  await refused(t, await comes('s5', a), /another server has used it/);
  await (await comes('s5', b)).start();
});
