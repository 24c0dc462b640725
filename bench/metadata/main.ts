/**
 * `npm run bench:metadata`: how many metadata changes a second three voters take, and how long they take none after
 * kill -9 of their leader.
 *
 * Three servers as processes of their own, each with its log on the disk of the temporary directory. A change is an
 * operator's (`farkv drain` of a server that is announced and never comes, and back again), asked of all three servers
 * at once over several connections. It counts when the server that was asked has applied it; one that the state machine
 * refused went through the log as well, but is not counted.
 *
 * The time without a leader is from the kill to the answer to a change that a survivor was asked for at once:
 * detection, election and a commit.
 *
 * Exit codes: 0 measured, 2 a server or a call failed, or the directory is not on a disk.
 */
import { tmpdir } from 'node:os';
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { ControlClient } from '../../net/control-client.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster } from '../../test/support/cluster.js';
import { diskProblem } from '../disk.js';

const SERVERS = 3;
/** Each connection has an announced server of its own to change; there may be nine servers. */
const CONNECTIONS = 6;
const CALL_MS = 30_000;

const args = await yargs(hideBin(process.argv))
  .scriptName('npm run bench:metadata --')
  .usage('$0 [options]\n\nMetadata changes a second with three voters, and the time without a leader after kill -9')
  .option('seconds', {
    type: 'number',
    default: 5,
    describe: 'How long changes are made, after a second that does not count',
  })
  .option('in-flight', {
    type: 'number',
    default: 16,
    describe: `Changes unanswered on each of the ${CONNECTIONS} connections`,
  })
  .option('kills', { type: 'number', default: 10, describe: 'How often the leader is killed' })
  .strict()
  .parse();

/** Changes in order: drained, not drained, drained, ... */
class Changes {
  readonly #client: ControlClient;
  readonly #id: string;
  #draining = false;

  constructor(client: ControlClient, id: string) {
    this.#client = client;
    this.#id = id;
  }

  async next(): Promise<void> {
    this.#draining = !this.#draining;
    await this.#client.call('drain', { id: this.#id, draining: this.#draining }, CALL_MS);
  }
}

const open = async (address: string): Promise<ControlClient> =>
  await ControlClient.open({ address, trust: undefined, timeoutMs: CALL_MS, hello: { role: 'admin' } });
const quantile = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? NaN;
const ms = (value: number): string => `${value.toFixed(1)} ms`;
const sort = (values: number[]): number[] => values.sort((a, b) => a - b);

async function status(client: ControlClient): Promise<ClusterStatus> {
  return (await client.call('status', {}, CALL_MS)) as ClusterStatus;
}

async function throughput(changes: readonly Changes[]): Promise<void> {
  const latencies: number[] = [];
  let refused = 0;
  const from = performance.now() + 1000;
  const to = from + args.seconds * 1000;
  const one = async (c: Changes): Promise<void> => {
    for (let now = performance.now(); now < to; now = performance.now()) {
      const done = await c.next().then(
        () => true,
        () => false,
      );
      const end = performance.now();
      if (end < from || end > to) continue;
      if (done) latencies.push(end - now);
      else refused++;
    }
  };
  await Promise.all(changes.flatMap((c) => Array.from({ length: args.inFlight }, () => one(c))));
  sort(latencies);
  process.stdout.write(
    `changes: ${Math.round(latencies.length / args.seconds)}/s, p50 ${ms(quantile(latencies, 0.5))}, p99 ${ms(quantile(latencies, 0.99))}; ` +
      `${CONNECTIONS} connections, ${args.inFlight} in flight each, ${refused} refused\n`,
  );
}

async function elections(cluster: Cluster): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < args.kills; i++) {
    const asked = await open(cluster.server(0).address);
    const before = await status(asked);
    asked.close();
    const leader = cluster.servers.findIndex((s) => s.id === before.leader);
    const survivor = await open(cluster.server((leader + 1) % SERVERS).address);
    const started = performance.now();
    const killed = cluster.server(leader).kill();
    // Refused or not: it was committed under a new leader.
    await new Changes(survivor, 's4').next().catch((error: unknown) => {
      if (!String(error).includes('drained')) throw error;
    });
    times.push(performance.now() - started);
    await killed;
    survivor.close();
    await cluster.server(leader).start();
  }
  sort(times);
  if (times.length > 0)
    process.stdout.write(
      `after kill -9 of the leader: median ${ms(quantile(times, 0.5))}, max ${ms(times.at(-1) ?? NaN)} of ${times.length}\n`,
    );
}

const problem = diskProblem(tmpdir());
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(2);
}
const ends: (() => unknown)[] = [];
try {
  const cluster = await Cluster.start(
    { teardown: (end) => void ends.push(end) },
    { servers: SERVERS, args: ['--owner-lease-ms', '800'] },
  );
  const clients = await Promise.all(
    Array.from({ length: CONNECTIONS }, (_, i) => open(cluster.server(i % SERVERS).address)),
  );
  const changes: Changes[] = [];
  for (const [i, client] of clients.entries()) {
    const id = `s${SERVERS + 1 + i}`;
    await client.call('member-add', { id, control: [`127.0.0.1:${i + 1}`] }, CALL_MS);
    changes.push(new Changes(client, id));
  }
  await throughput(changes);
  for (const client of clients) client.close();
  await elections(cluster);
} catch (error) {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 2;
} finally {
  for (const end of ends) await end();
}
