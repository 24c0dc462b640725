/** Three servers over verbs: workloads, servers that die under load, clients that die with work in flight. */
import assert from 'node:assert/strict';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { farkv, type Cluster } from '../../support/cluster.js';
import { Load } from './load.js';
import type { Part } from './parts.js';

const RECORDS = 200;
const OPERATIONS = 400;

/** Without measuring the harness, which is 500,000 operations more than an emulated processor has time for. */
async function bench(cluster: Cluster, phase: 'load' | 'run', workload: string): Promise<string> {
  const workloads = fileURLToPath(new URL('../../../../bench/ycsb/workloads', import.meta.url));
  const properties = {
    recordcount: RECORDS,
    operationcount: OPERATIONS,
    dataintegrity: 'true',
    'farkv.timeoutms': 60_000,
    // Handshakes take long where the network card is a thread of an emulated processor.
    'farkv.connecttimeoutms': 120_000,
    seed: 7,
  };
  const words = Object.entries(properties).flatMap(([name, value]) => ['-p', `${name}=${value}`]);
  const ran = await farkv([
    'bench',
    phase,
    'farkv',
    '-P',
    `${workloads}/workload${workload}`,
    ...words,
    '--connect',
    cluster.addresses.join(','),
    '--transport',
    'verbs',
    '--strict',
    '-threads',
    '4',
    '--no-harness',
  ]);
  assert.equal(ran.code, 0, `${phase} ${workload}: ${ran.stdout}${ran.stderr}`);
  return ran.stdout;
}

export const ycsb: Part = [
  'three servers: YCSB A, B, C, D and F with dataintegrity, and status names verbs',
  async ({ cluster: start }) => {
    const cluster = await start({ servers: 3, level: 'cache', shards: 6 });
    assert.ok(cluster.servers.every((s) => s.readyLine?.fabric.every((a) => a.provider === 'verbs')));
    const status = (): ReturnType<typeof farkv> =>
      farkv(['status', '--json', '--timeout', '1m', '--connect', cluster.server(0).address]);
    let seen = await status();
    // In a guest that is slow a server may be without a lease when it is asked.
    while (seen.code !== 0) seen = await status();
    const shown = JSON.parse(seen.stdout) as {
      readonly members: readonly { readonly fabric: readonly { readonly provider: string }[] }[];
    };
    assert.deepEqual([...new Set(shown.members.flatMap((m) => m.fabric.map((f) => f.provider)))], ['verbs']);
    await bench(cluster, 'load', 'a');
    for (const workload of ['a', 'b', 'c', 'd', 'f']) {
      const report = await bench(cluster, 'run', workload);
      const [, perSecond] = /\[OVERALL\], Throughput\(ops\/sec\), ([\d.]+)/.exec(report) ?? [];
      console.log(
        `   workload ${workload}: ${perSecond === undefined ? '?' : Math.round(Number(perSecond))} operations a second`,
      );
      assert.ok(!/Return=(ERROR|UNEXPECTED_STATE)/.test(report), report);
    }
  },
];

export const serverDies: Part = [
  'a server is killed under load and comes back: no wrong value, nothing hangs, clients go on',
  async ({ cluster: start, client: connectTo }) => {
    const cluster = await start({ servers: 3, shards: 6, level: 'cache', args: ['--lease-ms', '1000'] });
    const client = await connectTo(cluster);
    const load = new Load(client, 12, 'counter');
    await load.until(60);
    for (let round = 0; round < 2; round++) {
      await cluster.server(round).kill();
      await cluster.server(round).start();
      await load.until(120);
    }
    await load.stop();
    console.log(`   ${load.done} pairs of PUT and GET`);
  },
];

const CHILD = fileURLToPath(new URL('./busy-client.js', import.meta.url));

export const clientDies: Part = [
  'clients are killed with work in flight: others do not notice, and the server lets go of theirs',
  async ({ cluster: start, client: connectTo }) => {
    const cluster = await start({ servers: 1, shards: 2 });
    const client = await connectTo(cluster);
    const load = new Load(client, 4, 'steady');
    for (let round = 0; round < 3; round++) {
      const child: ChildProcess = fork(CHILD, cluster.addresses, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
      await Promise.race([
        once(child, 'message'),
        once(child, 'exit').then(() => assert.fail('the client ended by itself')),
      ]);
      child.kill('SIGKILL');
      await once(child, 'exit');
      await load.until(40);
    }
    await load.stop();
  },
];
