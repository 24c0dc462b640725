import test from 'ava';
import { appendFileSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Cluster, type ServerProcess } from '../support/cluster.js';
import { statusOf } from '../support/status.js';

const OPTIONS = { memory: '32mb', args: ['--lease-ms', '100'] } as const;

function logFile(server: ServerProcess): string {
  const raft = join(server.dataDir, 'raft');
  const newest = readdirSync(raft)
    .filter((name) => name.startsWith('log-'))
    .sort()
    .at(-1);
  if (newest === undefined) throw new Error(`no log in ${readdirSync(raft).join(', ')}`);
  return join(raft, newest);
}

async function refused(server: ServerProcess): Promise<string> {
  server.launch();
  const { code } = await server.exit;
  return `${code ?? 'signal'}: ${server.stderr}`;
}

test.serial('a torn tail, as a crash leaves it, is recovered', async (t) => {
  const cluster = await Cluster.start(t, OPTIONS);
  const server = cluster.server(0);
  const { clusterId } = server.readyLine!;
  await server.kill();
  appendFileSync(logFile(server), Buffer.from('the beginning of a record that was never finished'));
  const again = await server.start();
  t.is(again.clusterId, clusterId);
  t.regex(server.stderr, /warn .*log-/);
  t.deepEqual(
    (await statusOf(server.address)).shards.map((s) => s.epoch),
    [2, 2, 2, 2],
  );
});

test.serial('a damaged middle is refused, and the directory is left as it is', async (t) => {
  const cluster = await Cluster.start(t, OPTIONS);
  const server = cluster.server(0);
  await server.kill();
  const path = logFile(server);
  const bytes = readFileSync(path);
  const middle = Math.floor(bytes.length / 3);
  bytes[middle] = (bytes[middle] ?? 0) ^ 0x40;
  writeFileSync(path, bytes);
  t.regex(await refused(server), /^1: [^]*is damaged/);
  t.deepEqual(readFileSync(path), bytes);
});

test.serial('a log that lost what was acknowledged is refused', async (t) => {
  const cluster = await Cluster.start(t, OPTIONS);
  const server = cluster.server(0);
  await server.kill();
  const path = logFile(server);
  truncateSync(path, Math.floor(statSync(path).size / 2));
  t.regex(await refused(server), /^1: [^]*is damaged/);
});

test.serial('a directory without its log is refused', async (t) => {
  const cluster = await Cluster.start(t, OPTIONS);
  const server = cluster.server(0);
  await server.kill();
  rmSync(join(server.dataDir, 'raft'), { recursive: true });
  t.regex(
    await refused(server),
    /^1: [^]*raft is missing or incomplete\. No other server has its log: put back a copy of its directory/,
  );
});

test.serial('an identity that is damaged, of another server or of a later version is refused', async (t) => {
  const cluster = await Cluster.start(t, OPTIONS);
  const server = cluster.server(0);
  await server.kill();
  const path = join(server.dataDir, 'identity.json');
  const identity = readFileSync(path, 'utf8');
  writeFileSync(path, identity.slice(0, 20));
  t.regex(await refused(server), /^1: [^]*identity\.json is damaged/);
  writeFileSync(path, identity.replace('"s1"', '"s7"').replace('"s1"', '"s7"'));
  t.regex(await refused(server), /^1: [^]*belongs to server s7, not s1: .*start it with --id s7/);
  writeFileSync(path, identity.replace('"format": 1', '"format": 2'));
  t.regex(await refused(server), /^1: [^]*identity\.json has format 2, of a later version of farkv: start that one/);
});
